//! Lines on their way to a stream, written by a thread of their own: a thread that has something to say never waits for the
//! reader of the stream.
//!
//! The queue is bounded. A line that finds no room is counted, and the count stands in the stream where the lines would
//! have been, as soon as the reader goes on.

use std::io::{ErrorKind, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait: minutes of an ordinary log, and little beside the memory of one call.
const MOST: usize = 1 << 20;

/// How soon a stream that takes nothing now is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// A bounded queue of lines.
pub struct Lines {
    state: Mutex<State>,
    /// Something was queued, or the queue was closed.
    filled: Condvar,
    /// The queue was taken, or everything was written.
    taken: Condvar,
}

struct State {
    queued: Vec<u8>,
    /// Lines that found no room since the queue was taken last.
    lost: u64,
    /// The writer has lines in hand.
    is_writing: bool,
    is_started: bool,
    is_closed: bool,
}

/// Who offers a line, and how much of the queue it may fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// belljar itself: all of it.
    Host,
    /// A provider: half of it, so that what belljar says about a flood still finds room.
    Guest,
}

impl Lines {
    /// An empty queue without a writer.
    pub const fn new() -> Self {
        let state = State { queued: Vec::new(), lost: 0, is_writing: false, is_started: false, is_closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new(), taken: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line with its line break, or counts it as lost. Never waits for the stream.
    pub fn offer(&self, speaker: Speaker, line: &[u8]) {
        let room = match speaker {
            Speaker::Host => MOST,
            Speaker::Guest => MOST / 2,
        };
        let mut state = self.lock();
        if state.queued.len() + line.len() > room {
            state.lost = state.lost.saturating_add(1);
            return;
        }
        state.put(line);
        drop(state);
        self.filled.notify_one();
    }

    /// Queues lines, and waits for room where there is none. For threads that serve nobody.
    pub fn put(&self, lines: &[u8]) {
        let mut state = self.lock();
        while !state.queued.is_empty() && state.queued.len() + lines.len() > MOST && !state.is_closed {
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.put(lines);
        drop(state);
        self.filled.notify_one();
    }

    /// Starts the thread that writes to `out`. Lines that were queued before are written first.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(&'static self, out: impl Write + Send + 'static) -> std::io::Result<()> {
        if !std::mem::replace(&mut self.lock().is_started, true) {
            std::thread::Builder::new().name("log".to_owned()).spawn(move || self.write_all(out))?;
        }
        Ok(())
    }

    /// Waits until every line is written, for at most `within`.
    pub fn settle(&self, within: Duration) {
        let by = Instant::now() + within;
        let mut state = self.lock();
        while state.is_started && (state.is_writing || !state.queued.is_empty() || state.lost > 0) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.taken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets nobody wait any more, and writes what is queued if the reader takes it within that time.
    pub fn finish(&self, within: Duration) {
        self.lock().is_closed = true;
        self.filled.notify_one();
        self.taken.notify_all();
        self.settle(within);
    }

    fn write_all(&self, mut out: impl Write) {
        loop {
            let mut lines = {
                let mut state = self.lock();
                state.is_writing = false;
                self.taken.notify_all();
                while state.queued.is_empty() && state.lost == 0 {
                    state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.is_writing = true;
                state.take()
            };
            if let Err(unwritten) = write_whole(&mut out, &lines) {
                let lost = lines.split_off(unwritten).iter().filter(|byte| **byte == b'\n').count();
                let mut state = self.lock();
                state.lost = state.lost.saturating_add(lost as u64);
                drop(state);
                std::thread::sleep(AGAIN);
                // A stream that is gone for good is not written to for the count alone.
                let mut state = self.lock();
                if state.queued.is_empty() {
                    state.is_writing = false;
                    self.taken.notify_all();
                    while state.queued.is_empty() {
                        state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        }
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn put(&mut self, lines: &[u8]) {
        if self.lost > 0 && self.queued.len() + lines.len() + 100 <= MOST {
            self.say_lost();
        }
        self.queued.extend_from_slice(lines);
    }

    fn say_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        let lines = if lost == 1 { "line is" } else { "lines are" };
        let _ = writeln!(self.queued, "belljar: {lost} {lines} missing here: this stream was not read in time");
    }

    fn take(&mut self) -> Vec<u8> {
        if self.lost > 0 {
            self.say_lost();
        }
        std::mem::take(&mut self.queued)
    }
}

/// Writes everything, however slowly it is taken. The error: how much was written before the stream failed.
fn write_whole(out: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match out.write(rest) {
            Ok(0) => return Err(at),
            Ok(written) => at += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A stream that is shared with a program that made it non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(_) => return Err(at),
        }
    }
    out.flush().map_err(|_| at)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::mpsc;

    use super::*;

    /// A stream that takes nothing until it is told to, and then everything.
    struct Gate(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>, bool);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if !self.2 {
                self.0.recv().unwrap();
                self.2 = true;
            }
            self.1.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_stream_and_what_is_lost_is_counted() {
        let lines: &'static Lines = Box::leak(Box::default());
        let (open, gate) = mpsc::channel();
        let (sink, written) = mpsc::channel();
        lines.start(Gate(gate, sink, false)).unwrap();
        let line = [b"x".repeat(1023).as_slice(), b"\n"].concat();
        let count = 4096;
        for _ in 0..count {
            lines.offer(Speaker::Host, &line);
        }
        // This thread got here while the stream takes nothing.
        lines.settle(Duration::from_millis(20));
        open.send(()).unwrap();
        lines.finish(Duration::from_secs(60));
        let text = String::from_utf8(written.try_iter().flatten().collect()).unwrap();
        let whole = text.lines().filter(|line| line.len() == 1023).count();
        let lost: usize = text
            .lines()
            .filter_map(|line| line.strip_prefix("belljar: ")?.split(' ').next()?.parse::<usize>().ok())
            .sum();
        assert!(lost > 0 && whole > 0 && whole + lost == count, "{whole} written, {lost} lost");
    }

    #[test]
    fn a_flood_of_a_provider_leaves_room_for_the_host() {
        let lines = Lines::new();
        for _ in 0..2 * MOST / 10 {
            lines.offer(Speaker::Guest, b"123456789\n");
        }
        lines.offer(Speaker::Host, b"listen\n");
        let state = lines.lock();
        assert!(state.queued.ends_with(b"listen\n") && state.queued.len() < MOST / 2 + 200, "{}", state.queued.len());
    }

    #[test]
    fn a_full_pipe_is_written_to_when_it_is_read() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines: &'static Lines = Box::leak(Box::default());
        lines.start(writer).unwrap();
        let line = [b"y".repeat(99).as_slice(), b"\n"].concat();
        for _ in 0..5000 {
            lines.offer(Speaker::Host, &line);
        }
        let mut first = vec![0; 500_000];
        reader.read_exact(&mut first).unwrap();
        assert!(first.chunks(100).all(|chunk| chunk == line));
    }
}
