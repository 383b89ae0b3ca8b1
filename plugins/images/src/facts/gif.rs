//! The blocks of a GIF (GIF89a).

use std::io::{BufRead, Result, Seek};

use super::{Animation, Facts, Steps, array, bytes, skip};

const REPEATS: [&[u8]; 2] = [b"NETSCAPE2.0", b"ANIMEXTS1.0"];

pub(super) fn read<R: BufRead + Seek>(source: &mut R, facts: &mut Facts) -> Result<()> {
    skip(source, 6)?;
    let [w1, w2, h1, h2, flags, _, _] = array(source)?;
    facts.size = Some((u16::from_le_bytes([w1, w2]).into(), u16::from_le_bytes([h1, h2]).into()));
    facts.colour = Some("palette");
    facts.bits = Some(8);
    skip_palette(source, flags)?;
    let mut steps = Steps::default();
    let mut animation = Animation { frames: 0, duration: 0, plays: None };
    let read = blocks(source, facts, &mut animation, &mut steps);
    if animation.frames > 1 {
        facts.animation = Some(animation);
    }
    read
}

fn blocks<R: BufRead + Seek>(
    source: &mut R,
    facts: &mut Facts,
    animation: &mut Animation,
    steps: &mut Steps,
) -> Result<()> {
    loop {
        steps.take()?;
        let [kind] = array(source)?;
        match kind {
            // An extension.
            0x21 => {
                let [label, length] = array(source)?;
                let head = bytes(source, length.into())?;
                match (label, head.as_slice()) {
                    (0xf9, [_, low, high, _]) => {
                        animation.duration += u64::from(u16::from_le_bytes([*low, *high])) * 10
                    }
                    (0xff, name) if REPEATS.contains(&name) => {
                        let [size] = array(source)?;
                        let data = bytes(source, size.into())?;
                        if let [1, low, high] = data.as_slice() {
                            animation.plays = Some(u16::from_le_bytes([*low, *high]).into());
                        }
                        if size == 0 {
                            continue;
                        }
                    }
                    _ if length == 0 => continue,
                    _ => {}
                }
                skip_blocks(source, steps)?;
            }
            // A frame.
            0x2c => {
                let [l1, l2, t1, t2, w1, w2, h1, h2, flags] = array(source)?;
                if animation.frames == 0 {
                    let pair = |a, b, c, d| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
                    facts.size = facts.size.map(|screen| size(screen, pair(l1, l2, t1, t2), pair(w1, w2, h1, h2)));
                    facts.is_interlaced = flags & 0x40 != 0;
                }
                animation.frames += 1;
                skip_palette(source, flags)?;
                skip(source, 1)?;
                skip_blocks(source, steps)?;
            }
            0x3b => return Ok(()),
            // Some programs write other bytes between blocks, and decoders skip them.
            _ => {}
        }
    }
}

/// The dimensions of a picture: of its screen, which is as large as its first frame at least.
pub(crate) fn size(screen: (u32, u32), (left, top): (u16, u16), (width, height): (u16, u16)) -> (u32, u32) {
    (screen.0.max(u32::from(left) + u32::from(width)), screen.1.max(u32::from(top) + u32::from(height)))
}

fn skip_palette(source: &mut impl Seek, flags: u8) -> Result<()> {
    if flags & 0x80 == 0 {
        return Ok(());
    }
    skip(source, 3 << ((flags & 7) + 1))
}

fn skip_blocks<R: BufRead + Seek>(source: &mut R, steps: &mut Steps) -> Result<()> {
    loop {
        steps.take()?;
        let [length] = array(source)?;
        if length == 0 {
            return Ok(());
        }
        skip(source, length.into())?;
    }
}
