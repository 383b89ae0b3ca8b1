//! The header of a BMP.

use std::io::{BufRead, ErrorKind, Result, Seek};

use super::{Facts, array, skip};

pub(super) fn read<R: BufRead + Seek>(source: &mut R, facts: &mut Facts) -> Result<()> {
    skip(source, 14)?;
    let header = u32::from_le_bytes(array(source)?);
    let bits = if header == 12 {
        let (width, height) = (u16::from_le_bytes(array(source)?), u16::from_le_bytes(array(source)?));
        facts.size = Some((width.into(), height.into()));
        skip(source, 2)?;
        u16::from_le_bytes(array(source)?)
    } else {
        // A negative height: the rows begin at the top.
        let (width, height) = (i32::from_le_bytes(array(source)?), i32::from_le_bytes(array(source)?));
        facts.size = Some((u32::try_from(width).map_err(|_| ErrorKind::InvalidData)?, height.unsigned_abs()));
        skip(source, 2)?;
        u16::from_le_bytes(array(source)?)
    };
    (facts.colour, facts.bits) = match bits {
        1 | 2 | 4 | 8 => (Some("palette"), u8::try_from(bits).ok()),
        16 => (Some("rgb"), Some(5)),
        32 => (Some("rgb with alpha"), Some(8)),
        _ => (Some("rgb"), Some(8)),
    };
    Ok(())
}
