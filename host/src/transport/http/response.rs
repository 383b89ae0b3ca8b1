//! Response bodies: sent in chunks, counted until the client has read them, and with a deadline.
//!
//! Small answers are not counted. The bytes of all large answers that wait for their clients have a cap. A large answer
//! that does not fit is replaced by a busy error.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rmcp::model::RequestId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connections::{Connection, Stage};
use super::session::{CancelOnDrop, SessionUse};
use crate::limits::memory_budget::{MemoryBudget, Reservation};
use crate::mcp::{encode, fault};
use crate::model::bounds::SMALL_RESPONSE;

/// Bytes of one chunk. hyper asks for the next chunk when this one is nearly written.
const CHUNK: usize = 64 << 10;

/// Bytes of one permit of the budget.
const PERMIT_BYTES: usize = 1 << 10;

/// Least speed in bytes per second at which a client must read an answer. Each network is faster.
const MIN_BYTES_PER_SECOND: usize = 64 << 10;

/// Caps the bytes of large answers that wait for their clients, over all connections.
pub(super) struct ResponseBudget {
    permits: Arc<Semaphore>,
    capacity: u32,
    /// The memory budget that the same bytes count in.
    budget: Arc<MemoryBudget>,
    /// The time that each answer has; its length adds more.
    grace: Duration,
}

impl ResponseBudget {
    /// At most `bytes` bytes, and at most half of the memory budget: the calls of other clients need the rest.
    pub(super) fn new(bytes: usize, budget: Arc<MemoryBudget>, grace: Duration) -> Self {
        let bytes = usize::try_from(budget.cap() / 2).unwrap_or(usize::MAX).min(bytes);
        let most = u32::try_from(bytes / PERMIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self { permits: Arc::new(Semaphore::new(most as usize)), capacity: most, budget, grace }
    }

    /// Reserves `bytes` bytes; small answers need no reservation. An answer larger than the whole budget passes if no
    /// other one waits.
    fn reserve(&self, bytes: usize) -> Result<Option<ResponseReservation>, BudgetFull> {
        if bytes <= SMALL_RESPONSE.get() {
            return Ok(None);
        }
        let units = u32::try_from(bytes / PERMIT_BYTES).unwrap_or(u32::MAX).min(self.capacity);
        Arc::clone(&self.permits)
            .try_acquire_many_owned(units)
            .map(|place| Some(ResponseReservation { _place: place, _bytes: self.budget.reserve(bytes as u64) }))
            .map_err(|_| BudgetFull)
    }

    fn deadline(&self, bytes: usize) -> Instant {
        let seconds = u64::try_from(bytes / MIN_BYTES_PER_SECOND).unwrap_or(u64::MAX);
        Instant::now() + self.grace + Duration::from_secs(seconds)
    }
}

/// The reservation of a large answer, until it is dropped.
struct ResponseReservation {
    _place: OwnedSemaphorePermit,
    _bytes: Reservation,
}

/// The budget has too few bytes left.
struct BudgetFull;

/// The error for an answer that does not fit.
fn busy(id: Option<RequestId>) -> Vec<u8> {
    refusal("too many large answers wait for their clients to read them", id)
}

/// The error for a request whose connection was evicted for another client.
pub(super) const EVICTED: &str = "all connections are in use, and this request waited for longest";

fn refusal(why: &str, id: Option<RequestId>) -> Vec<u8> {
    encode::refusal(id, fault::busy(why))
}

/// A message as a server-sent event.
fn event(message: &[u8]) -> Bytes {
    [b"data: ".as_slice(), message, b"\n\n"].concat().into()
}

/// A body that is sent in chunks.
pub(super) struct ResponseBody {
    inner: Body,
    responses: Arc<ResponseBudget>,
    connection: Arc<Connection>,
    /// The id of the request that it answers, if it is known.
    id: Option<RequestId>,
    current: Bytes,
    reservation: Option<ResponseReservation>,
    /// True if nothing follows `current`.
    is_last: bool,
    /// Cancels the request if the body is dropped before its end.
    cancel_on_drop: CancelOnDrop,
    /// Marks the session as in use until the body is dropped.
    _session_use: Option<SessionUse>,
}

impl ResponseBody {
    /// A stream of events that answers request `id`.
    pub(super) fn stream(
        inner: Body,
        responses: Arc<ResponseBudget>,
        connection: Arc<Connection>,
        id: Option<RequestId>,
        (cancel_on_drop, session_use): (CancelOnDrop, Option<SessionUse>),
    ) -> Body {
        let current = Bytes::new();
        Body::new(Self {
            inner,
            responses,
            connection,
            id,
            current,
            reservation: None,
            is_last: false,
            cancel_on_drop,
            _session_use: session_use,
        })
    }

    /// Ends the stream of an evicted connection. Cancels its request and answers it as busy.
    fn evict(&mut self) {
        self.inner = Body::empty();
        self.is_last = true;
        drop(std::mem::take(&mut self.cancel_on_drop));
        if let Some(id) = self.id.take() {
            self.current = event(&refusal(EVICTED, Some(id)));
        }
    }

    /// Collects `inner` and sends it as a complete body.
    pub(super) async fn collected(
        inner: Body,
        responses: Arc<ResponseBudget>,
        connection: Arc<Connection>,
        id: impl FnOnce() -> Option<RequestId>,
    ) -> Body {
        match inner.collect().await {
            Ok(all) => Self::complete(all.to_bytes(), responses, connection, id),
            Err(why) => {
                let id = id();
                let error = fault::internal(format!("a response cannot be read: {why}"));
                Self::complete(encode::refusal(id.clone(), error).into(), responses, connection, || id)
            }
        }
    }

    /// A complete body with the message `current`, or with a busy error if `current` does not fit.
    pub(super) fn complete(
        mut current: Bytes,
        responses: Arc<ResponseBudget>,
        connection: Arc<Connection>,
        id: impl FnOnce() -> Option<RequestId>,
    ) -> Body {
        let counted = responses.reserve(current.len()).unwrap_or_else(|BudgetFull| {
            current = busy(id()).into();
            None
        });
        connection.set_stage(Stage::Sending);
        connection.set_deadline(Some(responses.deadline(current.len())));
        let inner = Body::empty();
        let cancel_on_drop = CancelOnDrop::default();
        Body::new(Self {
            inner,
            responses,
            connection,
            id: None,
            current,
            reservation: counted,
            is_last: true,
            cancel_on_drop,
            _session_use: None,
        })
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            if !self.current.is_empty() {
                let end = self.current.len().min(CHUNK);
                let piece = self.current.split_to(end);
                if self.current.is_empty() {
                    self.reservation = None;
                }
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            self.connection.set_deadline(None);
            if self.is_last {
                self.cancel_on_drop.disarm();
                return Poll::Ready(None);
            }
            if self.connection.is_evicted() {
                self.evict();
                continue;
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                None => self.is_last = true,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    Ok(data) => {
                        match self.responses.reserve(data.len()) {
                            Ok(counted) => (self.current, self.reservation) = (data, counted),
                            Err(BudgetFull) => {
                                self.current = event(&busy(self.id.take()));
                                self.is_last = true;
                            }
                        }
                        let due = self.responses.deadline(self.current.len());
                        self.connection.set_deadline(Some(due));
                    }
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.current.is_empty() && self.is_last
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_last { SizeHint::with_exact(self.current.len() as u64) } else { SizeHint::default() }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.connection.set_deadline(None);
        self.connection.set_stage(Stage::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::super::connections::ConnectionTable;
    use super::*;
    use crate::model::bounds::EVICT_WRITING_AFTER;

    #[tokio::test]
    async fn large_answers_are_counted_until_they_are_read() {
        let slot = ConnectionTable::new(1, EVICT_WRITING_AFTER.get(), <_>::default())
            .add(std::net::Ipv4Addr::LOCALHOST.into())
            .unwrap();
        let responses = Arc::new(ResponseBudget::new(1 << 20, MemoryBudget::new(1 << 30), Duration::from_secs(1)));
        let whole = |bytes: usize| {
            let (responses, connection) = (Arc::clone(&responses), Arc::clone(&slot.connection));
            ResponseBody::collected(Body::from(vec![b'x'; bytes]), responses, connection, || Some(RequestId::Number(7)))
        };
        let read = async |body: Body| String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();

        let (first, second) = (whole(600 << 10).await, whole(600 << 10).await);
        let second = read(second).await;
        assert!(second.contains("\"busy\"") && second.contains("\"id\":7"), "{second}");
        assert_eq!(read(whole(CHUNK).await).await.len(), CHUNK, "a small answer is not counted");
        assert_eq!(read(first).await.len(), 600 << 10);
        let huge = whole(5 << 20).await;
        assert!(read(whole(100 << 10).await).await.contains("busy"));
        assert_eq!(read(huge).await.len(), 5 << 20, "a single answer can be larger than the budget");
        drop(whole(600 << 10).await);
        assert_eq!(read(whole(600 << 10).await).await.len(), 600 << 10, "a dropped answer does not count");
    }

    #[tokio::test]
    async fn large_events_of_a_stream_are_counted_too() {
        let slot = ConnectionTable::new(1, EVICT_WRITING_AFTER.get(), <_>::default())
            .add(std::net::Ipv4Addr::LOCALHOST.into())
            .unwrap();
        let responses = Arc::new(ResponseBudget::new(1 << 20, MemoryBudget::new(1 << 30), Duration::from_secs(1)));
        let stream = |bytes: usize| {
            let (responses, connection) = (Arc::clone(&responses), Arc::clone(&slot.connection));
            ResponseBody::stream(
                Body::from(vec![b'x'; bytes]),
                responses,
                connection,
                Some(RequestId::Number(7)),
                <_>::default(),
            )
        };
        let mut first = stream(600 << 10);
        assert!(first.frame().await.is_some(), "it has begun");
        let second = stream(600 << 10).collect().await.unwrap().to_bytes();
        let second = String::from_utf8(second.to_vec()).unwrap();
        assert!(second.starts_with("data: {") && second.contains("\"busy\"") && second.ends_with("\n\n"), "{second}");
        assert_eq!(first.collect().await.unwrap().to_bytes().len(), (600 << 10) - CHUNK);
    }
}
