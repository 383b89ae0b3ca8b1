//! The chunks of a WebP (RFC 9649, section 2).

use std::io::{BufRead, ErrorKind, Result, Seek};

use super::{Animation, Facts, Steps, array, bytes, skip};

/// The part of the data of a chunk that shows the dimensions of its picture.
const HEAD: u64 = 10;

/// The length of the header of a frame.
const FRAME: u64 = 16;

pub(super) fn read<R: BufRead + Seek>(source: &mut R, facts: &mut Facts) -> Result<()> {
    skip(source, 12)?;
    facts.bits = Some(8);
    let mut steps = Steps::default();
    let mut animation: Option<Animation> = None;
    let walked = loop {
        if let Err(error) = steps.take() {
            break Err(error);
        }
        let kind: [u8; 4] = match array(source) {
            Ok(kind) => kind,
            // The end between two chunks is the end of the file.
            Err(_) => break Ok(()),
        };
        let Ok(length) = array(source).map(u32::from_le_bytes).map(u64::from) else {
            break Err(ErrorKind::UnexpectedEof.into());
        };
        let padded = length + length % 2;
        let data = match &kind {
            b"VP8X" | b"VP8 " | b"VP8L" => bytes(source, padded.min(HEAD))?,
            b"ANIM" => bytes(source, padded.min(6))?,
            // With the beginning of the picture in it.
            b"ANMF" => bytes(source, padded.min(FRAME + 8 + HEAD))?,
            b"EXIF" => bytes(source, padded)?,
            _ => Vec::new(),
        };
        let read = data.len() as u64;
        match (&kind, data.as_slice()) {
            (b"VP8X", [flags, _, _, _, w1, w2, w3, h1, h2, h3]) => {
                let long = |a: &u8, b: &u8, c: &u8| u32::from_le_bytes([*a, *b, *c, 0]) + 1;
                facts.size = Some((long(w1, w2, w3), long(h1, h2, h3)));
                facts.colour = Some(if flags & 0x10 == 0 { "rgb" } else { "rgb with alpha" });
            }
            (b"VP8 " | b"VP8L", data) => picture(kind, data, facts)?,
            (b"ANIM", [_, _, _, _, low, high]) => {
                let plays = Some(u16::from_le_bytes([*low, *high]).into());
                animation = Some(Animation { plays, ..Animation::default() });
            }
            (b"ANMF", [_, _, _, _, _, _, _, _, _, _, _, _, d1, d2, d3, _, rest @ ..]) => {
                if let Some(animation) = &mut animation {
                    animation.frames += 1;
                    animation.duration += u64::from(u32::from_le_bytes([*d1, *d2, *d3, 0]));
                }
                if let Some((kind, rest)) = rest.split_first_chunk::<4>() {
                    picture(*kind, rest.get(4..).unwrap_or_default(), facts)?;
                }
            }
            (b"EXIF", _) => {
                let exif = data.strip_prefix(b"Exif\0\0").unwrap_or(&data);
                facts.exif = Some(
                    exif.get(..exif.len().min(usize::try_from(length).unwrap_or(usize::MAX)))
                        .unwrap_or_default()
                        .to_vec(),
                );
            }
            _ => {}
        }
        skip(source, padded.saturating_sub(read))?;
    };
    facts.animation = animation;
    walked
}

/// The dimensions and colours of the data of a picture. A picture that is larger than its file says would take memory that
/// nobody has checked.
fn picture(kind: [u8; 4], data: &[u8], facts: &mut Facts) -> Result<()> {
    let (size, colour) = match (&kind, data) {
        // Section 2.5 of RFC 9649: after the frame tag and the start code.
        (b"VP8 ", [_, _, _, 0x9d, 0x01, 0x2a, w1, w2, h1, h2]) => {
            let side = |low: &u8, high: &u8| u32::from(u16::from_le_bytes([*low, *high]) & 0x3fff);
            ((side(w1, w2), side(h1, h2)), "rgb")
        }
        (b"VP8L", [0x2f, a, b, c, d, ..]) => {
            let bits = u32::from_le_bytes([*a, *b, *c, *d]);
            let colour = if bits & (1 << 28) == 0 { "rgb" } else { "rgb with alpha" };
            (((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1), colour)
        }
        _ => return Ok(()),
    };
    match facts.size {
        None => {
            facts.size = Some(size);
            facts.colour = Some(colour);
            Ok(())
        }
        Some(canvas) if size.0 > canvas.0 || size.1 > canvas.1 => {
            facts.size = None;
            Err(ErrorKind::InvalidData.into())
        }
        Some(_) => Ok(()),
    }
}
