//! Rebuilds a PNG without its position: chunks are changed or left out, and their checksums are computed again.

use std::borrow::Cow;

use belljar_guest::{Error, Result};

use super::{Budget, everywhere, tiff, xmp};

const SIGNATURE: usize = 8;

/// The keywords of texts that hold Exif or XMP in a compressed or encoded form: such a text is left out.
const PROFILES: [&[u8]; 2] = [b"Raw profile type ", b"XML:com.adobe.xmp"];

/// The bytes without positions, and without what follows the end of the picture.
pub(super) fn without_position(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut rebuilt = Vec::new();
    rebuilt.try_reserve_exact(bytes.len()).map_err(|_| no_room(bytes.len()))?;
    rebuilt.extend_from_slice(bytes.get(..SIGNATURE).unwrap_or_default());
    let mut rest = bytes.get(SIGNATURE..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((kind, after)) = after.split_first_chunk::<4>() else { break };
        // The last chunk of a truncated file is kept as far as it goes.
        let data = after.get(..length).unwrap_or(after);
        let is_whole = after.len() >= length.saturating_add(4);
        let size = rest.len().min(length.saturating_add(12));
        match edited(*kind, data)? {
            Some(Cow::Borrowed(_)) => rebuilt.extend_from_slice(rest.get(..size).unwrap_or_default()),
            Some(Cow::Owned(data)) if is_whole => push(&mut rebuilt, *kind, &data),
            Some(Cow::Owned(_)) | None => {}
        }
        rest = rest.get(size..).unwrap_or_default();
        if kind == b"IEND" {
            break;
        }
    }
    Ok(rebuilt)
}

/// The new data of a chunk. `None`: the chunk is left out.
fn edited(kind: [u8; 4], data: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
    Ok(match &kind {
        b"eXIf" => {
            let mut exif = data.to_vec();
            Some(if tiff::blank(&mut exif, &mut Budget::default())? { Cow::Owned(exif) } else { Cow::Borrowed(data) })
        }
        b"tEXt" | b"zTXt" | b"iTXt" => {
            let keyword = data.split(|byte| *byte == 0).next().unwrap_or_default();
            if !PROFILES.iter().any(|profile| keyword.starts_with(profile)) && !xmp::has_name(keyword) {
                return Ok(Some(Cow::Borrowed(data)));
            }
            // The flag of compression follows the keyword (PNG 11.3.3.4).
            let is_plain = &kind == b"iTXt" && data.get(keyword.len() + 1) == Some(&0);
            if !is_plain || xmp::has_name(keyword) {
                return Ok(None);
            }
            let mut packet = data.to_vec();
            everywhere(&mut packet)?;
            Some(if packet == data { Cow::Borrowed(data) } else { Cow::Owned(packet) })
        }
        b"IHDR" | b"PLTE" | b"IDAT" | b"IEND" | b"fdAT" | b"iCCP" => Some(Cow::Borrowed(data)),
        // A small letter at first: a decoder does not need the chunk.
        [first, ..] if first.is_ascii_lowercase() && xmp::has_name(data) => None,
        _ => Some(Cow::Borrowed(data)),
    })
}

fn push(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let start = out.len();
    out.extend_from_slice(&kind);
    out.extend_from_slice(data);
    let sum = crc32fast::hash(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_be_bytes());
}

fn no_room(size: usize) -> Error {
    Error::failed(format_args!(
        "the picture has {size} bytes, too many for the memory limit: the operator can raise the limit \"memory\" of this mount"
    ))
}
