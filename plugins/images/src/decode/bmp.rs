//! BMP: row by row. The crates that were tried show the colours of 1, 4 and 16 bits wrong, so this is code of our own.
//!
//! Knows pixels without compression, which are almost all files. The header is checked before anything is allocated.

use std::io::{BufRead, Read as _, Seek, SeekFrom};

use belljar_guest::{Error, Result};

use super::{Decoded, damaged, finish, reserve};
use crate::orient::upright;
use crate::scale::{PIXEL, Scaler};

/// The orientation of a picture whose rows begin at the bottom.
const FLIPPED: u8 = 4;

/// How the bits of a pixel become a colour.
enum Layout {
    /// An index of so many bits.
    Indexed(u32, Box<[[u8; 3]; 256]>),
    /// Blue, green and red, one byte each.
    Bytes,
    /// Two or four bytes with a mask for red, green, blue and alpha.
    Masks(usize, [Mask; PIXEL]),
}

/// A mask of bits, as its place and its highest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mask {
    shift: u32,
    most: u32,
}

/// What the header says.
struct Header {
    size: (u32, u32),
    is_upside_down: bool,
    /// The position of the pixels, and the length of a row.
    pixels: u64,
    row: usize,
    layout: Layout,
}

pub(super) fn decode<R: BufRead + Seek>(mut source: R, target: (u32, u32)) -> Result<Decoded> {
    let header = header(&mut source)?;
    let (width, height) = header.size;
    reserve(header.size, header.row as u64 + u64::from(width) * 8)?;
    let mut scaler = Scaler::new(header.size, target)?;
    let mut bytes = vec![0; header.row];
    let mut row = Vec::new();
    let mut failure = source.seek(SeekFrom::Start(header.pixels)).err().map(|error| error.to_string());
    for _ in 0..height {
        if let Err(error) = source.read_exact(&mut bytes) {
            failure = Some(error.to_string());
            break;
        }
        row.clear();
        header.layout.spread(&bytes, &mut row);
        row.resize(width as usize * PIXEL, 0);
        scaler.add::<PIXEL>(&row);
    }
    let mut decoded = finish(scaler, height, None, failure)?;
    if header.is_upside_down {
        decoded.raster = upright(decoded.raster, FLIPPED)?;
    }
    Ok(decoded)
}

fn header<R: BufRead + Seek>(source: &mut R) -> Result<Header> {
    let mut head = Vec::new();
    // The headers, masks and a palette of 256 colours.
    source.by_ref().take(14 + 124 + 12 + 1024).read_to_end(&mut head).map_err(damaged)?;
    let short = |at: usize| head.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u16::from_le_bytes(*bytes));
    let long = |at: usize| head.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes));
    let truncated = || damaged("its header is truncated");
    let pixels = long(10).ok_or_else(truncated)?;
    let length = long(14).ok_or_else(truncated)? as usize;
    let is_old = length == 12;
    let (width, height, bits) = if is_old {
        (short(18).map(u32::from), short(20).map(i32::from), short(24))
    } else {
        (long(18), long(22).map(u32::cast_signed), short(28))
    };
    let (Some(width), Some(height), Some(bits)) = (width, height, bits) else { return Err(truncated()) };
    let compression = if is_old { 0 } else { long(30).unwrap_or_default() };
    let masks_at = 14 + 40;
    let layout = match (bits, compression) {
        (1 | 2 | 4 | 8, 0) => {
            let entry = if is_old { 3 } else { 4 };
            let mut palette = Box::new([[0; 3]; 256]);
            let entries = head.get(14 + length..).unwrap_or_default().chunks_exact(entry);
            for (colour, stored) in palette.iter_mut().zip(entries) {
                if let [blue, green, red, ..] = stored {
                    *colour = [*red, *green, *blue];
                }
            }
            Layout::Indexed(bits.into(), palette)
        }
        (24, 0) => Layout::Bytes,
        (16, 0) => Layout::Masks(2, [0x7c00, 0x03e0, 0x001f, 0].map(Mask::new)),
        (32, 0) => Layout::Masks(4, [0xff_0000, 0xff00, 0xff, 0].map(Mask::new)),
        // The fourth mask, for alpha, is part of the header since its third version.
        (16 | 32, 3 | 6) => {
            let mask = |index: usize| long(masks_at + index * 4).unwrap_or_default();
            let alpha = if length >= 56 || compression == 6 { mask(3) } else { 0 };
            Layout::Masks(usize::from(bits) / 8, [mask(0), mask(1), mask(2), alpha].map(Mask::new))
        }
        (bits, 0) => return Err(damaged(format_args!("its pixels have {bits} bits"))),
        (_, compression) => {
            return Err(Error::failed(format_args!(
                "the picture is a BMP with compression {compression}, and only BMP without compression is decoded: read it without \
                 \"size\""
            )));
        }
    };
    let row = u64::from(width).saturating_mul(bits.into()).div_ceil(32).saturating_mul(4);
    let row = usize::try_from(row).ok().filter(|row| *row <= 1 << 24);
    let row = row.ok_or_else(|| damaged(format_args!("its rows have {width} pixels")))?;
    Ok(Header { size: (width, height.unsigned_abs()), is_upside_down: height > 0, pixels: pixels.into(), row, layout })
}

impl Layout {
    /// The pixels of a row, four bytes each. May be a few more than the width.
    fn spread(&self, bytes: &[u8], row: &mut Vec<u8>) {
        match self {
            Layout::Indexed(bits, palette) => {
                let mask = u8::try_from((1_u32 << bits) - 1).unwrap_or(u8::MAX);
                for byte in bytes {
                    for place in (0..8 / bits).rev() {
                        let index = byte >> (place * bits) & mask;
                        let [red, green, blue] = palette.get(usize::from(index)).copied().unwrap_or_default();
                        row.extend([red, green, blue, u8::MAX]);
                    }
                }
            }
            Layout::Bytes => {
                let (pixels, _) = bytes.as_chunks();
                row.extend(pixels.iter().flat_map(|[blue, green, red]| [*red, *green, *blue, u8::MAX]));
            }
            Layout::Masks(2, masks) => {
                let (pixels, _) = bytes.as_chunks();
                row.extend(pixels.iter().flat_map(|pixel| colour(masks, u16::from_le_bytes(*pixel).into())));
            }
            Layout::Masks(_, masks) => {
                let (pixels, _) = bytes.as_chunks();
                row.extend(pixels.iter().flat_map(|pixel| colour(masks, u32::from_le_bytes(*pixel))));
            }
        }
    }
}

fn colour(masks: &[Mask; PIXEL], pixel: u32) -> [u8; PIXEL] {
    let [red, green, blue, alpha] = *masks;
    let alpha = if alpha.most == 0 { u8::MAX } else { alpha.value(pixel) };
    [red.value(pixel), green.value(pixel), blue.value(pixel), alpha]
}

impl Mask {
    fn new(mask: u32) -> Mask {
        let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
        Mask { shift, most: mask >> shift }
    }

    /// The value of a pixel, from 0 to 255.
    fn value(self, pixel: u32) -> u8 {
        let value = u64::from(pixel >> self.shift & self.most) * 255;
        let most = u64::from(self.most);
        u8::try_from((value + most / 2).checked_div(most).unwrap_or_default()).unwrap_or(u8::MAX)
    }
}
