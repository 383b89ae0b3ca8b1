//! The segments of a JPEG up to its first scan (ITU T.81, annex B).

use std::io::{BufRead, ErrorKind, Result, Seek};

use super::{Facts, Steps, array, bytes, skip};

const EXIF: &[u8] = b"Exif\0\0";
const ADOBE: &[u8] = b"Adobe";

pub(super) fn read<R: BufRead + Seek>(source: &mut R, facts: &mut Facts) -> Result<()> {
    skip(source, 2)?;
    let mut steps = Steps::default();
    let (mut components, mut transform) = (Vec::new(), None);
    loop {
        steps.take()?;
        // Some cameras write bytes between segments.
        if source.skip_until(0xff)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut marker = 0xff;
        while marker == 0xff {
            [marker] = array(source)?;
        }
        match marker {
            0x00 | 0x01 | 0xd0..=0xd8 => continue,
            0xd9 | 0xda => break,
            _ => {}
        }
        let length = u64::from(u16::from_be_bytes(array(source)?)).saturating_sub(2);
        match marker {
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let data = bytes(source, length)?;
                if let [bits, h1, h2, w1, w2, _, rest @ ..] = data.as_slice() {
                    let (width, height) = (u16::from_be_bytes([*w1, *w2]), u16::from_be_bytes([*h1, *h2]));
                    facts.size = Some((width.into(), height.into()));
                    facts.bits = Some(*bits);
                    facts.is_progressive = matches!(marker, 0xc2 | 0xc6 | 0xca | 0xce);
                    components = rest.as_chunks::<3>().0.to_vec();
                }
            }
            0xe1 if length > 6 => {
                let data = bytes(source, length)?;
                if let Some(exif) = data.strip_prefix(EXIF).filter(|_| facts.exif.is_none()) {
                    facts.exif = Some(exif.to_vec());
                }
            }
            0xee => {
                let data = bytes(source, length)?;
                if data.starts_with(ADOBE) {
                    transform = data.get(11).copied();
                }
            }
            _ => skip(source, length)?,
        }
    }
    facts.colour = colour(&components, transform);
    facts.jpeg_samples = samples(facts.size.unwrap_or_default(), &components);
    if facts.size.is_none() { Err(ErrorKind::InvalidData.into()) } else { Ok(()) }
}

/// The kind of colours, as decoders guess it.
fn colour(components: &[[u8; 3]], transform: Option<u8>) -> Option<&'static str> {
    let ids: Vec<u8> = components.iter().map(|[id, ..]| *id).collect();
    Some(match (ids.as_slice(), transform) {
        ([_], _) => "grey",
        ([b'R', b'G', b'B'] | [b'r', b'g', b'b'], _) | ([_, _, _], Some(0)) => "rgb",
        ([_, _, _], _) => "ycbcr",
        ([_, _, _, _], Some(2)) => "ycck",
        ([_, _, _, _], _) => "cmyk",
        _ => return None,
    })
}

/// The number of coefficients of all components, each in proportion to its sampling factors.
fn samples((width, height): (u32, u32), components: &[[u8; 3]]) -> u64 {
    let factors = |[_, factors, _]: &[u8; 3]| (u64::from(factors >> 4).max(1), u64::from(factors & 15).max(1));
    let across = components.iter().map(|component| factors(component).0).max().unwrap_or(1);
    let down = components.iter().map(|component| factors(component).1).max().unwrap_or(1);
    let blocks = u64::from(width).div_ceil(8 * across) * u64::from(height).div_ceil(8 * down);
    components.iter().map(|component| factors(component).0 * factors(component).1 * blocks * 64).sum()
}
