//! The protocol's error message: what belljar tells a guest, and what a server tells belljar.

use bytes::{BufMut, BytesMut};

use super::wire::{tag, text};

/// Writes an error that ends the connection (PostgreSQL 55.8). `code` is an SQLSTATE.
pub(super) fn write_fatal(code: &str, message: &str, out: &mut BytesMut) {
    let mut body = BytesMut::new();
    for (field, value) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', message)] {
        body.put_u8(field);
        body.extend(value.bytes().filter(|byte| *byte != 0));
        body.put_u8(0);
    }
    body.put_u8(0);
    out.put_u8(tag::ERROR);
    out.put_u32(u32::try_from(body.len() + 4).unwrap_or(u32::MAX));
    out.extend_from_slice(&body);
}

/// The SQLSTATE of a server's error: five letters or digits. `None`: the message has none.
pub(super) fn sqlstate(mut body: &[u8]) -> Option<&str> {
    while let Some((field, rest)) = body.split_first().filter(|(field, _)| **field != 0) {
        body = rest;
        let value = text(&mut body)?;
        if *field == b'C' {
            return Some(value).filter(|code| code.len() == 5 && code.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_found() {
        let mut out = BytesMut::new();
        write_fatal("28P01", "no\0 password", &mut out);
        assert_eq!(sqlstate(&out[5..]), Some("28P01"));
        assert_eq!(u32::from_be_bytes(out[1..5].try_into().unwrap()) as usize, out.len() - 1);
        for wrong in [&b""[..], b"\0", b"Sx", b"C12\0\0", b"C1234\n\0\0", b"C\xff\0\0"] {
            assert_eq!(sqlstate(wrong), None, "{wrong:?}");
        }
    }
}
