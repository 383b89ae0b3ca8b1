//! The bytes of a text file, a block at a time and from any place, in an encoding that can be parsed as bytes.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use belljar_guest::Result;
use belljar_tree::File;
use encoding_rs::{CoderResult, Decoder};

use crate::dialect::Dialect;

/// How much is read at once.
const BLOCK: usize = 128 * 1024;

/// How much work one reading may be. Fuel and time would end it as well, but with an error.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    /// When the clock is looked at next: that costs more than most rows.
    looked: u64,
    deadline: Instant,
}

impl Budget {
    /// How many bytes may be parsed: one takes 50 to 75 units of fuel, and the host gives five billion.
    pub(crate) const ALL: u64 = 64 * 1024 * 1024;

    /// After how many bytes the clock is looked at.
    const TICK: u64 = 256 * 1024;

    /// The host gives five seconds, on whatever machine.
    const TIME: Duration = Duration::from_millis(2500);

    pub(crate) fn new() -> Self {
        Budget { left: Budget::ALL, looked: Budget::ALL, deadline: Instant::now() + Budget::TIME }
    }

    /// Takes so many bytes. False when there is nothing left.
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

/// The bytes of a file from a place on.
pub(crate) struct Feed {
    file: File,
    buffer: Vec<u8>,
    /// How much of the buffer was used.
    used: usize,
    /// Where in the file the end of the buffer is.
    position: u64,
    decoder: Option<Decoder>,
    /// The last byte that was used.
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

    /// What comes next; empty at the end.
    pub(crate) fn next(&mut self) -> Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.used = 0;
            self.fill()?;
        }
        Ok(self.buffer.get(self.used..).unwrap_or_default())
    }

    /// Says how much of it was used.
    pub(crate) fn use_up(&mut self, bytes: usize) {
        if let Some(last) = (self.used + bytes).checked_sub(1).and_then(|at| self.buffer.get(at)) {
            self.last = Some(*last);
        }
        self.used += bytes;
    }

    /// Where in the file that is which comes next. Not for what is decoded.
    pub(crate) fn offset(&self) -> u64 {
        self.position - (self.buffer.len() - self.used) as u64
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.resize(BLOCK, 0);
        let mut read = 0;
        // A file may give less than it is asked for.
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
