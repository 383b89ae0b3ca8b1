//! Values of headers that are wiped from memory.

use bytes::Bytes;
use http::HeaderValue;
use zeroize::Zeroizing;

/// Bytes that are wiped when the last header that shares them is dropped.
struct Wiped(Zeroizing<Vec<u8>>);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The value of a header. `None` if the text has a character that no header can have.
pub(super) fn header_value(text: String) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from_owner(Wiped(text.into_bytes().into()))).ok()
}
