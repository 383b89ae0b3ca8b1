//! The segments of a JPEG: where the picture ends, and which segments are blanked whole.

use memchr::memchr;

use super::xmp;

/// The name of a packet of XMP that is longer than a segment. It is cut at any byte, so nothing can be found in a part.
const EXTENDED: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";

/// Segments with a name like `Exif` are searched by the caller; these may hold a position in another form.
const OTHERS: std::ops::RangeInclusive<u8> = 0xe2..=0xef;

/// A segment: the marker and the extent of its contents.
#[derive(Debug, Clone, Copy)]
struct Segment {
    marker: u8,
    start: usize,
    end: usize,
}

/// The position after the end marker of the first picture. A truncated picture ends with the bytes.
pub(super) fn end(bytes: &[u8]) -> usize {
    let mut at = 2;
    while let Some(segment) = next(bytes, at) {
        if segment.marker == 0xd9 {
            return segment.end;
        }
        at = segment.end;
    }
    bytes.len()
}

/// Fills the contents of segments with zeros that may hold a position in a form that is not understood.
pub(super) fn blank_segments(bytes: &mut [u8]) {
    let mut at = 2;
    while let Some(segment) = next(bytes, at) {
        at = segment.end;
        let Some(contents) = bytes.get_mut(segment.start..segment.end) else { continue };
        let is_other = OTHERS.contains(&segment.marker) || segment.marker == 0xfe;
        if contents.starts_with(EXTENDED) || (is_other && !is_profile(contents) && xmp::has_name(contents)) {
            contents.fill(0);
        }
    }
}

/// Colour profiles are binary, and any letters can occur in them.
fn is_profile(contents: &[u8]) -> bool {
    contents.starts_with(b"ICC_PROFILE\0")
}

/// The next segment from `at`. Skips the data of scans, and bytes that belong to no segment.
fn next(bytes: &[u8], at: usize) -> Option<Segment> {
    let mut at = at;
    loop {
        at += memchr(0xff, bytes.get(at..)?)?;
        let marker = *bytes.get(at + 1)?;
        match marker {
            // A stuffed byte, a fill byte, or a marker without contents.
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            0xff => at += 1,
            0xd9 => return Some(Segment { marker, start: at + 2, end: at + 2 }),
            _ => {
                let length = usize::from(u16::from_be_bytes(*bytes.get(at + 2..)?.first_chunk()?));
                let end = (at + 2 + length.max(2)).min(bytes.len());
                return Some(Segment { marker, start: at + 4, end });
            }
        }
    }
}
