//! Reads a text file in blocks from any position, and decodes UTF-16 for the byte parser.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use belljar_guest::Result;
use belljar_tree::File;
use encoding_rs::{CoderResult, Decoder};

use crate::dialect::Dialect;

/// The size of a block, in bytes.
const BLOCK: usize = 128 * 1024;

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

    /// The time for one read. The host's limit for a call is five seconds.
    /// An hour in unit tests, which must not depend on the speed of the machine.
    const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 2500 });

    pub(crate) fn new() -> Self {
        Budget { left: Budget::ALL, looked: Budget::ALL, deadline: Instant::now() + Budget::TIME }
    }

    /// Takes `bytes` from the budget. False if it is spent.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        self.left = self.left.saturating_sub(bytes);
        if self.looked - self.left >= Budget::TICK {
            self.looked = self.left;
            if Instant::now() >= self.deadline {
                self.left = 0;
            }
        }
        self.left > 0
    }
}

/// The bytes of a file from a position.
pub(crate) struct Feed {
    file: File,
    buffer: Vec<u8>,
    /// The number of consumed bytes in the buffer.
    used: usize,
    /// The position of the buffer's end in the file.
    position: u64,
    decoder: Option<Decoder>,
    /// The last consumed byte.
    pub(crate) last: Option<u8>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Feed {
    pub(crate) fn new(mut file: File, dialect: &Dialect, from: u64) -> Result<Self> {
        file.seek(SeekFrom::Start(from))?;
        let decoder = dialect.is_wide().then(|| dialect.encoding.new_decoder_without_bom_handling());
        Ok(Feed { file, buffer: Vec::new(), used: 0, position: from, decoder, last: None })
    }

    /// The next bytes; empty at the end of the file.
    pub(crate) fn next(&mut self) -> Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.used = 0;
            self.fill()?;
        }
        Ok(self.buffer.get(self.used..).unwrap_or_default())
    }

    /// Marks bytes as consumed.
    pub(crate) fn consume(&mut self, bytes: usize) {
        if let Some(last) = (self.used + bytes).checked_sub(1).and_then(|at| self.buffer.get(at)) {
            self.last = Some(*last);
        }
        self.used += bytes;
    }

    /// The position of the next byte in the file. Meaningless for decoded UTF-16.
    pub(crate) fn offset(&self) -> u64 {
        self.position - (self.buffer.len() - self.used) as u64
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.resize(BLOCK, 0);
        let mut read = 0;
        // A read may return fewer bytes than requested.
        while let Some(rest) = self.buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.read(rest)? {
                0 => break,
                more => read += more,
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
