//! JPEG: decoded at an eighth, a quarter or a half of the size, if the result is that small.

use std::io::{self, Read};

use belljar_guest::Result;
use jpeg_decoder::{CodingProcess, Decoder, PixelFormat};

use super::{Decoded, damaged, finish, reserve};
use crate::facts::Facts;
use crate::scale::Scaler;

/// An end marker. With it at the end of the file, the decoder renders what a truncated file has.
const END: [u8; 2] = [0xff, 0xd9];

/// The most end markers. The decoder asks for the next one if it needs more than there is.
const MAX_ENDS: usize = 16;

/// Bytes that an unscaled picture takes beside its result, for each pixel: the planes of four components.
const PLANES: u64 = 4;

/// How many bytes are read at once.
const BUFFER: usize = 32 * 1024;

/// A source with end markers after its end. The decoder reads single bytes, and a buffer here makes that cheap: through
/// `BufReader`, it takes a third of all fuel.
struct Ended<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    ends: usize,
}

impl<R: Read> Ended<R> {
    /// The bytes that are there; at least one, unless all end markers are used up.
    fn ready(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.buffer.len() {
            self.at = 0;
            self.buffer.resize(BUFFER, 0);
            let length = self.source.read(&mut self.buffer)?;
            self.buffer.truncate(length);
            if length == 0 && self.ends < MAX_ENDS {
                self.ends += 1;
                self.buffer.extend_from_slice(&END);
            }
        }
        Ok(self.buffer.get(self.at..).unwrap_or_default())
    }
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.ready()?.read(buffer)?;
        self.at += length;
        Ok(length)
    }

    #[inline]
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        if let ([single], Some(byte)) = (&mut *buffer, self.buffer.get(self.at)) {
            *single = *byte;
            self.at += 1;
            return Ok(());
        }
        let mut rest = buffer;
        while !rest.is_empty() {
            let length = self.read(rest)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            rest = rest.get_mut(length..).unwrap_or_default();
        }
        Ok(())
    }
}

pub(super) fn decode<R: Read>(source: R, facts: &Facts, target: (u32, u32)) -> Result<Decoded> {
    let size = facts.size.unwrap_or_default();
    let mut ended = Ended { source, buffer: Vec::new(), at: 0, ends: 0 };
    let mut decoder = Decoder::new(&mut ended);
    let side = |length: u32| u16::try_from(length).unwrap_or(u16::MAX);
    decoder.read_info().map_err(damaged)?;
    let is_lossless = decoder.info().is_some_and(|info| info.coding_process == CodingProcess::Lossless);
    let (width, height) = if is_lossless {
        // Has no coefficients, and the decoder would claim a scaled size for pixels in full size.
        (side(size.0), side(size.1))
    } else {
        decoder.scale(side(target.0), side(target.1)).map_err(damaged)?
    };
    let scaled = u64::from(width) * u64::from(height);
    // A progressive picture keeps all its coefficients until the end. Their number does not depend on the scale.
    let coefficients = if facts.is_progressive { facts.jpeg_samples * 2 } else { 0 };
    let planes = if is_lossless { PLANES * 2 } else { PLANES };
    reserve(size, scaled * (planes + facts.channels()) + coefficients)?;
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
    if ended.ends > 0 {
        decoded.missing = Some("truncated: the file ends before the picture does".to_owned());
    }
    Ok(decoded)
}

/// The light that an ink and black let through.
fn mixed(ink: u8, black: u8) -> u8 {
    let light = u16::from(u8::MAX - ink) * u16::from(u8::MAX - black) / u16::from(u8::MAX);
    u8::try_from(light).unwrap_or(u8::MAX)
}
