//! The lines of one file, from the last to the first. Of a plain file no more is read than is asked for; a compressed one
//! is unpacked from its beginning, and the end of it is kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};

use belljar_guest::Result;
use flate2::read::MultiGzDecoder;

use crate::line;
use crate::store::LogFile;

/// How much is read at once, to begin with and afterwards: most readings end in the first block.
const BLOCKS: [u64; 2] = [32 * 1024, 128 * 1024];

/// How much of an unpacked file is kept: the rest of it is not searched.
pub(crate) const KEPT: usize = 8 * 1024 * 1024;

/// How much may be read and unpacked for one reading. Fuel would end there as well, but with an error.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) left: u64,
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
    /// What was unpacked before the end was not kept.
    Dropped,
    /// The compressed file is damaged, or not yet written to its end. Its lines up to there were given.
    Damaged,
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
    /// Opens a file. None when it is gone.
    pub(crate) fn open(file: &LogFile, budget: &mut Budget) -> Result<Option<Source>> {
        let open = match File::open(&file.path) {
            Ok(open) => open,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (content, length) = if file.packed {
            let (bytes, end) = unpack(open, budget);
            let length = bytes.len() as u64;
            (Content::Unpacked { bytes, end }, length)
        } else {
            // As it is now: it may have grown since it was listed.
            let length = open.metadata()?.len();
            (Content::Plain(open), length)
        };
        Ok(Some(Source {
            content,
            position: length,
            buffer: Vec::new(),
            end: 0,
            cut: 0,
            blocks: 0,
            finished: (length == 0).then_some(End::Beginning),
            partial: false,
        }))
    }

    /// How long it is.
    pub(crate) fn length(&self) -> u64 {
        self.position + self.buffer.len() as u64
    }

    /// Begins at this place instead of at the end, with the line that ends before it.
    pub(crate) fn seek(&mut self, position: u64) {
        if position < self.position && self.buffer.is_empty() {
            self.position = position;
            self.partial = true;
        }
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
        let whole = self.buffer.get(range).unwrap_or_default();
        let bytes = whole.get(..whole.len().min(line::LONGEST)).unwrap_or(whole);
        RawLine { bytes, cut: cut + (whole.len() - bytes.len()) as u64 }
    }

    /// Puts the block before the buffer in front of it.
    fn load(&mut self, budget: &mut Budget) -> Result<Result<(), End>> {
        let size = BLOCKS.get(self.blocks).or(BLOCKS.last()).copied().unwrap_or_default().min(self.position);
        let Some(left) = budget.left.checked_sub(size) else { return Ok(Err(End::Spent)) };
        let from = self.position - size;
        let mut block = match &mut self.content {
            Content::Plain(file) => {
                budget.left = left;
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
        let kept = self.end.min(line::LONGEST);
        self.cut += (self.end - kept) as u64;
        block.extend_from_slice(self.buffer.get(..kept).unwrap_or_default());
        self.end = block.len();
        self.buffer = block;
        Ok(Ok(()))
    }

    /// Some of a plain file from here on, for looking around. What cannot be read is empty.
    pub(crate) fn peek(&mut self, from: u64, length: u64, budget: &mut Budget) -> Vec<u8> {
        budget.left = budget.left.saturating_sub(length);
        let mut bytes = Vec::new();
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

    /// Whether places in it can be looked up without reading all before them.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.content, Content::Plain(_))
    }
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

/// Unpacks a file and keeps its end.
fn unpack(file: File, budget: &mut Budget) -> (Vec<u8>, End) {
    const BLOCK: usize = 64 * 1024;
    let mut decoder = MultiGzDecoder::new(std::io::BufReader::with_capacity(BLOCK, file));
    let mut blocks: VecDeque<Vec<u8>> = VecDeque::new();
    let (mut kept, mut end) = (0, End::Beginning);
    let damaged = loop {
        if budget.left == 0 {
            // The end is what counts, and it is not reached.
            return (Vec::new(), End::Spent);
        }
        let mut block = Vec::with_capacity(BLOCK);
        let read = decoder.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        budget.left = budget.left.saturating_sub(block.len() as u64);
        let is_last = block.is_empty();
        kept += block.len();
        blocks.push_back(block);
        while kept > KEPT {
            kept -= blocks.pop_front().map_or(0, |block| block.len());
            end = End::Dropped;
        }
        match read {
            Err(_) => break true,
            Ok(_) if is_last => break false,
            Ok(_) => {}
        }
    };
    let mut bytes = blocks.into_iter().fold(Vec::with_capacity(kept), |mut all, block| {
        all.extend_from_slice(&block);
        all
    });
    if damaged {
        // A line that was begun is none.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1));
        if end == End::Beginning {
            end = End::Damaged;
        }
    }
    (bytes, end)
}
