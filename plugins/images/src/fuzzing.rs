//! Calls the parsers of this crate with any bytes. The crates that decode have fuzz targets of their own.

use std::io::Cursor;

use belljar_tree::Path;

use crate::decode::{Caps, decode};
use crate::facts::Facts;
use crate::format::Format;
use crate::query::{Place, Query};
use crate::{exif, hide};

/// The most pixels of a picture that a target decodes.
const PIXELS: u64 = 1 << 16;

/// The headers of a file.
pub fn facts(bytes: &[u8]) {
    let Some(format) = Format::of(bytes) else { return };
    let facts = Facts::of(format, &mut Cursor::new(bytes));
    assert!(facts.exif.is_none_or(|exif| exif.len() <= bytes.len()), "more Exif data than the file has");
}

/// A BMP, decoded to a small picture.
pub fn bmp(bytes: &[u8]) {
    if Format::of(bytes) != Some(Format::Bmp) {
        return;
    }
    let facts = Facts::of(Format::Bmp, &mut Cursor::new(bytes));
    if let Ok(decoded) = decode(Cursor::new(bytes), &facts, 16, Caps { pixels: PIXELS }) {
        assert!(decoded.raster.width <= 16 && decoded.raster.height <= 16, "a picture is larger than its square");
    }
}

/// Exif data, from its TIFF header on.
pub fn exif(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if hide::everywhere(&mut bytes).is_ok() {
        let left = exif::read(&bytes).and_then(|camera| camera.position);
        assert!(left.is_none(), "a position is left: {left:?}");
    }
}

/// The bytes of a file without its position.
pub fn original(bytes: &[u8]) {
    let Some(format) = Format::of(bytes) else { return };
    if let Ok(hidden) = hide::hide(format, bytes.to_vec()) {
        assert!(hidden.len() <= bytes.len(), "a file grew");
        assert!(Format::of(&hidden) == Some(format), "a file changed its format");
    }
}

/// The query of a reference.
pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let directory = || Path { path: String::new(), is_directory: true };
    for place in [Place::Latest(directory()), Place::Sheet(directory())] {
        let _ = Query::parse(&text, &place);
    }
}
