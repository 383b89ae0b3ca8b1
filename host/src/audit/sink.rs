//! Where records go: a bounded queue, and a thread of its own that writes.
//!
//! No thread that serves ever waits for the disk. While the queue is full and the writer gets on, a request waits for room
//! before it begins ([`Sink::room`]), as a future. When the writer has written nothing for a second, or fails, requests
//! go on: what the queue cannot hold any more is lost, counted, and told in the log and in the record itself. What waits is
//! written, from the very byte on that was not taken, as soon as the disk works again.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use super::{Record, lost_line};

/// Records that may wait before requests wait for room.
const QUEUE: usize = 8192;

/// Records that may wait in all: those of requests that had begun when the queue was full find room too.
const MOST: usize = 2 * QUEUE;

/// Bytes that waiting records may take, about.
const MOST_BYTES: usize = 32 << 20;

/// A writer that has written nothing for so long is not waited for.
const STALLED: Duration = Duration::from_secs(1);

/// How long the writer waits for further records after the first: waking it for each would cost as much as a small
/// call. This is how much of the record a power failure or `kill -9` can take.
const GATHER: Duration = Duration::from_millis(10);

/// How soon a stream that takes nothing now is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// How soon a write that failed is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// How often a failing writer says how many records are lost.
const SAY: Duration = Duration::from_secs(60);

/// How long the last owner of a sink waits for its writer.
const FAREWELL: Duration = Duration::from_secs(10);

/// A queue of records with a thread that writes them; clones share it.
#[derive(Clone)]
pub struct Sink {
    owner: Option<Arc<Owner>>,
}

/// Ends the writer with the last sink.
struct Owner(Arc<Queue>);

struct Queue {
    state: Mutex<State>,
    /// Requests wait for room.
    is_full: AtomicBool,
    /// Something was put into an empty queue, or the queue was closed.
    filled: Condvar,
    /// The writer has ended.
    ended: Condvar,
    /// There is room again.
    room: Notify,
}

struct State {
    records: Vec<Record>,
    /// Bytes that they take, about.
    bytes: usize,
    /// Records in the writer's hand.
    in_hand: usize,
    /// Records that were lost since the last line that says so.
    lost: u64,
    /// When the writer wrote something, or had nothing to write.
    progress: Instant,
    is_closed: bool,
    has_ended: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.records.len() >= QUEUE || self.bytes >= MOST_BYTES / 2
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, or until the writer has stalled.
    async fn room(&self) {
        loop {
            let room = self.room.notified();
            let left = {
                let state = self.lock();
                if !state.is_full() {
                    return;
                }
                STALLED.saturating_sub(state.progress.elapsed())
            };
            if left.is_zero() {
                return;
            }
            let _ = tokio::time::timeout(left, room).await;
        }
    }
}

impl Sink {
    /// Keeps no record.
    pub fn off() -> Self {
        Self { owner: None }
    }

    /// Writes each record to `out` as one line.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn to_writer(out: impl Write + Send + 'static) -> std::io::Result<Self> {
        Self::start(Record::to_line, |lost| lost_line(SystemTime::now(), lost), out)
    }

    /// Writes each record to `out` as `form` says, and a line break.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn written_as(
        form: impl Fn(&Record) -> String + Send + 'static,
        out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start(form, |lost| format!("{lost} records of calls are missing here"), out)
    }

    fn start(
        form: impl Fn(&Record) -> String + Send + 'static,
        lost: impl Fn(u64) -> String + Send + 'static,
        out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let state = State {
            records: Vec::new(),
            bytes: 0,
            in_hand: 0,
            lost: 0,
            progress: Instant::now(),
            is_closed: false,
            has_ended: false,
        };
        let queue = Arc::new(Queue {
            state: Mutex::new(state),
            is_full: AtomicBool::new(false),
            filled: Condvar::new(),
            ended: Condvar::new(),
            room: Notify::new(),
        });
        let own = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || Writer { queue: &own, out }.run(form, lost))?;
        Ok(Self { owner: Some(Arc::new(Owner(queue))) })
    }

    fn queue(&self) -> Option<&Queue> {
        self.owner.as_ref().map(|owner| &*owner.0)
    }

    /// Whether records are kept at all, so that a caller can spare making one.
    pub fn is_on(&self) -> bool {
        self.owner.is_some()
    }

    /// Waits until there is room for a record, or the writer has stalled. A request waits here before it begins.
    pub async fn room(&self) {
        if let Some(queue) = self.queue()
            && queue.is_full.load(Ordering::Relaxed)
        {
            queue.room().await;
        }
    }

    /// Queues a record, or counts it as lost. Never waits.
    pub fn record(&self, record: Record) {
        let Some(queue) = self.queue() else { return };
        let weight = record.weight();
        let mut state = queue.lock();
        if state.records.len() >= MOST || state.bytes >= MOST_BYTES || state.has_ended {
            state.lost = state.lost.saturating_add(1);
            return;
        }
        let was_empty = state.records.is_empty();
        state.records.push(record);
        state.bytes += weight;
        if was_empty && state.in_hand == 0 {
            state.progress = Instant::now();
        }
        if state.is_full() {
            queue.is_full.store(true, Ordering::Relaxed);
        }
        drop(state);
        if was_empty {
            queue.filled.notify_one();
        }
    }

    /// Ends the record: writes what is queued, if that is taken within this time. What is not is lost, and told in the log.
    pub fn finish(&self, within: Duration) {
        self.queue().into_iter().for_each(|queue| queue.finish(within));
    }
}

impl Queue {
    fn finish(&self, within: Duration) {
        let mut state = self.lock();
        if state.has_ended {
            return;
        }
        state.is_closed = true;
        self.filled.notify_one();
        let going_on = |state: &mut State| !state.has_ended;
        let (mut state, _) =
            self.ended.wait_timeout_while(state, within, going_on).unwrap_or_else(PoisonError::into_inner);
        let unwritten = state.records.len() as u64 + state.in_hand as u64 + state.lost;
        state.has_ended = true;
        drop(state);
        if unwritten > 0 {
            tracing::error!("{unwritten} audit records were not written when belljar ended: they are lost");
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.finish(FAREWELL);
    }
}

/// The thread that writes.
struct Writer<'a, W> {
    queue: &'a Queue,
    out: W,
}

/// What became of a batch.
#[derive(PartialEq, Eq)]
enum Written {
    Whole,
    /// The queue was closed while the stream failed.
    GivenUp,
}

impl<W: Write> Writer<'_, W> {
    fn run(mut self, form: impl Fn(&Record) -> String, lost: impl Fn(u64) -> String) {
        let mut lines = Vec::new();
        loop {
            let (records, missing) = self.gather();
            if records.is_empty() && missing == 0 {
                break;
            }
            for record in &records {
                lines.extend_from_slice(form(record).as_bytes());
                lines.push(b'\n');
            }
            drop(records);
            // They were lost when the queue was full of these.
            if missing > 0 {
                lines.extend_from_slice(lost(missing).as_bytes());
                lines.push(b'\n');
            }
            if self.write(&lines) == Written::GivenUp {
                break;
            }
            lines.clear();
            lines.shrink_to(1 << 20);
        }
        let mut state = self.queue.lock();
        state.has_ended = true;
        drop(state);
        self.queue.ended.notify_all();
    }

    /// Waits for records and takes all that came within [`GATHER`], and how many were lost behind them; nothing: the queue
    /// was closed, and there are no more.
    fn gather(&self) -> (Vec<Record>, u64) {
        let mut state = self.queue.lock();
        state.in_hand = 0;
        while state.records.is_empty() && state.lost == 0 && !state.is_closed {
            state = self.queue.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_closed && !state.is_full() {
            drop(state);
            std::thread::sleep(GATHER);
            state = self.queue.lock();
        }
        let records = std::mem::take(&mut state.records);
        state.in_hand = records.len();
        state.bytes = 0;
        state.progress = Instant::now();
        let lost = std::mem::take(&mut state.lost);
        self.queue.is_full.store(false, Ordering::Relaxed);
        drop(state);
        self.queue.room.notify_waiters();
        (records, lost)
    }

    /// Writes all of it, however long that takes.
    fn write(&mut self, lines: &[u8]) -> Written {
        let mut at = 0;
        let mut said: Option<Instant> = None;
        while let Some(rest) = lines.get(at..).filter(|rest| !rest.is_empty()) {
            let error = match self.out.write(rest) {
                Ok(0) => std::io::Error::from(ErrorKind::WriteZero),
                Ok(written) => {
                    at += written;
                    self.queue.lock().progress = Instant::now();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(AGAIN);
                    continue;
                }
                Err(error) => error,
            };
            let (waiting, lost, is_closed) = {
                let state = self.queue.lock();
                (state.records.len() + state.in_hand, state.lost, state.is_closed)
            };
            if said.is_none_or(|at| at.elapsed() >= SAY) {
                said = Some(Instant::now());
                tracing::error!(
                    "cannot write the audit record: {error}; calls go on, {waiting} records wait and {lost} are lost so far; it is tried again until it works"
                );
            }
            if is_closed {
                return Written::GivenUp;
            }
            std::thread::sleep(RETRY);
        }
        let _ = self.out.flush();
        if said.is_some() {
            let lost = self.queue.lock().lost;
            tracing::warn!("the audit record is written again; {lost} records are lost, and the record says so too");
        }
        Written::Whole
    }
}

#[cfg(test)]
mod tests;
