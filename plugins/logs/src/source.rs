//! Reads the lines of one file from the last to the first. Of a plain file, only the requested end is read. A compressed
//! file is unpacked by `unpack`.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use belljar_guest::Result;

use crate::encoding::Encoding;
use crate::line;
use crate::store::LogFile;
use crate::unpack::{self, Unpacked};

/// The sizes of the first block and of the further ones, in bytes. Most reads end within the first block.
const BLOCKS: [u64; 2] = [32 * 1024, 128 * 1024];

/// The length of a [`Mark`], in bytes.
const MARK_BYTES: usize = 64;

/// The work that one read may do. The host's limits of fuel and time would also stop it, but with an error and no result.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) left: u64,
    pub(crate) deadline: Instant,
}

impl Budget {
    /// The bytes that may be unpacked; a searched byte counts twice. A searched byte takes 20 to 100 units of fuel, and
    /// an unpacked byte takes 46. A call has five billion units.
    pub(crate) const ALL: u64 = 64 * 1024 * 1024;

    /// The time for one read. The host's limit for a call is five seconds.
    /// An hour in unit tests, which must not depend on the speed of the machine.
    const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 2000 });

    pub(crate) fn new() -> Self {
        Budget { left: Budget::ALL, deadline: Instant::now() + Budget::TIME }
    }

    /// True if the budget allows the same work a second time.
    pub(crate) fn is_ample(&self) -> bool {
        self.left > Budget::ALL / 2 && Instant::now() + Budget::TIME / 2 < self.deadline
    }

    /// Takes the cost of searching `bytes` from the budget. `None` if it is spent.
    fn search(&mut self, bytes: u64) -> Option<()> {
        self.left = self.left.checked_sub(bytes * 2)?;
        (Instant::now() < self.deadline).then_some(())
    }
}

/// The reason why there are no more lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The beginning of the file is reached.
    Beginning,
    /// The file was truncated or deleted meanwhile.
    Changed,
    /// The budget is used up.
    Spent,
    /// Unpacking the file exceeds the budget of bytes or time.
    TooLarge,
    /// The beginning of an unpacked file was not kept.
    Dropped,
}

/// The bytes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawLine<'a> {
    /// At most [`line::MAX_LINE_BYTES`].
    pub(crate) bytes: &'a [u8],
    /// The number of bytes cut at the end.
    pub(crate) cut: u64,
}

/// A file that is read backwards.
#[derive(Debug)]
pub(crate) struct Source {
    content: Content,
    /// The position in the file at which `buffer` begins.
    position: u64,
    buffer: Vec<u8>,
    /// The end of the bytes in the buffer that were not returned yet.
    end: usize,
    /// The number of bytes dropped between `end` and the end of the current line.
    cut: u64,
    /// Where the last returned line begins: in the file, or in the unpacked file.
    offset: u64,
    /// The line end before the last returned line is not counted in `offset` yet.
    ends: bool,
    encoding: Option<Encoding>,
    blocks: usize,
    finished: Option<End>,
    /// True if the last line is incomplete and must be skipped.
    partial: bool,
    /// The last bytes of the first block.
    mark: Option<Mark>,
    /// The reason why a compressed file could not be unpacked whole: it is damaged or still being written. Its lines up to that
    /// point are returned.
    pub(crate) damage: Option<String>,
}

/// Bytes of a file and their position. They identify the file after it was renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    position: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum Content {
    Plain(File),
    Unpacked {
        bytes: Vec<u8>,
        /// The reason to report at the beginning of `bytes`.
        end: End,
    },
}

impl Source {
    /// Opens a file up to `limit`, or to its end. `None` if it was deleted. A compressed file is unpacked up to the first block
    /// for which `beyond` is true.
    pub(crate) fn open(
        file: &LogFile,
        limit: Option<u64>,
        budget: &mut Budget,
        beyond: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Source>> {
        let open = match File::open(&file.path) {
            Ok(open) => open,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.packed {
            // The current length: the file may have grown since it was listed.
            let length = open.metadata()?.len().min(limit.unwrap_or(u64::MAX));
            return Ok(Some(Source::over(Content::Plain(open), length, length, End::Beginning)));
        }
        let Unpacked { mut bytes, start, end, partial, damage } = unpack::unpack(open, limit, budget, beyond);
        let offset = start + bytes.len() as u64;
        if let Some(text) = Encoding::of(&bytes).decoded(&bytes) {
            bytes = text.into_bytes();
        }
        let mut source = Source::over(Content::Unpacked { bytes, end }, 0, offset, end);
        if let Content::Unpacked { bytes, .. } = &source.content {
            source.position = bytes.len() as u64;
            source.finished = bytes.is_empty().then_some(end);
        }
        source.encoding = Some(Encoding::Utf8);
        // A limit may lie within a line.
        source.partial = partial || (limit.is_some() && source.offset > 0 && !source.ends_with_line());
        source.damage = damage;
        Ok(Some(source))
    }

    fn over(content: Content, length: u64, offset: u64, end: End) -> Self {
        Source {
            content,
            position: length,
            buffer: Vec::new(),
            end: 0,
            cut: 0,
            offset,
            ends: false,
            encoding: None,
            blocks: 0,
            finished: (length == 0).then_some(end),
            partial: false,
            mark: None,
            damage: None,
        }
    }

    /// True if the unpacked bytes end with a line end.
    fn ends_with_line(&self) -> bool {
        matches!(&self.content, Content::Unpacked { bytes, .. } if bytes.ends_with(b"\n"))
    }

    /// Where the last returned line begins. Another read can end there.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.position + self.buffer.len() as u64
    }

    /// True if the file is empty and undamaged.
    pub(crate) fn is_empty(&self) -> bool {
        self.length() == 0 && self.finished == Some(End::Beginning) && self.damage.is_none()
    }

    /// Begins at `position` instead of at the end, with the last line that ends before it.
    pub(crate) fn seek(&mut self, position: u64) {
        if position < self.position && self.buffer.is_empty() {
            // In UTF-16, a character has an even position.
            let is_wide = matches!(self.encoding, Some(Encoding::Utf16 { .. }));
            self.position = if is_wide { position & !1 } else { position };
            self.offset = self.position;
            self.partial = true;
        }
    }

    /// Begins with the last complete line.
    pub(crate) fn leave_out_unfinished(&mut self) {
        self.partial = true;
    }

    /// A number that tells this file from others: of the bytes before `offset` in a plain file, of the size and the time of a
    /// compressed one.
    pub(crate) fn fingerprint(&mut self, file: &LogFile, offset: u64) -> Option<u32> {
        self.content.fingerprint(file, offset)
    }

    /// The mark of a plain file, once a block was read.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.mark.clone().filter(|_| self.is_plain())
    }

    /// True if the file has the bytes of the mark at its position. Another file almost never has the same bytes there, nor
    /// does a file that was truncated and written again.
    pub(crate) fn has(&mut self, mark: &Mark, budget: &mut Budget) -> bool {
        self.peek(mark.position, mark.bytes.len() as u64, budget) == mark.bytes
    }

    /// True if the last line was returned although it has no line end.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.mark().is_some_and(|mark| !mark.bytes.ends_with(b"\n") && !mark.bytes.ends_with(b"\n\0") && !self.partial)
    }

    /// The next line towards the beginning of the file, or the reason why there is none.
    pub(crate) fn previous(&mut self, budget: &mut Budget) -> Result<Result<RawLine<'_>, End>> {
        loop {
            let ungiven = self.buffer.get(..self.end).unwrap_or_default();
            if let Some(newline) = memchr::memrchr(b'\n', ungiven) {
                let range = newline + 1..self.end;
                let cut = std::mem::take(&mut self.cut);
                self.pass(range.clone(), cut);
                self.end = newline;
                if std::mem::take(&mut self.partial) {
                    continue;
                }
                return Ok(Ok(self.line(range, cut)));
            }
            if let Some(end) = self.finished {
                return Ok(Err(end));
            }
            if self.position == 0 {
                let end = match &self.content {
                    Content::Plain(_) => End::Beginning,
                    Content::Unpacked { end, .. } => *end,
                };
                self.finished = Some(end);
                let range = 0..std::mem::take(&mut self.end);
                self.pass(range.clone(), self.cut);
                // A line without its beginning or its end is dropped.
                if end == End::Dropped || self.partial {
                    continue;
                }
                let cut = std::mem::take(&mut self.cut);
                return Ok(Ok(self.line(range, cut)));
            }
            if let Err(end) = self.load(budget)? {
                self.finished = Some(end);
                self.end = 0;
            }
        }
    }

    /// Moves `offset` to the beginning of the line at `range`.
    fn pass(&mut self, range: std::ops::Range<usize>, cut: u64) {
        let line = self.buffer.get(range).unwrap_or_default();
        let (length, line_end) = match self.encoding {
            Some(Encoding::Utf16 { .. }) => (2 * String::from_utf8_lossy(line).encode_utf16().count() as u64, 2),
            _ => (line.len() as u64, 1),
        };
        let line_end = if std::mem::replace(&mut self.ends, true) { line_end } else { 0 };
        self.offset = self.offset.saturating_sub(length + cut + line_end);
    }

    fn line(&self, range: std::ops::Range<usize>, cut: u64) -> RawLine<'_> {
        let whole = without_hole(self.buffer.get(range).unwrap_or_default());
        let bytes = whole.get(..whole.len().min(line::MAX_LINE_BYTES)).unwrap_or(whole);
        RawLine { bytes, cut: cut + (whole.len() - bytes.len()) as u64 }
    }

    /// Reads the block before the buffer and prepends it.
    fn load(&mut self, budget: &mut Budget) -> Result<Result<(), End>> {
        let size = BLOCKS.get(self.blocks).or(BLOCKS.last()).copied().unwrap_or_default().min(self.position);
        if budget.search(size).is_none() {
            return Ok(Err(End::Spent));
        }
        let mut from = self.position - size;
        let mut block = match &mut self.content {
            Content::Plain(file) => {
                let mut block = vec![0; usize::try_from(size).unwrap_or_default()];
                file.seek(SeekFrom::Start(from))?;
                match file.read_exact(&mut block) {
                    Ok(()) => block,
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Err(End::Changed)),
                    Err(error) => return Err(error.into()),
                }
            }
            Content::Unpacked { bytes, .. } => {
                let range =
                    usize::try_from(from).unwrap_or_default()..usize::try_from(self.position).unwrap_or_default();
                bytes.get(range).unwrap_or_default().to_vec()
            }
        };
        if self.blocks == 0 {
            let tail = block.get(block.len().saturating_sub(MARK_BYTES)..).unwrap_or_default();
            self.mark = Some(Mark { position: self.position - tail.len() as u64, bytes: tail.to_vec() });
        }
        let odd = usize::from(from % 2 == 1);
        let encoding = *self.encoding.get_or_insert_with(|| Encoding::of(block.get(odd..).unwrap_or_default()));
        if let Encoding::Utf16 { .. } = encoding {
            // The block begins at a character, not within one.
            let skipped = odd + encoding.half_character(block.get(odd..).unwrap_or_default());
            from += skipped as u64;
            block = encoding.decoded(block.get(skipped..).unwrap_or_default()).unwrap_or_default().into_bytes();
        }
        self.blocks += 1;
        self.position = from;
        // A block of zeros is a hole from a truncation under a running writer. Nothing was written before it.
        if block.iter().all(|byte| *byte == 0) {
            block.clear();
            self.position = 0;
            if self.end == 0 && self.cut == 0 {
                self.finished = Some(End::Beginning);
            }
        }
        // A line end at the end of the file begins no further line.
        if self.blocks == 1 && !self.partial && block.last() == Some(&b'\n') {
            block.pop();
            self.ends = true;
        }
        // Only the beginning of an overlong line is shown, so its end is dropped.
        let begun = without_hole(self.buffer.get(..self.end).unwrap_or_default());
        let kept = begun.get(..begun.len().min(line::MAX_LINE_BYTES)).unwrap_or(begun);
        self.cut += (begun.len() - kept.len()) as u64;
        block.extend_from_slice(kept);
        self.end = block.len();
        self.buffer = block;
        Ok(Ok(()))
    }

    /// Up to `length` bytes from `from`, without moving the reader. Empty on an error or a spent budget.
    pub(crate) fn peek(&mut self, from: u64, length: u64, budget: &mut Budget) -> Vec<u8> {
        let mut bytes = Vec::new();
        if budget.search(length).is_none() {
            return bytes;
        }
        match &mut self.content {
            Content::Plain(file) => {
                if file.seek(SeekFrom::Start(from)).is_ok() {
                    let _ = file.take(length).read_to_end(&mut bytes);
                }
            }
            Content::Unpacked { bytes: all, .. } => {
                let from = usize::try_from(from).unwrap_or(usize::MAX).min(all.len());
                let rest = all.get(from..).unwrap_or_default();
                bytes.extend_from_slice(rest.get(..usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or(rest));
            }
        }
        bytes
    }

    /// The same as text in UTF-8. `from` is moved to the beginning of a character of UTF-16.
    pub(crate) fn peek_text(&mut self, from: u64, length: u64, budget: &mut Budget) -> Vec<u8> {
        let bytes = self.peek(from & !1, length, budget);
        let encoding = *self.encoding.get_or_insert_with(|| Encoding::of(&bytes));
        encoding.decoded(&bytes).map_or(bytes, String::into_bytes)
    }

    /// True if the file is not compressed, so any position can be read directly.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.content, Content::Plain(_))
    }
}

/// The bytes after leading zeros, which are a hole in the file.
fn without_hole(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|byte| *byte != 0).and_then(|start| bytes.get(start..)).unwrap_or_default()
}

/// The first `length` bytes of a file as text, unpacked if it is compressed. Empty on an error.
pub(crate) fn head(file: &LogFile, length: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(open) = File::open(&file.path) {
        let _ = match file.packed {
            true => unpack::reader(open).and_then(|reader| reader.take(length).read_to_end(&mut bytes)),
            false => open.take(length).read_to_end(&mut bytes),
        };
    }
    Encoding::of(&bytes).decoded(&bytes).map_or(bytes, String::into_bytes)
}

/// The fingerprint of a file; see [`Source::fingerprint`].
pub(crate) fn fingerprint(file: &LogFile, offset: u64) -> Option<u32> {
    Content::Plain(File::open(&file.path).ok()?).fingerprint(file, offset)
}

impl Content {
    fn fingerprint(&mut self, file: &LogFile, offset: u64) -> Option<u32> {
        let mut hasher = DefaultHasher::new();
        match self {
            Content::Plain(open) if !file.packed => {
                let from = offset.saturating_sub(MARK_BYTES as u64);
                let mut bytes = vec![0; usize::try_from(offset - from).ok()?];
                open.seek(SeekFrom::Start(from)).ok()?;
                open.read_exact(&mut bytes).ok()?;
                hasher.write(&bytes);
            }
            // A compressed file is not changed any more.
            _ => (file.size, file.modified).hash(&mut hasher),
        }
        u32::try_from(hasher.finish() >> 32).ok()
    }
}
