//! Digests of components.

use std::fmt;

use super::text;

/// The SHA-256 of a component's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The form for tables: the first 12 hexadecimal digits, enough to be unique on one machine.
    pub fn short(&self) -> String {
        let hex = self.hex();
        format!("sha256:{}", hex.get(..12).unwrap_or(&hex))
    }

    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// 64 hexadecimal digits, without a prefix.
    pub fn hex(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.0)
    }
}

/// The text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{shown}\" is not \"sha256:\" and 64 hexadecimal digits")]
pub struct DigestError {
    /// The rejected text, safe to print.
    shown: String,
}

impl std::str::FromStr for Digest {
    type Err = DigestError;

    /// Parses exactly the form that [`fmt::Display`] writes.
    fn from_str(shown: &str) -> Result<Self, DigestError> {
        let digits = shown.strip_prefix("sha256:").unwrap_or_default().as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(value(*high)? << 4 | value(*low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| DigestError { shown: text::excerpt(shown, 80) })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
