//! SHA-256 digests, as registries write them: `sha256:` and 64 small hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA256};

/// A SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sha256([u8; 32]);

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotADigest;

impl Sha256 {
    /// The digest of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    /// A digest from 64 hexadecimal digits.
    pub(crate) fn from_hex(hex: &str) -> Result<Self, NotADigest> {
        let small = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() != 64 || !hex.bytes().all(small) {
            return Err(NotADigest);
        }
        let mut out = [0; 32];
        for (at, byte) in out.iter_mut().enumerate() {
            let pair = hex.get(at * 2..at * 2 + 2).ok_or(NotADigest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(out))
    }

    /// The digits without `sha256:`.
    pub(crate) fn hex(&self) -> String {
        hex(&self.0)
    }
}

/// Bytes as small hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for Sha256 {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        Self::from_hex(text.strip_prefix("sha256:").ok_or(NotADigest)?)
    }
}

/// Computes a digest piece by piece.
pub(crate) struct Hasher(Context);

impl Default for Hasher {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Hasher {
    /// Adds a piece.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub(crate) fn finish(self) -> Sha256 {
        let mut out = [0; 32];
        for (to, from) in out.iter_mut().zip(self.0.finish().as_ref()) {
            *to = *from;
        }
        Sha256(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Sha256::of(b"")));
        for other in [
            "",
            "sha256:",
            &empty[7..],
            &empty.to_uppercase(),
            &empty[..70],
            &format!("{empty}0"),
            &empty.replace("sha256", "sha512"),
            &empty.replace("e3", "+3"),
            &empty.replace("e3", "é"),
        ] {
            assert_eq!(other.parse::<Sha256>(), Err(NotADigest), "{other}");
        }
    }
}
