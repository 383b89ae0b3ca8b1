//! Charges what rmcp does to encode an answer: the poll in which it gives it, of the response or of a stream's next piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::Frame;

use crate::admission::effort::Effort;
use crate::mcp::exchange::Exchange;

/// A response, or the body of one, on its way out of rmcp.
pub(super) struct Encoding<T> {
    inner: T,
    exchange: Exchange,
}

impl<T> Encoding<T> {
    pub(super) fn new(inner: T, exchange: Exchange) -> Self {
        Self { inner, exchange }
    }

    fn charged<R>(&mut self, poll: impl FnOnce(&mut T) -> Poll<R>) -> Poll<R> {
        // Of how many bytes, nobody knows before.
        let effort = Effort::begin(usize::MAX);
        let polled = poll(&mut self.inner);
        if polled.is_ready()
            && let Some(mut bill) = self.exchange.bill()
        {
            bill.add(effort.cost());
        }
        polled
    }
}

impl<F: Future + Unpin> Future for Encoding<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.charged(|inner| Pin::new(inner).poll(context))
    }
}

impl HttpBody for Encoding<Body> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.charged(|inner| Pin::new(inner).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.inner.size_hint()
    }
}
