//! Decodes bodies that arrive compressed. This provider asks for none, but some servers compress all the same.

use std::io::Read as _;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::MAX_BODY_BYTES;

/// The most codings of one body. Each is decoded separately.
const MAX_CODINGS: usize = 3;

/// The reason why a body cannot be decoded.
#[derive(Debug, PartialEq)]
pub(super) enum CodingError {
    /// The coding is not one of this provider's.
    Unknown(String),
    /// The decoded body is too long.
    TooLarge,
    /// The body ends too early, or is broken.
    Broken(String),
}

/// The decoded body. `codings` is the header `content-encoding`, in the order in which the codings were applied.
pub(super) fn decode(body: Vec<u8>, codings: &str) -> Result<Vec<u8>, CodingError> {
    let codings: Vec<String> = codings.split(',').map(|coding| coding.trim().to_ascii_lowercase()).collect();
    let mut body = body;
    for coding in codings.iter().rev().filter(|coding| !coding.is_empty()).take(MAX_CODINGS) {
        body = match coding.as_str() {
            "identity" | "none" | "utf-8" => body,
            "gzip" | "x-gzip" if body.first() == Some(&0x1f) => read(coding, MultiGzDecoder::new(body.as_slice()))?,
            // A header that is wrong: the body is not compressed, or was decoded on the way.
            "gzip" | "x-gzip" => body,
            "deflate" if is_zlib(&body) => read(coding, ZlibDecoder::new(body.as_slice()))?,
            "deflate" => match read(coding, DeflateDecoder::new(body.as_slice())) {
                Err(CodingError::Broken(_)) if std::str::from_utf8(&body).is_ok() => body,
                decoded => decoded?,
            },
            other => return Err(CodingError::Unknown(other.to_owned())),
        };
    }
    Ok(body)
}

/// True if bytes begin as a gzip file does.
pub(crate) fn is_gzip(body: &[u8]) -> bool {
    body.starts_with(&[0x1f, 0x8b, 8])
}

/// The contents of a gzip file. `None` if it is broken or too long.
pub(crate) fn gunzip(body: &[u8]) -> Option<Vec<u8>> {
    read("gzip", MultiGzDecoder::new(body)).ok()
}

/// True if bytes begin with the header of zlib (RFC 1950).
fn is_zlib(body: &[u8]) -> bool {
    match body {
        [method, flags, ..] => {
            method & 0x0f == 8 && method >> 4 <= 7 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0
        }
        _ => false,
    }
}

/// All that a decoder gives. Stops at the limit, so that a few bytes cannot become many.
fn read(coding: &str, decoder: impl std::io::Read) -> Result<Vec<u8>, CodingError> {
    let mut decoded = Vec::new();
    let most = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    let length = decoder
        .take(most + 1)
        .read_to_end(&mut decoded)
        .map_err(|why| CodingError::Broken(format!("its {coding} body is broken ({why})")))?;
    if length > MAX_BODY_BYTES { Err(CodingError::TooLarge) } else { Ok(decoded) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_bodies_are_decoded() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(b"hello").unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(b"hello").unwrap();
        let twice = [gzip(b"hel"), gzip(b"lo")].concat();
        for (body, codings) in [
            (gzip(b"hello"), "gzip"),
            (gzip(b"hello"), "X-GZIP"),
            (twice, "gzip"),
            (gzip(&gzip(b"hello")), "gzip, gzip"),
            (zlib.finish().unwrap(), "deflate"),
            (raw.finish().unwrap(), "deflate"),
            (b"hello".to_vec(), "gzip"),
            (b"hello".to_vec(), "deflate"),
            (b"hello".to_vec(), "identity"),
        ] {
            assert_eq!(decode(body, codings), Ok(b"hello".to_vec()), "{codings}");
        }
    }

    #[test]
    fn bodies_that_cannot_be_decoded_give_the_reason() {
        assert_eq!(decode(Vec::new(), "br"), Err(CodingError::Unknown("br".to_owned())));
        assert_eq!(decode(gzip(&vec![0; 20 << 20]), "gzip"), Err(CodingError::TooLarge));
        let whole = gzip(b"hello");
        assert!(matches!(decode(whole[..12].to_vec(), "gzip"), Err(CodingError::Broken(_))));
    }
}
