//! Caps open connections. When the table is full, a new connection evicts the least active one.
//!
//! So one client cannot occupy every place, be it with idle connections, slow reads of answers, endless calls, streams
//! or a flood of requests. A full table evicts a connection by its stage:
//!
//! | stage | evicted after | how the connection ends |
//! |---|---|---|
//! | no request yet, or answered | [`EVICT_NEW_AFTER`] | closed |
//! | its request is incomplete | [`EVICT_NEW_AFTER`] | the request is answered as busy |
//! | its call waits for admission | [`EVICT_WAITING_AFTER`] | the request is answered as busy |
//! | it has an open stream | [`EVICT_WAITING_AFTER`] | the stream ends |
//! | the client reads its answer | [`EVICT_WRITING_AFTER`] | closed |
//! | its call runs | [`EVICT_WRITING_AFTER`] | the request is answered as busy |
//!
//! Earlier rows are evicted first. Within a row, connections of the address with most connections come first, then
//! those longest in their stage. Admission runs far fewer calls than the table has places, so the last row matters for
//! unusual configurations only.
//!
//! If no connection can be evicted, the oldest one is closed after its current answer. In a nearly full table, waiting
//! and streaming connections take at most half of all places.
//!
//! [`EVICT_WRITING_AFTER`]: crate::model::bounds::EVICT_WRITING_AFTER

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::mcp::request_meta::MetaCache;
use crate::mcp::request_phase::RequestPhase;
use crate::model::bounds::{EVICT_NEW_AFTER, EVICT_WAITING_AFTER};

/// The time for which an evicted connection stays open, so that its client can read the busy error.
const BUSY_ANSWER_TIME: Duration = Duration::from_millis(500);

/// The stage of a connection. Connections of earlier stages are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It has sent no request yet.
    Silent,
    /// Its last request was answered.
    Idle,
    /// Its request is incomplete.
    Receiving,
    /// Its request is being served; its call may wait for admission.
    Served,
    /// It has an open stream.
    Streaming,
    /// The client reads its answer.
    Sending,
    /// Its call runs. Never set: [`Connection::stage`] derives it from the request's phase.
    Running,
}

impl Stage {
    /// The shortest time in this stage after which a connection may be evicted.
    fn evictable_after(self, evict_writing_after: Duration) -> Duration {
        match self {
            Self::Silent | Self::Idle | Self::Receiving => EVICT_NEW_AFTER.get().min(evict_writing_after),
            Self::Served | Self::Streaming => EVICT_WAITING_AFTER.get().min(evict_writing_after),
            Self::Sending | Self::Running => evict_writing_after,
        }
    }

    /// True if the connection waits for a free turn or for events, which may never come.
    fn is_waiting(self) -> bool {
        matches!(self, Self::Served | Self::Streaming)
    }

    /// True if an evicted connection of this stage still has a request to answer or a stream to end.
    fn has_open_request(self) -> bool {
        matches!(self, Self::Receiving | Self::Served | Self::Streaming | Self::Running)
    }
}

/// The table of all connections.
pub(super) struct ConnectionTable {
    capacity: usize,
    evict_writing_after: Duration,
    /// Cancelled when the requests of all connections end.
    cancel: CancellationToken,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Arc<Connection>>,
    /// Evicted connections whose clients still read the busy error.
    evicted: HashMap<u64, Arc<Connection>>,
}

/// One connection.
pub(super) struct Connection {
    peer: IpAddr,
    opened: Instant,
    stage: Mutex<(Stage, Instant, RequestPhase)>,
    /// The client must have read the current answer by this time.
    deadline: Mutex<Option<Instant>>,
    /// The last `_meta` of its requests.
    meta_cache: MetaCache,
    /// Ends its requests. One for all of them: making one for each would lock what all connections share.
    cancellation: CancellationToken,
    /// Cancelled when the connection is evicted.
    cut: CancellationToken,
    /// True if it was evicted with an open request, which is answered as busy.
    is_evicted: AtomicBool,
    /// True if it is closed after its current answer.
    closes_after_answer: AtomicBool,
    /// True if it is reset on close, so that the kernel drops unread bytes.
    is_reset: AtomicBool,
}

/// A place in the table until it is dropped.
pub(super) struct ConnectionSlot {
    connections: Arc<ConnectionTable>,
    number: u64,
    pub(super) connection: Arc<Connection>,
}

impl ConnectionTable {
    /// A table with `capacity` places. `evict_writing_after`: see
    /// [`EVICT_WRITING_AFTER`](crate::model::bounds::EVICT_WRITING_AFTER). Cancelling `cancel` ends the requests.
    pub(super) fn new(capacity: usize, evict_writing_after: Duration, cancel: CancellationToken) -> Arc<Self> {
        Arc::new(Self { capacity, evict_writing_after, cancel, table: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection from `peer`. `None` if the table is full and no connection can be evicted now.
    pub(super) fn add(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        let mut table = self.lock();
        let present = table.open.len();
        if present >= self.capacity && !table.evict_least_active(self.capacity, self.evict_writing_after) {
            return None;
        }
        // Makes room in a nearly full table before the next connection needs it.
        if present < self.capacity && present >= self.capacity / 4 * 3 {
            table.evict_waiting(self.capacity, self.evict_writing_after);
        }
        let number = table.next;
        table.next += 1;
        let now = Instant::now();
        let connection = Arc::new(Connection {
            peer,
            opened: now,
            stage: Mutex::new((Stage::Silent, now, RequestPhase::default())),
            deadline: Mutex::default(),
            meta_cache: MetaCache::default(),
            cancellation: self.cancel.child_token(),
            cut: CancellationToken::new(),
            is_evicted: AtomicBool::new(false),
            closes_after_answer: AtomicBool::new(false),
            is_reset: AtomicBool::new(false),
        });
        table.open.insert(number, Arc::clone(&connection));
        Some(ConnectionSlot { connections: Arc::clone(self), number, connection })
    }

    /// Evicts the least active connection, because the process has no free file descriptor. False if none can be
    /// evicted.
    pub(super) fn evict_least_active(&self) -> bool {
        self.lock().evict_least_active(self.capacity, self.evict_writing_after)
    }
}

impl Table {
    /// Evicts one connection. False if none can be evicted now.
    fn evict_least_active(&mut self, capacity: usize, evict_writing_after: Duration) -> bool {
        let least = self.least_active(evict_writing_after, |_| true);
        if let Some(number) = least {
            return self.evict(number, capacity);
        }
        // All are busy: the oldest one is closed after its current answer.
        let now = Instant::now();
        let can_close = |connection: &&Arc<Connection>| {
            now.duration_since(connection.opened) >= EVICT_NEW_AFTER.get().min(evict_writing_after)
                && !connection.closes_after_answer.load(Ordering::Relaxed)
        };
        if let Some(oldest) = self.open.values().filter(can_close).min_by_key(|connection| connection.opened) {
            oldest.closes_after_answer.store(true, Ordering::Relaxed);
        }
        false
    }

    /// Evicts one waiting or streaming connection, if these take more than half of all places.
    fn evict_waiting(&mut self, capacity: usize, evict_writing_after: Duration) {
        let waiting = self.open.values().filter(|connection| connection.stage().0.is_waiting()).count();
        if waiting > capacity / 2
            && let Some(number) = self.least_active(evict_writing_after, Stage::is_waiting)
        {
            self.evict(number, capacity);
        }
    }

    /// The connection to evict first, among those whose stage `is_candidate` accepts.
    fn least_active(&self, evict_writing_after: Duration, is_candidate: impl Fn(Stage) -> bool) -> Option<u64> {
        let now = Instant::now();
        let mut per_peer: HashMap<IpAddr, usize> = HashMap::new();
        self.open.values().for_each(|connection| *per_peer.entry(connection.peer).or_default() += 1);
        let evictable = |(number, connection): (&u64, &Arc<Connection>)| {
            let (stage, since) = connection.stage();
            let is_due = is_candidate(stage) && now.duration_since(since) >= stage.evictable_after(evict_writing_after);
            is_due.then(|| (stage, Reverse(per_peer.get(&connection.peer).copied()), since, *number))
        };
        self.open.iter().filter_map(evictable).min().map(|(.., number)| number)
    }

    /// Evicts a connection. If it has an open request, its client gets a busy error first. False if too many evicted
    /// connections still wait for that: a quarter of the capacity.
    fn evict(&mut self, number: u64, capacity: usize) -> bool {
        let Some(connection) = self.open.get(&number) else { return false };
        if connection.stage().0.has_open_request() {
            if self.evicted.len() >= (capacity / 4).max(1) {
                return false;
            }
            connection.is_evicted.store(true, Ordering::Relaxed);
            self.evicted.insert(number, Arc::clone(connection));
        }
        connection.cut.cancel();
        self.open.remove(&number);
        true
    }
}

impl Connection {
    fn lock(&self) -> MutexGuard<'_, (Stage, Instant, RequestPhase)> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its stage, and the time at which the stage began.
    fn stage(&self) -> (Stage, Instant) {
        let stage = self.lock();
        match *stage {
            (Stage::Served, since, ref phase) if phase.is_running() => (Stage::Running, since),
            (stage, since, _) => (stage, since),
        }
    }

    /// The address of the other end.
    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// The last `_meta` of its requests.
    pub(super) fn meta_cache(&self) -> &MetaCache {
        &self.meta_cache
    }

    /// Cancelled when its requests end.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Sets its stage.
    pub(super) fn set_stage(&self, stage: Stage) {
        let mut current = self.lock();
        (current.0, current.1) = (stage, Instant::now());
    }

    /// Marks its request as being served. Returns the phase of the request, which the handler updates.
    pub(super) fn begin_serving(&self) -> RequestPhase {
        let phase = RequestPhase::default();
        *self.lock() = (Stage::Served, Instant::now(), phase.clone());
        phase
    }

    /// True if it was evicted with an open request, which is answered as busy.
    pub(super) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// True if it is closed after its current answer.
    pub(super) fn closes_after_answer(&self) -> bool {
        self.closes_after_answer.load(Ordering::Relaxed) || self.is_evicted()
    }

    /// Sets the time by which the client must have read the current answer.
    pub(super) fn set_deadline(&self, by: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    /// Makes its socket reset on close: the connection ends before the client has read everything.
    pub(super) fn reset_on_close(&self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }

    /// True if its socket is reset on close.
    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
    }

    /// Waits until the connection has to end: it is evicted, or the client reads its answer too slowly.
    ///
    /// The task that serves the connection must poll the connection first, and then this future. Serving
    /// [sets](Self::set_deadline) the deadline, and a change of it does not wake this future.
    pub(super) async fn wait_for_close(&self) {
        let mut late: Option<Pin<Box<Sleep>>> = None;
        let late = poll_fn(|cx| match *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) {
            // The timer is kept for the next deadline: nearly every answer is read in time.
            None => Poll::Pending,
            Some(by) => {
                let late = late.get_or_insert_with(|| Box::pin(sleep_until(by)));
                if late.deadline() != by {
                    late.as_mut().reset(by);
                }
                late.as_mut().poll(cx)
            }
        });
        let cut = async {
            self.cut.cancelled().await;
            if self.is_evicted() {
                sleep(BUSY_ANSWER_TIME).await;
            }
        };
        tokio::select! { biased; () = cut => {}, () = late => {} }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        if table.open.remove(&self.number).is_none() {
            table.evicted.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests;
