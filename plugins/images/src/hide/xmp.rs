//! Removes positions from XMP, which is RDF as XML. The values become spaces, so no length changes.

use memchr::memmem;

/// The ends of a packet, with and without a wrapper.
const PACKETS: [(&[u8], &[u8]); 2] = [(b"<x:xmpmeta", b"</x:xmpmeta"), (b"<rdf:RDF", b"</rdf:RDF")];

/// The parts of names of properties that hold a position, in small letters.
const NAMES: [&[u8]; 4] = [b"gps", b"latitude", b"longitude", b"geotag"];

/// The most bytes that belong to a packet without an end: the size of a segment of a JPEG.
const MAX_OPEN: usize = 65_536;

/// Blanks the positions of all packets in `bytes`.
pub(crate) fn blank_packets(bytes: &mut [u8]) {
    for (start, end) in PACKETS {
        let mut from = 0;
        while let Some(at) = bytes.get(from..).and_then(|rest| memmem::find(rest, start)) {
            let begin = from + at;
            let length = bytes.get(begin..).and_then(|rest| memmem::find(rest, end));
            let stop = begin + length.unwrap_or_else(|| MAX_OPEN.min(bytes.len() - begin));
            if let Some(packet) = bytes.get_mut(begin..stop) {
                blank(packet);
            }
            from = stop.max(begin + start.len());
        }
    }
}

/// Blanks the positions of a packet. A position that is not understood blanks the whole packet after its first tag.
pub(crate) fn blank(packet: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = packet.get(from..).and_then(find_name) {
        let Some((start, end)) = property(packet, from + at) else {
            let open = memchr::memchr(b'>', packet).map_or(0, |at| at + 1);
            fill(packet, open, packet.len());
            return;
        };
        fill(packet, start, end);
        from = end;
    }
}

/// True if a text has the name of a position.
pub(crate) fn has_name(text: &[u8]) -> bool {
    find_name(text).is_some()
}

/// The place of the first name. One pass, because an absent name would be searched for again after each place.
fn find_name(text: &[u8]) -> Option<usize> {
    (0..text.len()).find(|at| {
        let rest = text.get(*at..).unwrap_or_default();
        matches!(rest.first(), Some(b'g' | b'G' | b'l' | b'L'))
            && NAMES.iter().any(|name| rest.get(..name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name)))
    })
}

/// The extent of the property with the name around `at`: an attribute with its value, or an element with its contents.
fn property(packet: &[u8], at: usize) -> Option<(usize, usize)> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_' | b'.');
    let before = packet.get(..at)?.iter().rev().take_while(|byte| is_name(byte)).count();
    let after = packet.get(at..)?.iter().take_while(|byte| is_name(byte)).count();
    let (start, end) = (at - before, at + after);
    let name = packet.get(start..end)?;
    let rest = packet.get(end..)?;
    let spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    match (start.checked_sub(1).and_then(|before| packet.get(before)), rest.get(spaces)) {
        (Some(b'<'), _) => {
            let tag = memchr::memchr(b'>', rest)?;
            if rest.get(..tag)?.ends_with(b"/") {
                return Some((start - 1, end + tag + 1));
            }
            let close = [b"</", name, b">"].concat();
            let at = memmem::find(rest, &close)?;
            Some((start - 1, end + at + close.len()))
        }
        (Some(before), Some(b'=')) if before.is_ascii_whitespace() => {
            let value = rest.get(spaces + 1..)?;
            let spaces_after = value.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let quote = *value.get(spaces_after)?;
            let length = memchr::memchr(quote, value.get(spaces_after + 1..)?)?;
            let is_quote = matches!(quote, b'"' | b'\'');
            is_quote.then_some((start, end + spaces + 1 + spaces_after + 1 + length + 1))
        }
        _ => None,
    }
}

fn fill(packet: &mut [u8], start: usize, end: usize) {
    if let Some(part) = packet.get_mut(start..end) {
        part.fill(b' ');
    }
}
