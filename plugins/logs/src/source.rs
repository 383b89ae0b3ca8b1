//! The lines of one file, from the last to the first. Of a plain file no more is read than is asked for; a compressed one
//! is unpacked from its beginning, and the end of it is kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use belljar_guest::Result;
use flate2::read::MultiGzDecoder;

use crate::line;
use crate::store::LogFile;

/// How much is read at once, to begin with and afterwards: most readings end in the first block.
const BLOCKS: [u64; 2] = [32 * 1024, 128 * 1024];

/// By how many bytes a file is known again.
const MARKED: usize = 64;

/// How much of an unpacked file is kept: the rest of it is not searched.
pub(crate) const KEPT: usize = 8 * 1024 * 1024;

/// How much work one reading may be. Fuel and time would end it as well, but with an error.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    deadline: Instant,
}

impl Budget {
    /// How much may be unpacked, or half of it searched: a byte that is searched takes 20 to 100 units of fuel, one that is
    /// unpacked 46, and the host gives five billion.
    pub(crate) const ALL: u64 = 64 * 1024 * 1024;

    /// The host gives five seconds, on whatever machine.
    const TIME: Duration = Duration::from_secs(2);

    pub(crate) fn new() -> Self {
        Budget { left: Budget::ALL, deadline: Instant::now() + Budget::TIME }
    }

    /// Whether as much work as there has been may be done once more.
    pub(crate) fn is_ample(&self) -> bool {
        self.left > Budget::ALL / 2 && Instant::now() + Budget::TIME / 2 < self.deadline
    }

    /// Takes so many bytes to be searched, if there are.
    fn search(&mut self, bytes: u64) -> Option<()> {
        self.left = self.left.checked_sub(bytes * 2)?;
        (Instant::now() < self.deadline).then_some(())
    }
}

/// Why there are no more lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// There are none.
    Beginning,
    /// The file is not what it was: it was emptied, or is gone.
    Changed,
    /// The budget is used up.
    Spent,
    /// It unpacks to more than may be unpacked, or takes longer.
    TooLarge,
    /// What was unpacked before the end was not kept.
    Dropped,
}

/// A line, as bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawLine<'a> {
    /// At most [`line::LONGEST`].
    pub(crate) bytes: &'a [u8],
    /// How many more there were.
    pub(crate) cut: u64,
}

/// A file, from its end.
#[derive(Debug)]
pub(crate) struct Source {
    content: Content,
    /// What of the file is before what `buffer` holds.
    position: u64,
    buffer: Vec<u8>,
    /// Up to where the buffer has not been given out.
    end: usize,
    /// Bytes between that and the line's own end, which were too many to keep.
    cut: u64,
    blocks: usize,
    finished: Option<End>,
    /// What comes from the end is not to be given out, up to the first line end.
    partial: bool,
    /// The last bytes of what was read first, and where they are.
    mark: Option<Mark>,
    /// The compressed file is damaged, or not yet written to its end. Its lines up to there are given.
    pub(crate) is_damaged: bool,
}

/// Some bytes of a file, by which it is known again.
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
        /// How this ends where it begins.
        end: End,
    },
}

impl Source {
    /// Opens a file. None when it is gone. A compressed one is unpacked up to the first block that is `beyond` what is
    /// wanted.
    pub(crate) fn open(file: &LogFile, budget: &mut Budget, beyond: impl Fn(&[u8]) -> bool) -> Result<Option<Source>> {
        let open = match File::open(&file.path) {
            Ok(open) => open,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (content, length, end, partial, damaged) = if file.packed {
            let Unpacked { bytes, end, partial, damaged } = unpack(open, budget, beyond);
            let length = bytes.len() as u64;
            (Content::Unpacked { bytes, end }, length, end, partial, damaged)
        } else {
            // As it is now: it may have grown since it was listed.
            let length = open.metadata()?.len();
            (Content::Plain(open), length, End::Beginning, false, false)
        };
        Ok(Some(Source {
            content,
            position: length,
            buffer: Vec::new(),
            end: 0,
            cut: 0,
            blocks: 0,
            finished: (length == 0).then_some(end),
            partial,
            mark: None,
            is_damaged: damaged,
        }))
    }

    /// How long it is.
    pub(crate) fn length(&self) -> u64 {
        self.position + self.buffer.len() as u64
    }

    /// There is nothing in it, and nothing to say about that.
    pub(crate) fn is_empty(&self) -> bool {
        self.length() == 0 && self.finished == Some(End::Beginning) && !self.is_damaged
    }

    /// Begins at this place instead of at the end, with the line that ends before it.
    pub(crate) fn seek(&mut self, position: u64) {
        if position < self.position && self.buffer.is_empty() {
            self.position = position;
            self.partial = true;
        }
    }

    /// Begins with the last line that has an end.
    pub(crate) fn leave_out_unfinished(&mut self) {
        self.partial = true;
    }

    /// By what it is known again, once something was read of it and if it is not compressed.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.mark.clone().filter(|_| self.is_plain())
    }

    /// Whether it has that mark. That another file has the same bytes in the same place is not likely; and the one that was
    /// emptied and written to since has others, however long it is by now.
    pub(crate) fn has(&mut self, mark: &Mark, budget: &mut Budget) -> bool {
        self.peek(mark.position, mark.bytes.len() as u64, budget) == mark.bytes
    }

    /// Whether its last line was given, and has no end.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.mark().is_some_and(|mark| mark.bytes.last() != Some(&b'\n') && !self.partial)
    }

    /// The line before the last one that was given, or why there is none.
    pub(crate) fn previous(&mut self, budget: &mut Budget) -> Result<Result<RawLine<'_>, End>> {
        loop {
            let ungiven = self.buffer.get(..self.end).unwrap_or_default();
            if let Some(newline) = memchr::memrchr(b'\n', ungiven) {
                let range = newline + 1..self.end;
                let cut = std::mem::take(&mut self.cut);
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
                // A line that has lost its beginning, or its end, is none.
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

    fn line(&self, range: std::ops::Range<usize>, cut: u64) -> RawLine<'_> {
        let whole = without_hole(self.buffer.get(range).unwrap_or_default());
        let bytes = whole.get(..whole.len().min(line::LONGEST)).unwrap_or(whole);
        RawLine { bytes, cut: cut + (whole.len() - bytes.len()) as u64 }
    }

    /// Puts the block before the buffer in front of it.
    fn load(&mut self, budget: &mut Budget) -> Result<Result<(), End>> {
        let size = BLOCKS.get(self.blocks).or(BLOCKS.last()).copied().unwrap_or_default().min(self.position);
        if budget.search(size).is_none() {
            return Ok(Err(End::Spent));
        }
        let from = self.position - size;
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
            let tail = block.get(block.len().saturating_sub(MARKED)..).unwrap_or_default();
            self.mark = Some(Mark { position: self.position - tail.len() as u64, bytes: tail.to_vec() });
        }
        self.blocks += 1;
        self.position = from;
        // A hole, in front of what was written since: there is nothing before it.
        if block.iter().all(|byte| *byte == 0) {
            block.clear();
            self.position = 0;
            if self.end == 0 && self.cut == 0 {
                self.finished = Some(End::Beginning);
            }
        }
        // The line end at the very end ends a line, and does not begin another one.
        if self.blocks == 1 && !self.partial && block.last() == Some(&b'\n') {
            block.pop();
        }
        // Of a line that is longer than what is shown, the end is not needed.
        let begun = without_hole(self.buffer.get(..self.end).unwrap_or_default());
        let kept = begun.get(..begun.len().min(line::LONGEST)).unwrap_or(begun);
        self.cut += (begun.len() - kept.len()) as u64;
        block.extend_from_slice(kept);
        self.end = block.len();
        self.buffer = block;
        Ok(Ok(()))
    }

    /// Some of a plain file from here on, for looking around. What cannot be read is empty.
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

    /// What was read last, which is the oldest.
    pub(crate) fn oldest(&self) -> &[u8] {
        &self.buffer
    }

    /// Whether places in it can be looked up without reading all before them.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.content, Content::Plain(_))
    }
}

/// What is behind the zeroes that a hole in a file reads as.
fn without_hole(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|byte| *byte != 0).and_then(|start| bytes.get(start..)).unwrap_or_default()
}

/// The beginning of a file, unpacked if it has to be. What cannot be read is empty.
pub(crate) fn head(file: &LogFile, length: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(open) = File::open(&file.path) {
        let _ = match file.packed {
            true => MultiGzDecoder::new(std::io::BufReader::new(open)).take(length).read_to_end(&mut bytes),
            false => open.take(length).read_to_end(&mut bytes),
        };
    }
    bytes
}

/// What was unpacked.
struct Unpacked {
    bytes: Vec<u8>,
    end: End,
    /// It ends in the middle of a line.
    partial: bool,
    damaged: bool,
}

/// Unpacks a file and keeps its end.
fn unpack(mut file: File, budget: &mut Budget, beyond: impl Fn(&[u8]) -> bool) -> Unpacked {
    let too_large = || Unpacked { bytes: Vec::new(), end: End::TooLarge, partial: false, damaged: false };
    const BLOCK: usize = 64 * 1024;
    if unpacked_size(&mut file).is_ok_and(|size| size > budget.left) {
        return too_large();
    }
    let mut decoder = MultiGzDecoder::new(std::io::BufReader::with_capacity(BLOCK, file));
    let mut blocks: VecDeque<Vec<u8>> = VecDeque::new();
    let (mut kept, mut end) = (0, End::Beginning);
    let (mut damaged, mut partial) = (false, false);
    loop {
        if budget.left == 0 || Instant::now() > budget.deadline {
            // The end is what counts, and it is not reached.
            return too_large();
        }
        let mut block = Vec::with_capacity(BLOCK);
        let read = decoder.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        if matches!(read, Ok(0)) {
            break;
        }
        budget.left = budget.left.saturating_sub(block.len() as u64);
        partial = beyond(&block);
        kept += block.len();
        blocks.push_back(block);
        while kept > KEPT {
            kept -= blocks.pop_front().map_or(0, |block| block.len());
            end = End::Dropped;
        }
        damaged = read.is_err();
        if damaged || partial {
            break;
        }
    }
    let mut bytes = blocks.into_iter().fold(Vec::with_capacity(kept), |mut all, block| {
        all.extend_from_slice(&block);
        all
    });
    if damaged {
        // A line that was begun is none.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1));
    }
    Unpacked { bytes, end, partial, damaged }
}

/// What a compressed file says of its size, in its last four bytes: right for one that consists of one part, and less than
/// that for others. Zero for what cannot be true.
fn unpacked_size(file: &mut File) -> std::io::Result<u64> {
    /// Nothing is packed more tightly.
    const TIGHTEST: u64 = 1032;
    let mut size = [0; 4];
    let length = file.seek(SeekFrom::End(-4))? + 4;
    file.read_exact(&mut size)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Some(u64::from(u32::from_le_bytes(size))).filter(|size| *size <= length * TIGHTEST).unwrap_or_default())
}
