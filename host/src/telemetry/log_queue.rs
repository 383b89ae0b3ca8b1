//! A bounded queue of log lines, and a thread that writes them to a stream. A thread that logs never waits for the
//! reader of the stream.
//!
//! A line that finds no room is dropped and counted. When the reader continues, the stream contains the count in place
//! of the lost lines.

use std::io::{ErrorKind, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes in the queue: minutes of an ordinary log, and little compared with the memory of one call.
const MAX_QUEUED_BYTES: usize = 1 << 20;

/// Pause before the next write to a stream that would block.
const BLOCKED_PAUSE: Duration = Duration::from_millis(10);

/// A bounded queue of lines.
pub struct LogQueue {
    state: Mutex<State>,
    /// Notified when a line is queued or the queue is closed.
    filled: Condvar,
    /// Notified when the writer has taken the queue, or has written all lines.
    progress: Condvar,
}

struct State {
    queued: Vec<u8>,
    /// Lines that were lost since the writer last took the queue.
    lost: u64,
    /// True while the writer has lines that it took and has not written.
    is_writing: bool,
    is_started: bool,
    is_closed: bool,
}

/// The source of a line, which decides how much of the queue the line may fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// belljar: the whole queue.
    Host,
    /// A provider: half of the queue, so that belljar's own lines find room while a provider floods the log.
    Guest,
}

impl LogQueue {
    /// An empty queue without a writer.
    pub const fn new() -> Self {
        let state = State { queued: Vec::new(), lost: 0, is_writing: false, is_started: false, is_closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new(), progress: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line, which ends with a line break, or counts it as lost. Never blocks.
    pub fn try_put(&self, source: LineSource, line: &[u8]) {
        let room = match source {
            LineSource::Host => MAX_QUEUED_BYTES,
            LineSource::Guest => MAX_QUEUED_BYTES / 2,
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

    /// Queues lines, and blocks until there is room. Only for threads that serve no request.
    pub fn put(&self, lines: &[u8]) {
        let mut state = self.lock();
        while !state.queued.is_empty() && state.queued.len() + lines.len() > MAX_QUEUED_BYTES && !state.is_closed {
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.put(lines);
        drop(state);
        self.filled.notify_one();
    }

    /// Starts the thread that writes to `out`, once. Lines that were queued before are written first.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&'static self, out: impl Write + Send + 'static) -> std::io::Result<()> {
        if !std::mem::replace(&mut self.lock().is_started, true) {
            std::thread::Builder::new().name("log".to_owned()).spawn(move || self.write_all(out))?;
        }
        Ok(())
    }

    /// Waits until all lines are written, for at most `within`.
    pub fn wait_until_written(&self, within: Duration) {
        let by = Instant::now() + within;
        let mut state = self.lock();
        while state.is_started && (state.is_writing || !state.queued.is_empty() || state.lost > 0) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the queue and waits until all lines are written, for at most `within`. From then on, [`LogQueue::put`]
    /// never blocks.
    pub fn finish(&self, within: Duration) {
        self.lock().is_closed = true;
        self.filled.notify_one();
        self.progress.notify_all();
        self.wait_until_written(within);
    }

    fn write_all(&self, mut out: impl Write) {
        loop {
            let mut lines = {
                let mut state = self.lock();
                state.is_writing = false;
                self.progress.notify_all();
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
                std::thread::sleep(BLOCKED_PAUSE);
                // Waits for the next line. The count of lost lines alone is no reason to try a broken stream again.
                let mut state = self.lock();
                if state.queued.is_empty() {
                    state.is_writing = false;
                    self.progress.notify_all();
                    while state.queued.is_empty() {
                        state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        }
    }
}

impl Default for LogQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn put(&mut self, lines: &[u8]) {
        if self.lost > 0 && self.queued.len() + lines.len() + 100 <= MAX_QUEUED_BYTES {
            self.put_lost_count();
        }
        self.queued.extend_from_slice(lines);
    }

    fn put_lost_count(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        let lines = if lost == 1 { "line is" } else { "lines are" };
        let _ = writeln!(self.queued, "belljar: {lost} {lines} missing here: this stream was not read in time");
    }

    fn take(&mut self) -> Vec<u8> {
        if self.lost > 0 {
            self.put_lost_count();
        }
        std::mem::take(&mut self.queued)
    }
}

/// Writes all bytes. The error is the number of bytes that were written before the stream failed.
fn write_whole(out: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match out.write(rest) {
            Ok(0) => return Err(at),
            Ok(written) => at += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another program that shares the stream can make it non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(BLOCKED_PAUSE),
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

    /// A stream whose first write blocks until the channel has a message.
    struct BlockedStream(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>, bool);

    impl Write for BlockedStream {
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
    fn no_thread_waits_for_the_stream_and_lost_lines_are_counted() {
        let lines: &'static LogQueue = Box::leak(Box::default());
        let (open, gate) = mpsc::channel();
        let (sink, written) = mpsc::channel();
        lines.start(BlockedStream(gate, sink, false)).unwrap();
        let line = [b"x".repeat(1023).as_slice(), b"\n"].concat();
        let count = 4096;
        for _ in 0..count {
            lines.try_put(LineSource::Host, &line);
        }
        // The loop above has ended, although the stream takes no byte yet.
        lines.wait_until_written(Duration::from_millis(20));
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
        let lines = LogQueue::new();
        for _ in 0..2 * MAX_QUEUED_BYTES / 10 {
            lines.try_put(LineSource::Guest, b"123456789\n");
        }
        lines.try_put(LineSource::Host, b"listen\n");
        let state = lines.lock();
        assert!(
            state.queued.ends_with(b"listen\n") && state.queued.len() < MAX_QUEUED_BYTES / 2 + 200,
            "{}",
            state.queued.len()
        );
    }

    #[test]
    fn a_full_pipe_is_written_to_when_it_is_read() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines: &'static LogQueue = Box::leak(Box::default());
        lines.start(writer).unwrap();
        let line = [b"y".repeat(99).as_slice(), b"\n"].concat();
        for _ in 0..5000 {
            lines.try_put(LineSource::Host, &line);
        }
        let mut first = vec![0; 500_000];
        reader.read_exact(&mut first).unwrap();
        assert!(first.chunks(100).all(|chunk| chunk == line));
    }
}
