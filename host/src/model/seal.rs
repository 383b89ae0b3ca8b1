//! Text that goes out to a client and comes back: opaque, self-contained, and authenticated, so that nobody but this host
//! can have made it. Authenticated, not hidden: whoever holds it can read what is in it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Guard;

/// Bytes of the authentication tag.
const TAG: usize = 16;

/// Seals and opens bytes with one key.
pub struct Seal {
    key: [u8; 32],
}

/// Why something is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign;

impl Seal {
    /// One that is keyed with `secret`, for `purpose` alone: what was sealed for one purpose is foreign to every other.
    pub fn new(purpose: &'static str, secret: &[u8; 32]) -> Self {
        Self { key: blake3::derive_key(purpose, secret) }
    }

    fn tag(&self, kind: u8, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[kind]).update(body);
        hasher.finalize()
    }

    /// `body`, sealed as one of `kind`.
    pub fn seal(&self, kind: u8, mut body: Vec<u8>) -> String {
        let tag = self.tag(kind, &body);
        body.extend(tag.as_bytes().iter().take(TAG));
        URL_SAFE_NO_PAD.encode(body)
    }

    /// What was sealed as one of `kind`.
    ///
    /// # Errors
    /// When it was not, or not with this key.
    pub fn open(&self, kind: u8, sealed: &str) -> Result<Vec<u8>, Foreign> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Foreign)?;
        let at = bytes.len().checked_sub(TAG).ok_or(Foreign)?;
        let tag = bytes.split_off(at);
        // Compared as whole hashes, in constant time; the rest of the hash is the computed one's own.
        let computed = self.tag(kind, &bytes);
        let mut claimed = *computed.as_bytes();
        claimed.iter_mut().zip(&tag).for_each(|(to, from)| *to = *from);
        if blake3::Hash::from_bytes(claimed) != computed && Guard::Seal.is_on() {
            return Err(Foreign);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_for_another_purpose_kind_or_key_is_foreign() {
        let seal = |purpose, key| Seal::new(purpose, &[key; 32]);
        let sealed = seal("one", 1).seal(0, b"body".to_vec());
        assert_eq!(seal("one", 1).open(0, &sealed), Ok(b"body".to_vec()));
        for other in [seal("two", 1), seal("one", 2)] {
            assert_eq!(other.open(0, &sealed), Err(Foreign));
        }
        assert_eq!(seal("one", 1).open(1, &sealed), Err(Foreign));
    }
}
