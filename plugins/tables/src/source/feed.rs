//! Reads a text file in blocks from any position, unpacks it, and decodes it for parsers of UTF-8.

use std::io::{self, Read, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use belljar_guest::{Error, Result};
use belljar_tree::{File, Tree};
use encoding_rs::{CoderResult, Decoder};

use crate::dialect::Dialect;
use crate::source::packed::{self, Packing};

/// The size of a block, in bytes. Even, so that UTF-16 is not divided.
const BLOCK: usize = 128 * 1024;

/// The time for one read. The host's limit for a call is five seconds.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 2500 });

/// The work that one read may do. The host's limits of fuel and time would also stop it, but with an error and no result.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    /// The value of `left` when the clock was last read. Reading the clock costs more than parsing most rows.
    looked: u64,
    deadline: Instant,
}

impl Budget {
    /// The most bytes that are parsed. A byte takes 50 to 75 units of fuel, and a call has five billion.
    pub(crate) const ALL: u64 = 64 * 1024 * 1024;

    /// The number of bytes between two readings of the clock.
    const TICK: u64 = 256 * 1024;

    pub(crate) fn new() -> Self {
        Budget { left: Budget::ALL, looked: Budget::ALL, deadline: Instant::now() + TIME }
    }

    /// Takes `bytes` from the budget. False if it was spent before: work that is done is kept, so every read makes progress.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let had_some = self.left > 0;
        self.left = self.left.saturating_sub(bytes);
        if self.looked - self.left >= Budget::TICK {
            self.looked = self.left;
            if Instant::now() >= self.deadline {
                self.left = 0;
            }
        }
        had_some
    }
}

/// The time of one read, for work that is not counted in bytes.
#[derive(Debug)]
pub(crate) struct Clock {
    deadline: Instant,
    calls: u32,
    is_over: bool,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Clock { deadline: Instant::now() + TIME, calls: 0, is_over: false }
    }

    /// True if the time is over. Reads the clock in every 16th call.
    pub(crate) fn is_over(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(16) {
            self.is_over = self.is_over || Instant::now() >= self.deadline;
        }
        self.is_over
    }
}

/// A text file in a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextFile<'t> {
    tree: &'t Tree,
    pub(crate) path: &'t str,
    /// The size of the file as it is stored.
    pub(crate) size: u64,
    pub(crate) packing: Option<Packing>,
}

impl<'t> TextFile<'t> {
    pub(crate) fn new(tree: &'t Tree, path: &'t str, size: u64, packing: Option<Packing>) -> Self {
        TextFile { tree, path, size, packing }
    }

    /// The first bytes of the text, at most `most`.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let text = packed::text(self.tree.open(self.path)?, self.packing);
        text.take(most as u64).read_to_end(&mut head).map_err(|error| self.broken(&error))?;
        Ok(head)
    }

    /// The size of the text, in bytes. `None` for a packed file.
    pub(crate) fn text_size(&self) -> Option<u64> {
        self.packing.is_none().then_some(self.size)
    }

    /// Bytes that identify the position: those before it. For a packed file, those at its beginning.
    pub(crate) fn mark(&self, position: u64, length: u64) -> Result<Vec<u8>> {
        let from = if self.packing.is_some() { 0 } else { position.saturating_sub(length) };
        let length = if self.packing.is_some() { length } else { position - from };
        let mut file: File = self.tree.open(self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn feed(&self, dialect: &Dialect, from: u64) -> Result<Feed> {
        let mut file = self.tree.open(self.path)?;
        let text: Box<dyn Read> = match self.packing {
            None => {
                file.seek(SeekFrom::Start(from))?;
                Box::new(file)
            }
            Some(packing) => {
                if from > packing.most_skipped() {
                    return Err(self.too_far(packing));
                }
                let mut text = packing.open(file);
                let (mut left, deadline) = (from, Instant::now() + TIME);
                while left > 0 {
                    let step = left.min(4 * 1024 * 1024);
                    io::copy(&mut (&mut text).take(step), &mut io::sink()).map_err(|error| self.broken(&error))?;
                    left -= step;
                    if left > 0 && Instant::now() >= deadline {
                        return Err(self.too_far(packing));
                    }
                }
                text
            }
        };
        let decoder = dialect.is_decoded().then(|| dialect.encoding.new_decoder_without_bom_handling());
        Ok(Feed {
            text,
            buffer: Vec::new(),
            used: 0,
            position: from,
            base: from,
            units: 0,
            is_wide: dialect.is_wide(),
            decoder,
            last: None,
            packed: self.packing.map(|packing| (packing, self.path.to_owned())),
        })
    }

    fn too_far(&self, packing: Packing) -> Error {
        Error::failed(format_args!(
            "these rows of \"{}\" are too far into a file that is packed with {}: one read unpacks its first {} MiB; unpack the \
             file, and all of its rows can be read",
            self.path,
            packing.name(),
            packing.most_skipped() / (1024 * 1024)
        ))
    }

    fn broken(&self, error: &io::Error) -> Error {
        unpacking(self.packing, self.path, error)
    }
}

fn unpacking(packing: Option<Packing>, path: &str, error: &io::Error) -> Error {
    match packing {
        Some(packing) => Error::failed(format_args!(
            "\"{path}\" cannot be unpacked from {}: {error}; unpack it first",
            packing.name()
        )),
        None => Error::failed(format_args!("\"{path}\" cannot be read: {error}")),
    }
}

/// The bytes of a file from a position.
pub(crate) struct Feed {
    text: Box<dyn Read>,
    buffer: Vec<u8>,
    /// The number of consumed bytes in the buffer.
    used: usize,
    /// The position of the buffer's end in the text.
    position: u64,
    /// For UTF-16: the position of the buffer's beginning in the text, and the consumed units of the buffer.
    base: u64,
    units: u64,
    is_wide: bool,
    decoder: Option<Decoder>,
    /// The last consumed byte.
    pub(crate) last: Option<u8>,
    packed: Option<(Packing, String)>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Feed {
    /// The next bytes; empty at the end of the file.
    pub(crate) fn next(&mut self) -> Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.used = 0;
            self.base += 2 * std::mem::take(&mut self.units);
            self.fill()?;
        }
        Ok(self.buffer.get(self.used..).unwrap_or_default())
    }

    /// Marks bytes as consumed.
    pub(crate) fn consume(&mut self, bytes: usize) {
        let part = self.buffer.get(self.used..self.used + bytes).unwrap_or_default();
        if self.is_wide {
            // Each character is one unit of UTF-16, or two if it takes four bytes in UTF-8.
            let units = |byte: &u8| u64::from(*byte & 0xc0 != 0x80) + u64::from(*byte >= 0xf0);
            self.units += part.iter().map(units).sum::<u64>();
        }
        self.last = part.last().copied().or(self.last);
        self.used += bytes;
    }

    /// The position of the next byte in the text. Meaningless for decoded text other than UTF-16.
    pub(crate) fn offset(&self) -> u64 {
        if self.is_wide {
            return self.base + 2 * self.units;
        }
        self.position.saturating_sub((self.buffer.len() - self.used) as u64)
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.resize(BLOCK, 0);
        let mut read = 0;
        // A read may return fewer bytes than requested.
        while let Some(rest) = self.buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.text.read(rest) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let (packing, path) = self.packed.clone().unzip();
                    return Err(unpacking(packing, &path.unwrap_or_default(), &error));
                }
            }
        }
        self.buffer.truncate(read);
        self.position += read as u64;
        if let Some(decoder) = &mut self.decoder {
            let is_last = read == 0;
            let capacity = decoder.max_utf8_buffer_length(read).unwrap_or(read * 3 + 16);
            let mut text = String::with_capacity(capacity);
            let (result, ..) = decoder.decode_to_string(&self.buffer, &mut text, is_last);
            if is_last || result == CoderResult::OutputFull {
                self.decoder = None;
            }
            self.buffer = text.into_bytes();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_kept_when_the_time_ends_in_it() {
        let mut budget = Budget { deadline: Instant::now(), ..Budget::new() };
        assert!(budget.take(10_000_000), "the row that was parsed until the time was over");
        assert!(!budget.take(1));
    }
}
