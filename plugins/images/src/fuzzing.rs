//! Calls the parsers of pictures with any bytes. The crates that decode have fuzz targets of their own.

use std::io::Cursor;

use crate::decode::{Caps, decode};
use crate::facts::Facts;
use crate::format::Format;
use crate::{exif, hide};

/// The most pixels of a picture that a target decodes.
const PIXELS: u64 = 1 << 20;

/// The facts of a file, and a thumbnail of it.
pub fn picture(bytes: &[u8]) {
    let Some(format) = Format::of(bytes) else { return };
    let facts = Facts::of(format, &mut Cursor::new(bytes));
    let _ = facts.exif.as_deref().and_then(exif::read);
    let _ = decode(Cursor::new(bytes), &facts, 64, Caps { pixels: PIXELS });
}

/// Exif data.
pub fn exif(bytes: &[u8]) {
    let _ = exif::read(bytes);
    let mut bytes = bytes.to_vec();
    let _ = hide::everywhere(&mut bytes);
    assert!(exif::read(&bytes).is_none_or(|camera| camera.position.is_none()), "a position is left");
}

/// The bytes of a file without its position.
pub fn original(bytes: &[u8]) {
    let Some(format) = Format::of(bytes) else { return };
    if let Ok(hidden) = hide::hide(format, bytes.to_vec()) {
        assert!(hidden.len() <= bytes.len(), "a file grew");
    }
}
