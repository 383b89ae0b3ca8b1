//! JPEG: decoded at an eighth, a quarter or a half of the size, if the result is that small.

use std::io::{self, BufRead, Read};

use belljar_guest::Result;
use jpeg_decoder::{Decoder, PixelFormat};

use super::{Decoded, damaged, finish, reserve};
use crate::facts::Facts;
use crate::scale::Scaler;

/// End markers after the end of the file. With them, the decoder renders what a truncated file has.
const ENDS: [u8; 32] = {
    let mut ends = [0xff; 32];
    let mut at = 1;
    while at < ends.len() {
        ends[at] = 0xd9;
        at += 2;
    }
    ends
};

/// Bytes that an unscaled picture takes beside its result, for each pixel: the planes of four components.
const PLANES: u64 = 4;

/// A source with end markers after its end. Remembers if they were read.
struct Ended<R> {
    source: R,
    ends: &'static [u8],
}

impl<R: BufRead> Read for Ended<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.source.read(buffer)? {
            0 => self.ends.read(buffer),
            length => Ok(length),
        }
    }
}

pub(super) fn decode<R: BufRead>(source: R, facts: &Facts, target: (u32, u32)) -> Result<Decoded> {
    let size = facts.size.unwrap_or_default();
    let mut ended = Ended { source, ends: &ENDS };
    let mut decoder = Decoder::new(&mut ended);
    let side = |length: u32| u16::try_from(length).unwrap_or(u16::MAX);
    let (width, height) = decoder.scale(side(target.0), side(target.1)).map_err(damaged)?;
    let scaled = u64::from(width) * u64::from(height);
    // A progressive picture keeps all its coefficients until the end. Their number does not depend on the scale.
    let coefficients = if facts.is_progressive { facts.jpeg_samples * 2 } else { 0 };
    reserve(size, scaled * (PLANES + facts.channels()) + coefficients)?;
    let pixels = decoder.decode().map_err(damaged)?;
    let format = decoder.info().map(|info| info.pixel_format);
    // A profile of printing colours does not fit to the converted pixels.
    let profile = decoder.icc_profile().filter(|_| format == Some(PixelFormat::RGB24));
    drop(decoder);
    let mut scaler = Scaler::new((width.into(), height.into()), target)?;
    let length = usize::from(width).max(1) * format.map_or(1, |format| format.pixel_bytes());
    let mut row = Vec::new();
    for line in pixels.chunks_exact(length) {
        row.clear();
        match format {
            Some(PixelFormat::RGB24) => {
                scaler.add::<3>(line);
                continue;
            }
            Some(PixelFormat::CMYK32) => {
                let (inks, _) = line.as_chunks();
                row.extend(
                    inks.iter().flat_map(|[cyan, magenta, yellow, black]| {
                        [cyan, magenta, yellow].map(|ink| mixed(*ink, *black))
                    }),
                );
            }
            Some(PixelFormat::L16) => {
                let (samples, _) = line.as_chunks();
                row.extend(samples.iter().flat_map(|sample| [u16::from_ne_bytes(*sample).to_be_bytes()[0]; 3]));
            }
            Some(PixelFormat::L8) | None => row.extend(line.iter().flat_map(|gray| [*gray; 3])),
        }
        scaler.add::<3>(&row);
    }
    let mut decoded = finish(scaler, height.into(), profile, None)?;
    if ended.ends.len() < ENDS.len() {
        decoded.missing = Some("truncated: the file ends before the picture does".to_owned());
    }
    Ok(decoded)
}

/// The light that an ink and black let through.
fn mixed(ink: u8, black: u8) -> u8 {
    let light = u16::from(u8::MAX - ink) * u16::from(u8::MAX - black) / u16::from(u8::MAX);
    u8::try_from(light).unwrap_or(u8::MAX)
}
