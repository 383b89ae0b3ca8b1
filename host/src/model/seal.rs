//! Authenticated tokens that a client gets and sends back: opaque, self-contained, and impossible to forge without the
//! key. They are not encrypted: a client can decode the bytes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::guard::Guard;

/// Bytes of the authentication tag.
const TAG: usize = 16;

/// Seals and opens bytes with one key.
pub struct Seal {
    key: [u8; 32],
}

/// The token was not sealed with this key, purpose and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSeal;

impl Seal {
    /// A seal keyed with `secret` for one `purpose`. A token sealed for another purpose does not open.
    pub fn new(purpose: &'static str, secret: &[u8; 32]) -> Self {
        Self { key: blake3::derive_key(purpose, secret) }
    }

    fn tag(&self, kind: u8, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[kind]).update(body);
        hasher.finalize()
    }

    /// Seals `body` as a token of `kind`.
    pub fn seal(&self, kind: u8, mut body: Vec<u8>) -> String {
        let tag = self.tag(kind, &body);
        body.extend(tag.as_bytes().iter().take(TAG));
        URL_SAFE_NO_PAD.encode(body)
    }

    /// The body of a token that [`Seal::seal`] made with the same `kind`.
    ///
    /// # Errors
    /// If the token is damaged, or was sealed with another key, purpose or kind.
    pub fn open(&self, kind: u8, sealed: &str) -> Result<Vec<u8>, InvalidSeal> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| InvalidSeal)?;
        let at = bytes.len().checked_sub(TAG).ok_or(InvalidSeal)?;
        let tag = bytes.split_off(at);
        // Compares whole hashes, which blake3 does in constant time. The bytes after the tag are copied from the
        // computed hash.
        let computed = self.tag(kind, &bytes);
        let mut claimed = *computed.as_bytes();
        claimed.iter_mut().zip(&tag).for_each(|(to, from)| *to = *from);
        if blake3::Hash::from_bytes(claimed) != computed && Guard::Seal.is_on() {
            return Err(InvalidSeal);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_only_with_its_purpose_kind_and_key() {
        let seal = |purpose, key| Seal::new(purpose, &[key; 32]);
        let sealed = seal("one", 1).seal(0, b"body".to_vec());
        assert_eq!(seal("one", 1).open(0, &sealed), Ok(b"body".to_vec()));
        for other in [seal("two", 1), seal("one", 2)] {
            assert_eq!(other.open(0, &sealed), Err(InvalidSeal));
        }
        assert_eq!(seal("one", 1).open(1, &sealed), Err(InvalidSeal));
    }
}
