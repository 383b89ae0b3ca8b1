//! Removes the position from the bytes of a picture: the GPS directory of Exif, and positions in XMP.
//!
//! Works on bytes in memory, and never needs to decode pixels. The functions for one kind of metadata are in `tiff` and `xmp`;
//! `png` rebuilds the chunks of a PNG, whose checksums change. What follows the end of a JPEG or a PNG is left out: phones put
//! films and further pictures there, each with its own position.

mod jpeg;
mod png;
pub(crate) mod tiff;
pub(crate) mod xmp;

use belljar_guest::{Error, Result};
use memchr::memmem;

use crate::format::Format;

/// A TIFF header in both orders of bytes. Exif data begins with one in every format.
const HEADERS: [&[u8]; 2] = [b"II*\0", b"MM\0*"];

/// The headers of a TIFF of more than 4 GB, whose directories have another form.
const LARGE: [&[u8]; 2] = [b"II+\0", b"MM\0+"];

/// The boxes of JPEG XL with compressed metadata.
const COMPRESSED: [&[u8]; 2] = [b"brobExif", b"brobxml "];

/// The most entries of directories that are looked at in one picture. A picture has about a hundred.
const MAX_ENTRIES: usize = 1_000_000;

/// The work that is left for one picture.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Budget(MAX_ENTRIES)
    }
}

impl Budget {
    /// Fails if fewer entries than `count` are left. Data that leads to nothing costs something, too.
    fn spend(&mut self, count: usize) -> Result<()> {
        self.0 = self.0.checked_sub(count + 100).ok_or_else(|| {
            Error::denied(format_args!(
                "the picture has more than {MAX_ENTRIES} entries of Exif data, so a position in it cannot be removed: the \
                 operator can allow positions with  env = {{ GPS = \"show\" }}"
            ))
        })?;
        Ok(())
    }
}

/// The bytes of a picture without its position. Fails if the position cannot be removed.
pub(crate) fn hide(format: Format, bytes: Vec<u8>) -> Result<Vec<u8>> {
    match format {
        Format::Jpeg => {
            let mut bytes = bytes;
            bytes.truncate(jpeg::end(&bytes));
            everywhere(&mut bytes)?;
            jpeg::blank_segments(&mut bytes);
            Ok(bytes)
        }
        Format::Png => png::without_position(&bytes),
        Format::Jxl if COMPRESSED.iter().any(|name| memmem::find(&bytes, name).is_some()) => Err(Error::denied(
            "the metadata of this JPEG XL is compressed, so a position in it cannot be removed: the operator can allow \
             positions with  env = { GPS = \"show\" }",
        )),
        Format::Tiff if LARGE.iter().any(|header| bytes.starts_with(header)) => Err(Error::denied(
            "this TIFF has the form for more than 4 GB, so a position in it cannot be removed: the operator can allow positions \
             with  env = { GPS = \"show\" }",
        )),
        Format::Gif
        | Format::WebP
        | Format::Bmp
        | Format::Tiff
        | Format::Avif
        | Format::Heic
        | Format::Jxl
        | Format::Ico => {
            let mut bytes = bytes;
            everywhere(&mut bytes)?;
            Ok(bytes)
        }
        Format::Svg => Ok(bytes),
    }
}

/// Removes the positions of all Exif data and of all XMP in `bytes`. Changes no length.
pub(crate) fn everywhere(bytes: &mut [u8]) -> Result<()> {
    let mut budget = Budget::default();
    for header in HEADERS {
        let mut from = 0;
        while let Some(at) = bytes.get(from..).and_then(|rest| memmem::find(rest, header)) {
            if let Some(data) = bytes.get_mut(from + at..) {
                tiff::blank(data, &mut budget)?;
            }
            budget.spend(0)?;
            from += at + header.len();
        }
    }
    xmp::blank_packets(bytes);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
