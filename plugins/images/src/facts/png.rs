//! The chunks of a PNG (PNG, third edition, section 11).

use std::io::{BufRead, Result, Seek};

use super::{Animation, Facts, Steps, array, bytes, skip};

pub(super) fn read<R: BufRead + Seek>(source: &mut R, facts: &mut Facts) -> Result<()> {
    skip(source, 8)?;
    let mut steps = Steps::default();
    let mut has_transparency = false;
    loop {
        steps.take()?;
        let length = u64::from(u32::from_be_bytes(array(source)?));
        let kind: [u8; 4] = array(source)?;
        let mut read = 0;
        match &kind {
            b"IHDR" if length >= 13 => {
                let header: [u8; 13] = array(source)?;
                read = 13;
                let [w1, w2, w3, w4, h1, h2, h3, h4, bits, colour, _, _, interlace] = header;
                facts.size = Some((u32::from_be_bytes([w1, w2, w3, w4]), u32::from_be_bytes([h1, h2, h3, h4])));
                facts.bits = Some(bits);
                facts.colour = match colour {
                    0 => Some("grey"),
                    2 => Some("rgb"),
                    3 => Some("palette"),
                    4 => Some("grey with alpha"),
                    6 => Some("rgb with alpha"),
                    _ => None,
                };
                facts.is_interlaced = interlace == 1;
            }
            b"tRNS" => has_transparency = true,
            b"acTL" if length >= 8 => {
                let [a, b, c, d, e, f, g, h] = array(source)?;
                read = 8;
                let (frames, plays) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                // Another number is against the standard, and decoders show the picture without animation.
                let is_valid = (1..1 << 31).contains(&frames);
                facts.animation = is_valid.then_some(Animation { frames, duration: 0, plays: Some(plays) });
            }
            b"fcTL" if length >= 26 => {
                let control: [u8; 26] = array(source)?;
                read = 26;
                let [.., a, b, c, d, _, _] = control;
                let (delay, unit) = (u64::from(u16::from_be_bytes([a, b])), u64::from(u16::from_be_bytes([c, d])));
                if let Some(animation) = &mut facts.animation {
                    animation.duration += delay * 1000 / if unit == 0 { 100 } else { unit };
                }
            }
            b"eXIf" if facts.exif.is_none() => {
                let exif = bytes(source, length)?;
                read = exif.len() as u64;
                facts.exif = Some(exif);
            }
            b"IEND" => break,
            _ => {}
        }
        skip(source, (length + 4).saturating_sub(read))?;
    }
    if has_transparency && facts.colour == Some("palette") {
        facts.colour = Some("palette with alpha");
    }
    Ok(())
}
