//! The facts of a picture from the headers of its file: dimensions, colours, frames, and where its Exif data is.
//!
//! Decodes no pixels, and skips what it does not need, so the size of a file does not matter. A damaged file gives the facts
//! that are there. The modules below know one format each; the crate `imagesize` knows the formats that are not decoded.

mod bmp;
mod gif;
mod jpeg;
mod png;
mod webp;

use std::io::{BufRead, ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

pub(crate) use gif::size as gif_size;

use crate::exif;
use crate::format::Format;

/// The facts of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) format: Format,
    /// Width and height in pixels, as stored. `None` if the file does not say.
    pub(crate) size: Option<(u32, u32)>,
    /// The kind of colours, such as `rgb`, `palette` or `ycbcr`.
    pub(crate) colour: Option<&'static str>,
    /// Bits of one sample; for a palette, of its index.
    pub(crate) bits: Option<u8>,
    pub(crate) is_progressive: bool,
    pub(crate) is_interlaced: bool,
    pub(crate) animation: Option<Animation>,
    /// The coefficients of a JPEG, without those of incomplete blocks at the edges.
    pub(crate) jpeg_samples: u64,
    /// Exif data, from its TIFF header on.
    pub(crate) exif: Option<Vec<u8>>,
    /// Why the facts are incomplete.
    pub(crate) damage: Option<&'static str>,
}

/// The frames of a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Animation {
    pub(crate) frames: u32,
    /// The sum of all delays, in milliseconds.
    pub(crate) duration: u64,
    /// How many times it is played; 0: for ever.
    pub(crate) plays: Option<u32>,
}

/// The most chunks, blocks or segments that are visited. A file of endless small ones would take all the time of a call.
const MAX_STEPS: usize = 200_000;

/// The most bytes of Exif data.
const MAX_EXIF: usize = 1 << 20;

/// The most bytes of a TIFF that are searched for Exif data. Its crate reads them into memory.
const MAX_TIFF: u64 = 8 << 20;

impl Facts {
    /// The facts of a picture that begins at position 0 of `source`.
    pub(crate) fn of<R: BufRead + Seek>(format: Format, source: &mut R) -> Facts {
        let mut facts = Facts {
            format,
            size: None,
            colour: None,
            bits: None,
            is_progressive: false,
            is_interlaced: false,
            animation: None,
            jpeg_samples: 0,
            exif: None,
            damage: None,
        };
        let read = match format {
            Format::Jpeg => jpeg::read(source, &mut facts),
            Format::Png => png::read(source, &mut facts),
            Format::Gif => gif::read(source, &mut facts),
            Format::WebP => webp::read(source, &mut facts),
            Format::Bmp => bmp::read(source, &mut facts),
            Format::Tiff | Format::Avif | Format::Heic | Format::Jxl | Format::Ico => other(source, &mut facts),
            Format::Svg => Ok(()),
        };
        if let Err(error) = read {
            facts.damage = Some(match error.kind() {
                ErrorKind::UnexpectedEof => "the file is truncated",
                ErrorKind::QuotaExceeded => "the file has too many parts to visit all of them",
                _ => "a header of the file is damaged",
            });
        }
        facts
    }

    /// The number of samples of a pixel.
    pub(crate) fn channels(&self) -> u64 {
        match self.colour {
            Some("grey") => 1,
            Some("cmyk" | "ycck") => 4,
            _ => 3,
        }
    }
}

/// The formats that are not decoded.
fn other<R: BufRead + Seek>(source: &mut R, facts: &mut Facts) -> IoResult<()> {
    let size = imagesize::reader_size(&mut *source).ok();
    facts.size = size.and_then(|size| Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?)));
    if matches!(facts.format, Format::Tiff | Format::Avif | Format::Heic) {
        source.seek(SeekFrom::Start(0))?;
        facts.exif = exif::in_container(source, facts.format, MAX_TIFF);
    }
    if facts.size.is_none() {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(())
}

/// Counts the steps of a walk over the parts of a file.
#[derive(Debug, Default)]
struct Steps(usize);

impl Steps {
    fn take(&mut self) -> IoResult<()> {
        self.0 += 1;
        if self.0 > MAX_STEPS { Err(ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
    }
}

fn array<const LENGTH: usize>(source: &mut impl Read) -> IoResult<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Skips so many bytes. Skipping beyond the end is no error; the next read is.
fn skip(source: &mut impl Seek, length: u64) -> IoResult<()> {
    source.seek_relative(i64::try_from(length).map_err(|_| ErrorKind::UnexpectedEof)?)
}

/// Reads so many bytes, or fewer at the end of the file.
fn bytes(source: &mut impl Read, length: u64) -> IoResult<Vec<u8>> {
    let mut data = Vec::new();
    source.take(length.min(MAX_EXIF as u64)).read_to_end(&mut data)?;
    Ok(data)
}

#[cfg(test)]
mod tests;
