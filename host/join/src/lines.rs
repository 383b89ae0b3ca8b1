//! Reads whole lines, as many as there are.

use std::io::{self, Read};

use memchr::memrchr;

/// The size of one reading, in bytes.
const CHUNK: usize = 32 << 10;

/// A longer line gives its memory back when it is done.
const KEPT: usize = 256 << 10;

/// A stream of lines.
pub(crate) struct Lines<R> {
    input: R,
    chunk: Box<[u8]>,
    /// The beginning of a line whose end was not read yet.
    partial: Vec<u8>,
    /// The longest line that is kept whole, in bytes.
    longest: usize,
}

/// What was read.
pub(crate) enum ReadLines<'a> {
    /// One or more whole lines, each with its line break.
    Lines(&'a [u8]),
    /// A part of a line that is too long to be kept. Its line break is in the last part.
    Part(&'a [u8]),
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R, longest: usize) -> Self {
        Self { input, chunk: vec![0; CHUNK].into_boxed_slice(), partial: Vec::new(), longest }
    }

    /// Waits for lines, and gives them to `take`. False at the end of the stream.
    ///
    /// # Errors
    /// If the stream or `take` fails.
    pub(crate) fn next(&mut self, mut take: impl FnMut(ReadLines<'_>) -> io::Result<()>) -> io::Result<bool> {
        let Self { input, chunk, partial, longest } = self;
        let read = loop {
            match input.read(chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else {
            if !partial.is_empty() {
                // The last line may lack its line break.
                partial.push(b'\n');
                take(ReadLines::Lines(partial))?;
                partial.clear();
            }
            return Ok(false);
        };
        let (whole, rest) = bytes.split_at(memrchr(b'\n', bytes).map_or(0, |at| at + 1));
        if !whole.is_empty() {
            if partial.is_empty() {
                take(ReadLines::Lines(whole))?;
            } else {
                partial.extend_from_slice(whole);
                take(ReadLines::Lines(partial))?;
                partial.clear();
                partial.shrink_to(KEPT);
            }
        }
        partial.extend_from_slice(rest);
        if partial.len() > *longest {
            take(ReadLines::Part(partial))?;
            *partial = Vec::new();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that gives these pieces, one at each reading.
    struct Pieces(std::collections::VecDeque<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.pop_front().unwrap_or_default();
            into[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    fn read(pieces: &[&str]) -> Vec<(bool, String)> {
        let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        let mut lines = Lines::new(Pieces(pieces), 8);
        let mut all = Vec::new();
        let mut is_open = true;
        while is_open {
            let take = |reading: ReadLines<'_>| {
                let (is_whole, bytes) = match reading {
                    ReadLines::Lines(bytes) => (true, bytes),
                    ReadLines::Part(bytes) => (false, bytes),
                };
                all.push((is_whole, String::from_utf8_lossy(bytes).into_owned()));
                Ok(())
            };
            is_open = lines.next(take).unwrap();
        }
        all
    }

    #[test]
    fn lines_are_whole_however_they_come() {
        let whole = |lines: &[&str]| lines.iter().map(|line| (true, (*line).to_owned())).collect::<Vec<_>>();
        assert_eq!(read(&["a\n"]), whole(&["a\n"]));
        assert_eq!(read(&["a\nb\nc", "d\n"]), whole(&["a\nb\n", "cd\n"]));
        assert_eq!(read(&["a", "b", "\n"]), whole(&["ab\n"]));
        assert_eq!(read(&["a\n", "b"]), whole(&["a\n", "b\n"]), "the last line without a break");
        assert_eq!(read(&[]), []);
    }

    #[test]
    fn a_line_that_is_too_long_passes_in_parts() {
        let all = read(&["0123456789", "abcdefghij", "\nx\n"]);
        let parts: String = all.iter().map(|(_, part)| part.as_str()).collect();
        assert_eq!(parts, "0123456789abcdefghij\nx\n");
        assert_eq!((all[0].0, all[1].0), (false, false));
    }
}
