//! The pending requests of a connection: read, but not yet answered. Caps their number.
//!
//! Reads that only wait could fill the table for any time. So a full table evicts the read that has waited longest, and
//! answers it as busy. Requests that run no guest have extra places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientRequest, RequestId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::mcp::exchange::Exchange;
use crate::model::bounds::MAX_PENDING;
use crate::transport::message::{self, IdInFlight};

/// Places beyond [`MAX_PENDING`] for requests that run no guest. These are answered at once.
const GUESTLESS_PLACES: usize = 32;

/// A read that has waited for admission this long can be evicted. A shorter burst of too many reads is refused.
const EVICT_AFTER: Duration = Duration::from_millis(250);

/// The requests that were read, but neither answered nor cancelled.
#[derive(Default)]
pub(super) struct Pending {
    requests: Mutex<Requests>,
    changed: Notify,
}

#[derive(Default)]
struct Requests {
    all: HashMap<RequestId, PendingEntry>,
    /// How many of them were evicted. They are answered at once, and take no place.
    evicted: usize,
    /// How many answers are being written.
    writing: usize,
}

/// Counts one answer that is being written, until it is dropped.
pub(super) struct WritingAnswer<'p>(&'p Pending);

impl Drop for WritingAnswer<'_> {
    fn drop(&mut self) {
        self.0.with(|requests| requests.writing -= 1);
        self.0.changed.notify_waiters();
    }
}

/// One pending request.
struct PendingEntry {
    handle: RequestHandle,
    since: Instant,
    is_evictable: bool,
}

/// The state that a pending request shares with its handler.
#[derive(Clone)]
pub(super) struct RequestHandle {
    /// Cancels a request of the fast path. rmcp cancels its own requests.
    pub(super) cancellation: CancellationToken,
    /// Its phase, and the cost of its answer.
    pub(super) exchange: Arc<Exchange>,
}

/// Which places a request can take, and whether it can be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestClass {
    /// A read or a list. It can be evicted while it waits.
    Evictable,
    /// A request that may run guests.
    Other,
    /// A request that runs no guest.
    Guestless,
}

impl RequestClass {
    /// The class of a request.
    pub(super) fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::ReadResourceRequest(_)
            | ClientRequest::ListResourcesRequest(_)
            | ClientRequest::ListResourceTemplatesRequest(_) => Self::Evictable,
            ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_)
            | ClientRequest::ListToolsRequest(_)
            | ClientRequest::UnsubscribeRequest(_) => Self::Guestless,
            _ => Self::Other,
        }
    }
}

/// The reason to refuse a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AddError {
    /// The table is full, and no request can be evicted.
    TooMany,
    /// Another pending request has its id.
    IdInFlight(IdInFlight),
}

impl Pending {
    fn with<T>(&self, work: impl FnOnce(&mut Requests) -> T) -> T {
        work(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state that a pending request shares with its handler.
    pub(super) fn exchange(&self, id: &RequestId) -> Option<Arc<Exchange>> {
        self.with(|requests| requests.all.get(id).map(|entry| Arc::clone(&entry.handle.exchange)))
    }

    /// Adds a request. `bytes`: the size of its message.
    ///
    /// # Errors
    /// The reason to refuse it.
    pub(super) fn add(&self, id: &RequestId, class: RequestClass, bytes: usize) -> Result<RequestHandle, AddError> {
        let reserve = if class == RequestClass::Guestless { GUESTLESS_PLACES } else { 0 };
        let capacity = MAX_PENDING.get().saturating_add(reserve);
        self.with(|requests| {
            if message::is_duplicate(requests.all.contains_key(id)) {
                return Err(AddError::IdInFlight(IdInFlight(id.clone())));
            }
            if requests.all.len() - requests.evicted + requests.writing >= capacity && !requests.evict_longest_waiting()
            {
                return Err(AddError::TooMany);
            }
            let exchange = Arc::new(Exchange::default().with_message_bytes(bytes));
            let handle = RequestHandle { exchange, cancellation: CancellationToken::new() };
            let entry = PendingEntry {
                handle: handle.clone(),
                since: Instant::now(),
                is_evictable: class == RequestClass::Evictable,
            };
            requests.all.insert(id.clone(), entry);
            Ok(handle)
        })
    }

    /// Marks the answer to a request as being written. The id is free from now on: the client may use it again as soon
    /// as it has the answer.
    pub(super) fn begin_writing(&self, id: &RequestId) -> WritingAnswer<'_> {
        let answered = self.with(|requests| {
            requests.writing += 1;
            requests.take(id)
        });
        drop(answered);
        WritingAnswer(self)
    }

    /// Cancels a request that the client cancelled.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(handle) = self.with(|requests| requests.take(id)) {
            handle.cancellation.cancel();
            self.changed.notify_waiters();
        }
    }

    /// Waits until each request is answered and each answer is written.
    pub(super) async fn wait_until_answered(&self) {
        loop {
            let changed = self.changed.notified();
            if self.with(|requests| requests.all.is_empty() && requests.writing == 0) {
                return;
            }
            changed.await;
        }
    }
}

impl Requests {
    /// Removes a request.
    fn take(&mut self, id: &RequestId) -> Option<RequestHandle> {
        let handle = self.all.remove(id)?.handle;
        self.evicted -= usize::from(handle.exchange.phase().is_evicted());
        Some(handle)
    }

    /// Evicts the read that has waited longest. False if none has waited long enough.
    fn evict_longest_waiting(&mut self) -> bool {
        let now = Instant::now();
        let evictable = |entry: &&PendingEntry| {
            let phase = entry.handle.exchange.phase();
            let is_late = now.duration_since(entry.since) >= EVICT_AFTER;
            entry.is_evictable && is_late && !phase.is_running() && !phase.is_evicted()
        };
        let longest = self.all.values().filter(evictable).min_by_key(|entry| entry.since);
        let is_evicted = longest.is_some_and(|entry| entry.handle.exchange.phase().evict());
        self.evicted += usize::from(is_evicted);
        is_evicted
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn id(number: usize) -> RequestId {
        RequestId::Number(i64::try_from(number).unwrap())
    }

    /// Between two requests, so that none has waited as long as another. A full table is younger than [`EVICT_AFTER`].
    const TICK: Duration = Duration::from_micros(1);

    #[tokio::test(start_paused = true)]
    async fn the_longest_waiting_read_is_evicted_and_a_running_one_is_not() {
        let pending = Pending::default();
        let mut all = Vec::new();
        for at in 0..MAX_PENDING.get() {
            all.push(pending.add(&id(at), RequestClass::Evictable, 9).ok().unwrap());
            tokio::time::advance(TICK).await;
        }
        all[0].exchange.phase().set_running();
        assert_eq!(
            pending.add(&id(1000), RequestClass::Evictable, 9).err(),
            Some(AddError::TooMany),
            "a burst is refused"
        );
        tokio::time::advance(EVICT_AFTER).await;
        assert!(pending.add(&id(1000), RequestClass::Evictable, 9).is_ok());
        let is_evicted = |at: usize| all[at].exchange.phase().is_evicted();
        assert_eq!((is_evicted(0), is_evicted(1), is_evicted(2)), (false, true, false));
        // An evicted request takes no place, but keeps its id until it is answered.
        assert_eq!(pending.add(&id(1), RequestClass::Other, 9).err(), Some(AddError::IdInFlight(IdInFlight(id(1)))));
        let writing = pending.begin_writing(&id(1));
        assert!(
            pending.add(&id(1), RequestClass::Other, 9).is_ok(),
            "a client that has the answer may use the id again"
        );
        drop(writing);
        assert!(is_evicted(2));
    }

    #[tokio::test]
    async fn requests_without_a_guest_have_extra_places() {
        let pending = Pending::default();
        for at in 0..MAX_PENDING.get() {
            assert!(pending.add(&id(at), RequestClass::Other, 9).is_ok());
        }
        assert_eq!(pending.add(&id(1000), RequestClass::Other, 9).err(), Some(AddError::TooMany));
        for at in 0..GUESTLESS_PLACES {
            assert!(pending.add(&id(2000 + at), RequestClass::Guestless, 9).is_ok());
        }
        assert_eq!(pending.add(&id(3000), RequestClass::Guestless, 9).err(), Some(AddError::TooMany));
    }

    #[tokio::test]
    async fn a_request_is_answered_when_its_answer_is_written() {
        let pending = Pending::default();
        assert!(pending.add(&id(1), RequestClass::Other, 9).is_ok());
        let writing = pending.begin_writing(&id(1));
        assert!(pending.wait_until_answered().now_or_never().is_none());
        drop(writing);
        pending.wait_until_answered().await;
    }
}
