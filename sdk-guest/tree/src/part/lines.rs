//! Reads lines of files in blocks. Skipped lines are counted, not kept.

use std::time::{Duration, Instant};

use belljar_guest::{Error, Positions, Result};

use super::{Piece, Place, Seekable};

/// The bytes of one block.
const BLOCK: u64 = 256 * 1024;

/// How long lines are counted. The host's limit for a call is five seconds.
const TIME: Duration = Duration::from_secs(2);

/// The requested lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    pub(super) positions: Positions,
    /// The size of the file in bytes.
    pub(super) size: u64,
    /// The most bytes of the part.
    pub(super) most: u64,
}

/// A position in a file, in bytes and in lines.
#[derive(Debug, Clone, Copy)]
struct Spot {
    byte: u64,
    line: u64,
}

/// Reads the requested lines, as many as fit.
pub(super) fn read(file: &impl Seekable, wanted: Lines) -> Result<Piece> {
    let until = Instant::now() + TIME;
    match wanted.positions {
        Positions::Span { start, end } => {
            let spot = skip(file, wanted.size, start, until)?;
            let count = end.map_or(u64::MAX, |end| end.saturating_sub(start));
            forward(file, wanted, spot, if spot.line < start { 0 } else { count })
        }
        Positions::Last(count) => {
            let byte = back(file, wanted.size, count, until)?;
            // The part says the numbers of its lines, so all lines before them are counted.
            let spot = skip(file, byte, u64::MAX, until).map_err(|_| {
                Error::invalid(format_args!(
                    "the last {count} lines begin at byte {byte}; counting the lines before them takes longer than {} s: read \
                     them by bytes, with ?bytes={byte}-",
                    TIME.as_secs()
                ))
            })?;
            forward(file, wanted, Spot { byte, ..spot }, count)
        }
    }
}

/// Passes `count` lines from the beginning of the first `size` bytes, or as many as there are.
fn skip(file: &impl Seekable, size: u64, count: u64, until: Instant) -> Result<Spot> {
    let mut spot = Spot { byte: 0, line: 0 };
    while spot.byte < size && spot.line < count {
        if Instant::now() > until {
            return Err(too_far(spot));
        }
        let block = file.read_at(spot.byte, BLOCK.min(size - spot.byte))?;
        let Some(last) = block.last() else { break };
        let here = newlines(&block);
        if spot.line + here < count {
            spot.line += here;
            spot.byte += block.len() as u64;
            // The last line may have no line end.
            if spot.byte >= size && *last != b'\n' {
                spot.line += 1;
            }
            continue;
        }
        let left = usize::try_from(count - spot.line).unwrap_or(usize::MAX);
        let end = memchr::memchr_iter(b'\n', &block).nth(left.saturating_sub(1)).map_or(block.len(), |at| at + 1);
        spot = Spot { byte: spot.byte + end as u64, line: count };
    }
    Ok(spot)
}

/// The position of the last `count` lines.
fn back(file: &impl Seekable, size: u64, count: u64, until: Instant) -> Result<u64> {
    let (mut high, mut left) = (size, count);
    if count == 0 {
        return Ok(size);
    }
    while high > 0 {
        if Instant::now() > until {
            return Err(Error::invalid(format_args!(
                "the last {count} lines take longer than {} s to find: ask for fewer, or read bytes from {high} on",
                TIME.as_secs()
            )));
        }
        let low = high.saturating_sub(BLOCK);
        let block = file.read_at(low, high - low)?;
        // The line end at the end of the file begins no further line.
        let searched = if high == size { block.len().saturating_sub(1) } else { block.len() };
        let here = newlines(block.get(..searched).unwrap_or_default());
        if here >= left {
            let nth = usize::try_from(left).unwrap_or(usize::MAX).saturating_sub(1);
            let found = memchr::memchr_iter(b'\n', block.get(..searched).unwrap_or_default()).rev().nth(nth);
            return Ok(low + found.map_or(0, |at| at as u64 + 1));
        }
        left -= here;
        high = low;
    }
    Ok(0)
}

/// Reads at most `count` lines from `spot` on.
fn forward(file: &impl Seekable, wanted: Lines, spot: Spot, count: u64) -> Result<Piece> {
    let Lines { size, most, .. } = wanted;
    let mut bytes = Vec::new();
    // The lines and bytes that are taken whole.
    let (mut lines, mut whole) = (0, 0);
    while lines < count && (bytes.len() as u64) < most {
        let at = spot.byte + bytes.len() as u64;
        let block = file.read_at(at, BLOCK.min(size.saturating_sub(at)).min(most - bytes.len() as u64))?;
        if block.is_empty() {
            break;
        }
        let before = bytes.len();
        let here = newlines(&block);
        if lines + here >= count {
            let nth = usize::try_from(count - lines).unwrap_or(usize::MAX).saturating_sub(1);
            whole = before + memchr::memchr_iter(b'\n', &block).nth(nth).map_or(block.len(), |at| at + 1);
            lines = count;
        } else if let Some(last) = memchr::memrchr(b'\n', &block) {
            lines += here;
            whole = before + last + 1;
        }
        bytes.extend_from_slice(&block);
    }
    let at_end = spot.byte + bytes.len() as u64 >= size;
    if lines < count && at_end && whole < bytes.len() {
        // The last line has no line end.
        whole = bytes.len();
        lines += 1;
    }
    if lines == 0 && count > 0 && spot.byte < size {
        let Spot { byte, line } = spot;
        return Err(Error::invalid(format_args!(
            "line {} is longer than a read may be, {most} bytes: read it by bytes, with ?bytes={byte}-{}",
            line + 1,
            byte + most - 1
        )));
    }
    bytes.truncate(whole);
    let end = spot.byte + whole as u64;
    let (start, last, more) = (spot.line, spot.line + lines, end < size);
    let place = Place { is_lines: true, start, end: last, total: (!more).then_some(last), more };
    Ok(Piece { bytes, extent: Some(place) })
}

fn too_far(Spot { byte, line }: Spot) -> Error {
    Error::invalid(format_args!(
        "counting lines takes longer than {} s: the first {byte} bytes have {line} lines; read by bytes, with ?bytes={byte}-",
        TIME.as_secs()
    ))
}

/// The number of line ends. Tests eight bytes at once.
fn newlines(bytes: &[u8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const LOW: u64 = ONES * 0x7f;
    let (chunks, rest) = bytes.as_chunks::<8>();
    let whole: u64 = chunks
        .iter()
        .map(|chunk| {
            let word = u64::from_ne_bytes(*chunk) ^ (ONES * u64::from(b'\n'));
            // The high bit of a byte ends up clear if the byte is zero.
            u64::from((!(((word & LOW) + LOW) | word | LOW)).count_ones())
        })
        .sum();
    whole + rest.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::newlines;

    #[test]
    fn line_ends_are_counted_among_all_bytes() {
        let mut bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).chain([b'\n'; 21]).collect();
        for _ in 0..9 {
            assert_eq!(newlines(&bytes), bytes.iter().filter(|byte| **byte == b'\n').count() as u64);
            bytes.remove(3);
        }
    }
}
