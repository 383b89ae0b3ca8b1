//! Reads parts of files: bytes by seeking, lines by reading only what is needed. Memory does not depend on the size of the
//! file. A part is from one state of the file, even while a program overwrites it.

mod lines;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

use belljar_guest::{Contents, Error, Extent, PartialReading, Positions, Range, Result, Unit};

use crate::tree::Meta;
use lines::Lines;

/// The most bytes of one part. A part must fit into the sandbox's memory, 64 MiB by default, also while it is checked and
/// copied. The host's limit on results is lower by default.
pub const MAX_PART: u64 = 16 * 1024 * 1024;

/// How many times a file is read that changes meanwhile.
const ATTEMPTS: usize = 4;

/// For how long nobody must have written to a file: only then is it taken for finished. A writer may wait between two writes,
/// for a processor for example.
const PAUSE: Duration = Duration::from_millis(10);

/// How old a modification time shows that nobody wrote to the file for [`PAUSE`]. File systems count these times in steps of
/// up to ten milliseconds, and in longer ones while a virtual machine waits for its processor.
const SETTLED: Duration = Duration::from_millis(250);

/// An open file, or bytes that stand for one.
pub trait Seekable {
    /// At most `length` bytes from `position`: fewer only at the end.
    fn read_at(&self, position: u64, length: u64) -> Result<Vec<u8>>;

    /// The size and the modification time.
    fn state(&self) -> Result<Meta>;
}

/// The bytes of a part.
#[derive(Debug, Hash)]
struct Piece {
    bytes: Vec<u8>,
    /// The position of the part in the requested unit; `None` for the whole file.
    extent: Option<Place>,
}

/// The fields of an [`Extent`], which has no hash.
#[derive(Debug, Hash, Clone, Copy)]
struct Place {
    is_lines: bool,
    start: u64,
    end: u64,
    total: Option<u64>,
    more: bool,
}

/// Reads the requested part of a file, or the whole file if it fits: text if it is valid UTF-8, a blob otherwise. The part has
/// no media type.
///
/// Fails with [`Error::Unavailable`] if a program overwrites the file all the time, and with [`Error::Invalid`] for lines that
/// are not text or longer than `most`.
pub fn read_part(file: &impl Seekable, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
    let most = most.min(MAX_PART);
    let Piece { bytes, extent } = steady(file, |size| match range {
        None => first(file, size, most),
        Some(Range { unit: Unit::Bytes, positions, .. }) => bytes(file, size, positions, most),
        Some(Range { positions, .. }) => lines::read(file, Lines { positions, size, most }),
    })?;
    let contents = Contents::from_bytes(reference, bytes);
    if extent.is_some_and(|extent| extent.is_lines) && !contents.is_text() {
        return Err(Error::invalid("these lines are not UTF-8 text: read the file by bytes, such as ?bytes=0-65535"));
    }
    Ok(match extent {
        None => PartialReading::whole(contents),
        Some(Place { is_lines, start, end, total, more }) => {
            let unit = if is_lines { Unit::Lines } else { Unit::Bytes };
            let mut extent = Extent::open(unit, start, end, more);
            extent.total = total;
            PartialReading::part(contents, extent)
        }
    })
}

/// Reads until the file stayed the same for [`PAUSE`], or two reads with this pause between them gave the same. `read` gets
/// the size of the file.
fn steady(file: &impl Seekable, mut read: impl FnMut(u64) -> Result<Piece>) -> Result<Piece> {
    let mut before = file.state()?;
    // A file that only grows is read up to its first size.
    let mut size = before.size;
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let piece = read(size)?;
        let after = file.state()?;
        let settled = before.modified.is_some_and(|time| time + SETTLED < SystemTime::now());
        if before.facts() == after.facts() && settled {
            return Ok(piece);
        }
        let mut hasher = DefaultHasher::new();
        piece.hash(&mut hasher);
        let hash = hasher.finish();
        if last.replace(hash) == Some(hash) && after.size >= size {
            return Ok(piece);
        }
        size = size.min(after.size);
        before = after;
    }
    Err(Error::unavailable(format_args!("the file was written to during {ATTEMPTS} reads: read it again")))
}

/// The whole file if it fits, else its first part: up to the last line end if it is text.
fn first(file: &impl Seekable, size: u64, most: u64) -> Result<Piece> {
    if size <= most {
        return Ok(Piece { bytes: file.read_at(0, size)?, extent: None });
    }
    let mut piece = bytes(file, size, Positions::Span { start: 0, end: None }, most)?;
    if let (Some(place), Some(newline)) = (&mut piece.extent, memchr::memrchr(b'\n', &piece.bytes))
        && std::str::from_utf8(&piece.bytes).is_ok()
    {
        piece.bytes.truncate(newline + 1);
        place.end = newline as u64 + 1;
    }
    Ok(piece)
}

/// The bytes at these positions. In text, both ends are moved to the beginning of their characters.
fn bytes(file: &impl Seekable, size: u64, positions: Positions, most: u64) -> Result<Piece> {
    /// A character has at most three bytes after its first.
    const AROUND: u64 = 3;
    let (start, end) = positions.within(size);
    let end = end.min(start.saturating_add(most));
    let from = start.saturating_sub(AROUND);
    let mut all = file.read_at(from, (end + AROUND).min(size) - from)?;
    // The file may have become shorter.
    let (first, last) = (at_most(start - from, all.len()), at_most(end - from, all.len()));
    let is_text =
        |first: usize, last: usize| all.get(first..last).is_some_and(|part| std::str::from_utf8(part).is_ok());
    let (floor, mut top) = (boundary(&all, first), boundary(&all, last));
    // A range inside one character gives this character.
    if top <= floor && last > floor {
        top = (last..=all.len()).find(|at| boundary(&all, *at) == *at).unwrap_or(all.len());
    }
    let (first, last) = if is_text(floor, top) { (floor, top) } else { (first, last) };
    all.truncate(last);
    all.drain(..first);
    let start = from + first as u64;
    let end = start + all.len() as u64;
    let place = Place { is_lines: false, start, end, total: Some(size), more: end < size };
    Ok(Piece { bytes: all, extent: Some(place) })
}

/// The beginning of the character at a position; the position itself if there is none near.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let begins = |at: usize| bytes.get(at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|at| begins(*at)).unwrap_or(at)
}

fn at_most(number: u64, most: usize) -> usize {
    usize::try_from(number).map_or(most, |number| number.min(most))
}
