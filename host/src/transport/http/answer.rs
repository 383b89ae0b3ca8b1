//! An answer on its way: handed to the connection piece by piece, counted until it is taken, due by a certain time.
//!
//! Small answers are always let through. Of large ones there are so many bytes in all that wait to be taken; whose
//! answer does not fit any more is told that the server is busy.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rmcp::model::{JsonRpcError, RequestId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::house::{Guest, Stage};
use super::session::{Left, Use};
use crate::admission::budget::{Budget, Held};
use crate::mcp::fault;
use crate::model::Guard;

/// What is handed to the connection at once: it asks for the next piece when this one is nearly written.
const PIECE: usize = 64 << 10;

/// The unit in which answers are counted.
const UNIT: usize = 1 << 10;

/// How fast an answer must be taken at least, in bytes a second: no network is slower, and none is needed on loopback.
const PACE: usize = 64 << 10;

/// Answers that wait to be taken, in all.
pub(super) struct Untaken {
    room: Arc<Semaphore>,
    most: u32,
    /// What they are part of.
    budget: Arc<Budget>,
    /// How long a client may take for any answer, before its length is considered.
    grace: Duration,
}

impl Untaken {
    /// At most `bytes` bytes, and half of the budget: the calls of those who take their answers need the rest.
    pub(super) fn new(bytes: usize, budget: Arc<Budget>, grace: Duration) -> Self {
        let bytes = usize::try_from(budget.cap() / 2).unwrap_or(usize::MAX).min(bytes);
        let most = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        Self { room: Arc::new(Semaphore::new(most as usize)), most, budget, grace }
    }

    /// Counts `bytes` bytes. One answer that is larger than all together may be is let through when it is alone.
    fn count(&self, bytes: usize) -> Result<Option<Counted>, Full> {
        if bytes <= PIECE || !Guard::Untaken.is_on() {
            return Ok(None);
        }
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).min(self.most);
        Arc::clone(&self.room)
            .try_acquire_many_owned(units)
            .map(|place| Some(Counted { _place: place, _bytes: self.budget.hold(bytes as u64) }))
            .map_err(|_| Full)
    }

    fn due(&self, bytes: usize) -> Option<Instant> {
        let seconds = u64::try_from(bytes / PACE).unwrap_or(u64::MAX);
        Guard::Untaken.is_on().then(|| Instant::now() + self.grace + Duration::from_secs(seconds))
    }
}

/// The place of an answer that waits.
struct Counted {
    _place: OwnedSemaphorePermit,
    _bytes: Held,
}

/// No more answers can wait.
struct Full;

/// What a client is told then.
fn busy(id: Option<RequestId>) -> Vec<u8> {
    refusal("too many large answers wait to be taken", id)
}

/// What a client is told whose request gave way to another client's.
pub(super) const GAVE_WAY: &str = "every connection is taken, and this request waited for longest";

fn refusal(why: &str, id: Option<RequestId>) -> Vec<u8> {
    serde_json::to_vec(&JsonRpcError::new(id, fault::busy(why))).unwrap_or_default()
}

/// A message as an event of a stream.
fn event(message: &[u8]) -> Bytes {
    [b"data: ".as_slice(), message, b"\n\n"].concat().into()
}

/// A body that is handed on piece by piece.
pub(super) struct Answer {
    inner: Body,
    untaken: Arc<Untaken>,
    guest: Arc<Guest>,
    /// Which request it answers, where that is known.
    id: Option<RequestId>,
    current: Bytes,
    counted: Option<Counted>,
    /// Nothing comes after what is there.
    over: bool,
    /// Withdraws the request when it goes away before its end.
    left: Left,
    /// Its session is in use for as long.
    _used: Option<Use>,
}

impl Answer {
    /// A stream of events; `id` is that of the request that they answer.
    pub(super) fn stream(
        inner: Body,
        untaken: Arc<Untaken>,
        guest: Arc<Guest>,
        id: Option<RequestId>,
        (left, used): (Left, Option<Use>),
    ) -> Body {
        let current = Bytes::new();
        Body::new(Self { inner, untaken, guest, id, current, counted: None, over: false, left, _used: used })
    }

    /// Ends a stream whose connection gives way: its request is answered as busy, and withdrawn.
    fn give_way(&mut self) {
        self.inner = Body::empty();
        self.over = true;
        drop(std::mem::take(&mut self.left));
        if let Some(id) = self.id.take() {
            self.current = event(&refusal(GAVE_WAY, Some(id)));
        }
    }

    /// A body that is there already.
    pub(super) async fn whole(
        inner: Body,
        untaken: Arc<Untaken>,
        guest: Arc<Guest>,
        id: impl FnOnce() -> Option<RequestId>,
    ) -> Body {
        // Bodies of one frame do not fail.
        let bytes = inner.collect().await.map(|all| all.to_bytes()).unwrap_or_default();
        Self::given(bytes, untaken, guest, id)
    }

    /// The answer in `current`. When it does not fit, there is the one that `busy` makes.
    pub(super) fn given(
        mut current: Bytes,
        untaken: Arc<Untaken>,
        guest: Arc<Guest>,
        id: impl FnOnce() -> Option<RequestId>,
    ) -> Body {
        let counted = untaken.count(current.len()).unwrap_or_else(|Full| {
            current = busy(id()).into();
            None
        });
        guest.is_at(Stage::Taking);
        guest.is_due(untaken.due(current.len()));
        let inner = Body::empty();
        let left = Left::default();
        Body::new(Self { inner, untaken, guest, id: None, current, counted, over: true, left, _used: None })
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            if !self.current.is_empty() {
                let end = self.current.len().min(PIECE);
                let piece = self.current.split_to(end);
                if self.current.is_empty() {
                    self.counted = None;
                }
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            self.guest.is_due(None);
            if self.over {
                self.left.stays();
                return Poll::Ready(None);
            }
            if self.guest.gives_way() {
                self.give_way();
                continue;
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                None => self.over = true,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    Ok(data) => {
                        match self.untaken.count(data.len()) {
                            Ok(counted) => (self.current, self.counted) = (data, counted),
                            Err(Full) => {
                                self.current = event(&busy(self.id.take()));
                                self.over = true;
                            }
                        }
                        let due = self.untaken.due(self.current.len());
                        self.guest.is_due(due);
                    }
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.current.is_empty() && self.over
    }

    fn size_hint(&self) -> SizeHint {
        if self.over { SizeHint::with_exact(self.current.len() as u64) } else { SizeHint::default() }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.guest.is_due(None);
        self.guest.is_at(Stage::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::super::house::{House, PATIENCE};
    use super::*;

    #[tokio::test]
    async fn large_answers_are_counted_until_they_are_taken() {
        let entry = House::new(1, PATIENCE).enter(std::net::Ipv4Addr::LOCALHOST.into()).unwrap();
        let untaken = Arc::new(Untaken::new(1 << 20, Budget::new(1 << 30), Duration::from_secs(1)));
        let whole = |bytes: usize| {
            let (untaken, guest) = (Arc::clone(&untaken), Arc::clone(&entry.guest));
            Answer::whole(Body::from(vec![b'x'; bytes]), untaken, guest, || Some(RequestId::Number(7)))
        };
        let told = async |body: Body| String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();

        let (first, second) = (whole(600 << 10).await, whole(600 << 10).await);
        let second = told(second).await;
        assert!(second.contains("\"busy\"") && second.contains("\"id\":7"), "{second}");
        assert_eq!(told(whole(PIECE).await).await.len(), PIECE, "a small one is let through");
        assert_eq!(told(first).await.len(), 600 << 10);
        let huge = whole(5 << 20).await;
        assert!(told(whole(100 << 10).await).await.contains("busy"));
        assert_eq!(told(huge).await.len(), 5 << 20, "alone it may be larger than all may be");
        drop(whole(600 << 10).await);
        assert_eq!(told(whole(600 << 10).await).await.len(), 600 << 10, "one that nobody took does not count");
    }

    #[tokio::test]
    async fn in_a_stream_too() {
        let entry = House::new(1, PATIENCE).enter(std::net::Ipv4Addr::LOCALHOST.into()).unwrap();
        let untaken = Arc::new(Untaken::new(1 << 20, Budget::new(1 << 30), Duration::from_secs(1)));
        let stream = |bytes: usize| {
            let (untaken, guest) = (Arc::clone(&untaken), Arc::clone(&entry.guest));
            Answer::stream(Body::from(vec![b'x'; bytes]), untaken, guest, Some(RequestId::Number(7)), <_>::default())
        };
        let mut first = stream(600 << 10);
        assert!(first.frame().await.is_some(), "it has begun");
        let second = stream(600 << 10).collect().await.unwrap().to_bytes();
        let second = String::from_utf8(second.to_vec()).unwrap();
        assert!(second.starts_with("data: {") && second.contains("\"busy\"") && second.ends_with("\n\n"), "{second}");
        assert_eq!(first.collect().await.unwrap().to_bytes().len(), (600 << 10) - PIECE);
    }
}
