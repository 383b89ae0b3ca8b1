//! The sink of events: a bounded queue, and a thread that writes the audit record.
//!
//! No serving thread waits for the disk. While the queue is full and the writer makes progress, a request waits for
//! room before it begins ([`Sink::wait_for_room`] is async). When the writer has written nothing for a second, or
//! fails, requests continue. Events that find no room are then lost. Their number is logged and written to the record
//! itself. With [`Sink::refusing`], requests are refused instead of that.
//!
//! When the disk works again, the writer continues with the first byte that was not written.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use super::chain::LineChain;
use super::event::Event;
use super::line::lost_line;
use super::observer::EventObserver;
use super::trace::Tracer;

/// Events in the queue from which on requests wait for room.
const WAIT_FROM: usize = 8192;

/// Most events in the queue. Twice [`WAIT_FROM`], so that requests that began before it was full find room.
const MAX_QUEUED: usize = 2 * WAIT_FROM;

/// Most bytes of the events in the queue, as estimated.
const MAX_QUEUED_BYTES: usize = 32 << 20;

/// Requests do not wait for a writer that has written nothing for this time.
const STALLED_AFTER: Duration = Duration::from_secs(1);

/// The writer waits this time for more events after the first one: waking it for each would cost as much as a small
/// call. A power failure or `kill -9` can lose the events of this time.
const GATHER_TIME: Duration = Duration::from_millis(10);

/// Events for which the queue keeps room when it is empty.
const KEPT_ROOM: usize = 128;

/// Pause before the next write to a stream that would block.
const BLOCKED_PAUSE: Duration = Duration::from_millis(10);

/// Pause before a failed write is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Pause between two log messages of a failing writer.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// Dropping the last clone of a sink waits at most this time for the writer.
const MAX_FINISH_TIME: Duration = Duration::from_secs(10);

/// Makes the lines of a record.
pub trait LineFormat: Send {
    /// Adds the line of an event to `out`, without a line break. Adds nothing if the event gets none.
    fn event(&mut self, event: &Event, out: &mut Vec<u8>);

    /// Adds the line that replaces `count` lost events to `out`, without a line break.
    fn lost(&mut self, count: u64, out: &mut Vec<u8>);
}

/// The lines of the audit record.
pub struct RecordFormat {
    chain: LineChain,
}

impl RecordFormat {
    /// Lines in this chain.
    pub fn new(chain: LineChain) -> Self {
        Self { chain }
    }
}

impl LineFormat for RecordFormat {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let from = out.len();
        event.write_line(out);
        self.chain.seal(out, from);
    }

    fn lost(&mut self, count: u64, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(lost_line(SystemTime::now(), count).as_bytes());
        self.chain.seal(out, from);
    }
}

/// The record cannot be written, and the operator wants no request without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the record of calls cannot be written, and belljar serves no request without it (audit.when-full = \"refuse\")"
)]
pub struct RecordUnavailable;

/// A queue of events with a thread that writes them, and observers that see each event. Clones share them.
#[derive(Clone, Default)]
pub struct Sink {
    owner: Option<Arc<Owner>>,
    observers: Arc<[Arc<dyn EventObserver>]>,
    /// True if requests are refused while the record cannot be written.
    is_refusing: bool,
    tracer: Option<Arc<Tracer>>,
}

/// Ends the writer when the last sink is dropped.
struct Owner(Arc<Queue>);

struct Queue {
    state: Mutex<State>,
    /// True if requests must wait for room.
    is_full: AtomicBool,
    /// Notified when an event enters an empty queue, or when the queue is closed.
    filled: Condvar,
    /// Notified when the writer has ended.
    ended: Condvar,
    /// Notified when there is room again.
    has_room: Notify,
    /// [`STALLED_AFTER`], or longer in a test.
    stalled_after: Duration,
}

struct State {
    events: Vec<Event>,
    /// An estimate of the bytes that they take.
    bytes: usize,
    /// Events that the writer took and has not written yet.
    writing: usize,
    /// Events that were lost since the last line that names a number of lost ones.
    lost: u64,
    /// The last time at which the writer wrote a byte or had nothing to write.
    progress: Instant,
    /// True since a write failed, until one succeeds.
    is_failing: bool,
    /// Where the next lines go, instead of where they went before.
    next_out: Option<RecordWriter>,
    is_closed: bool,
    has_ended: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.events.len() >= WAIT_FROM || self.bytes >= MAX_QUEUED_BYTES / 2
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the writer fails, or has events and has written nothing for a second.
    fn is_stuck(&self) -> bool {
        let state = self.lock();
        let is_waiting = !state.events.is_empty() || state.writing > 0;
        state.is_failing || is_waiting && state.progress.elapsed() >= self.stalled_after
    }

    /// Waits for room, or until the writer has stalled.
    async fn wait_for_room(&self) {
        loop {
            let room = self.has_room.notified();
            let left = {
                let state = self.lock();
                if !state.is_full() {
                    return;
                }
                self.stalled_after.saturating_sub(state.progress.elapsed())
            };
            if left.is_zero() {
                return;
            }
            let _ = tokio::time::timeout(left, room).await;
        }
    }
}

impl Sink {
    /// A sink that discards each event.
    pub fn off() -> Self {
        Self::default()
    }

    /// A sink that writes a line for each event to `out`.
    ///
    /// # Errors
    /// The writer's thread cannot be started.
    pub fn to_writer(format: impl LineFormat + 'static, out: impl Write + Send + 'static) -> std::io::Result<Self> {
        Self::start(format, out, STALLED_AFTER)
    }

    /// The same sink, with requests refused while the record cannot be written.
    #[must_use]
    pub fn refusing(self) -> Self {
        Self { is_refusing: true, ..self }
    }

    /// The same sink, with one more observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn EventObserver>) -> Self {
        let observers = self.observers.iter().cloned().chain([observer]).collect();
        Self { observers, ..self }
    }

    /// The same sink, with traces.
    #[must_use]
    pub fn with_tracer(self, tracer: Arc<Tracer>) -> Self {
        let sink = self.with_observer(tracer.clone());
        Self { tracer: Some(tracer), ..sink }
    }

    /// Decides which requests are traced. `None`: no request is.
    pub fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_deref()
    }

    fn start(
        format: impl LineFormat + 'static,
        out: impl Write + Send + 'static,
        stalled_after: Duration,
    ) -> std::io::Result<Self> {
        let state = State {
            events: Vec::new(),
            bytes: 0,
            writing: 0,
            lost: 0,
            progress: Instant::now(),
            is_failing: false,
            next_out: None,
            is_closed: false,
            has_ended: false,
        };
        let queue = Arc::new(Queue {
            state: Mutex::new(state),
            is_full: AtomicBool::new(false),
            filled: Condvar::new(),
            ended: Condvar::new(),
            has_room: Notify::new(),
            stalled_after,
        });
        let own = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || Writer { queue: &own, out: Box::new(out) }.run(format))?;
        Ok(Self { owner: Some(Arc::new(Owner(queue))), ..Self::default() })
    }

    fn queue(&self) -> Option<&Queue> {
        self.owner.as_ref().map(|owner| &*owner.0)
    }

    /// False if nobody takes events, so that a caller need not make them.
    pub fn is_on(&self) -> bool {
        self.owner.is_some() || !self.observers.is_empty()
    }

    /// Checks that the record can be written, if requests are refused otherwise.
    ///
    /// # Errors
    /// [`RecordUnavailable`] if it cannot.
    pub fn check(&self) -> Result<(), RecordUnavailable> {
        match self.queue().filter(|_| self.is_refusing).is_some_and(Queue::is_stuck) {
            true => Err(RecordUnavailable),
            false => Ok(()),
        }
    }

    /// From the next line on, writes the record to `out`.
    pub fn set_writer(&self, out: impl Write + Send + 'static) {
        if let Some(queue) = self.queue() {
            queue.lock().next_out = Some(Box::new(out));
        }
    }

    /// The number of events that wait to be written.
    pub fn waiting(&self) -> usize {
        let Some(queue) = self.queue() else { return 0 };
        let state = queue.lock();
        state.events.len() + state.writing
    }

    /// Waits until there is room for an event, or the writer has stalled. A request waits here before it begins.
    pub async fn wait_for_room(&self) {
        if let Some(queue) = self.queue()
            && queue.is_full.load(Ordering::Relaxed)
        {
            queue.wait_for_room().await;
        }
    }

    /// Queues an event, or counts it as lost. Never blocks.
    pub fn record(&self, mut event: Event) {
        event.took = event.request.as_ref().map_or(Duration::ZERO, |request| request.age());
        self.observers.iter().for_each(|observer| observer.observe(&event));
        let Some(queue) = self.queue() else { return };
        let bytes = event.estimated_bytes();
        let mut state = queue.lock();
        if state.events.len() >= MAX_QUEUED || state.bytes >= MAX_QUEUED_BYTES || state.has_ended {
            state.lost = state.lost.saturating_add(1);
            return;
        }
        let was_empty = state.events.is_empty();
        state.events.push(event);
        state.bytes += bytes;
        if was_empty && state.writing == 0 {
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

    /// Closes the queue and waits for the writer, for at most `within`. Logs the number of events that were not written
    /// in time.
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
        let unwritten = state.events.len() as u64 + state.writing as u64 + state.lost;
        state.has_ended = true;
        drop(state);
        if unwritten > 0 {
            tracing::error!("{unwritten} audit records were not written when belljar ended: they are lost");
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.finish(MAX_FINISH_TIME);
    }
}

/// Where the record goes.
type RecordWriter = Box<dyn Write + Send>;

/// The state of the writer's thread.
struct Writer<'a> {
    queue: &'a Queue,
    out: RecordWriter,
}

/// The outcome of writing a batch.
#[derive(PartialEq, Eq)]
enum BatchOutcome {
    Written,
    /// The queue was closed while the stream failed.
    GivenUp,
}

impl Writer<'_> {
    fn run(mut self, mut format: impl LineFormat) {
        let (mut lines, mut events) = (Vec::new(), Vec::new());
        loop {
            let missing = self.gather(&mut events);
            if events.is_empty() && missing == 0 {
                break;
            }
            for event in &events {
                let before = lines.len();
                format.event(event, &mut lines);
                if lines.len() > before {
                    lines.push(b'\n');
                }
            }
            events.clear();
            events.shrink_to(KEPT_ROOM);
            // These were lost while the queue was full of the events above.
            if missing > 0 {
                format.lost(missing, &mut lines);
                lines.push(b'\n');
            }
            if self.write(&lines) == BatchOutcome::GivenUp {
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

    /// Waits for events. Gives those that came within [`GATHER_TIME`] in `events`, which is empty before, and returns the
    /// number of events that were lost after them. No event and no loss means that the queue is closed and empty.
    fn gather(&self, events: &mut Vec<Event>) -> u64 {
        let mut state = self.queue.lock();
        state.writing = 0;
        while state.events.is_empty() && state.lost == 0 && !state.is_closed {
            state = self.queue.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_closed && !state.is_full() {
            drop(state);
            std::thread::sleep(GATHER_TIME);
            state = self.queue.lock();
        }
        // The room of the events before is used again, so that a request need not make any.
        std::mem::swap(&mut state.events, events);
        state.writing = events.len();
        state.bytes = 0;
        state.progress = Instant::now();
        let lost = std::mem::take(&mut state.lost);
        self.queue.is_full.store(false, Ordering::Relaxed);
        drop(state);
        self.queue.has_room.notify_waiters();
        lost
    }

    /// Writes all lines, and retries until they are written or the queue is closed.
    fn write(&mut self, lines: &[u8]) -> BatchOutcome {
        let mut at = 0;
        let mut last_logged: Option<Instant> = None;
        while let Some(rest) = lines.get(at..).filter(|rest| !rest.is_empty()) {
            // No line is in two files.
            let is_at_line_start = at.checked_sub(1).is_none_or(|last| lines.get(last) == Some(&b'\n'));
            if is_at_line_start && let Some(out) = self.queue.lock().next_out.take() {
                self.out = out;
            }
            let error = match self.out.write(rest) {
                Ok(0) => std::io::Error::from(ErrorKind::WriteZero),
                Ok(written) => {
                    at += written;
                    let mut state = self.queue.lock();
                    (state.progress, state.is_failing) = (Instant::now(), false);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(BLOCKED_PAUSE);
                    continue;
                }
                Err(error) => error,
            };
            let (waiting, lost, is_closed) = {
                let mut state = self.queue.lock();
                state.is_failing = true;
                (state.events.len() + state.writing, state.lost, state.is_closed)
            };
            if last_logged.is_none_or(|at| at.elapsed() >= LOG_PAUSE) {
                last_logged = Some(Instant::now());
                tracing::error!(
                    "cannot write the audit record: {error}; calls go on, {waiting} records wait and {lost} are lost so far; it is tried again until it works"
                );
            }
            if is_closed {
                return BatchOutcome::GivenUp;
            }
            std::thread::sleep(RETRY_PAUSE);
        }
        let _ = self.out.flush();
        if last_logged.is_some() {
            let lost = self.queue.lock().lost;
            tracing::warn!("the audit record is written again; {lost} records are lost, and the record says so too");
        }
        BatchOutcome::Written
    }
}

#[cfg(test)]
mod tests;
