//! Charges the processor time that rmcp takes to encode an answer. That is the time of the poll that gives the
//! response, or of the poll that gives the stream's next frame.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::Frame;

use crate::limits::cpu_timer::CpuTimer;
use crate::mcp::exchange::Exchange;

/// A response of rmcp, or its body, whose polls are timed.
pub(super) struct ChargeEncoding<T> {
    inner: T,
    exchange: Arc<Exchange>,
}

impl<T> ChargeEncoding<T> {
    pub(super) fn new(inner: T, exchange: Arc<Exchange>) -> Self {
        Self { inner, exchange }
    }

    fn charged<R>(&mut self, poll: impl FnOnce(&mut T) -> Poll<R>) -> Poll<R> {
        // The number of bytes is unknown before the poll.
        let effort = CpuTimer::start(usize::MAX);
        let polled = poll(&mut self.inner);
        if polled.is_ready()
            && let Some(mut cost) = self.exchange.take_cost()
        {
            cost.add(effort.elapsed());
        }
        polled
    }
}

impl<F: Future + Unpin> Future for ChargeEncoding<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.charged(|inner| Pin::new(inner).poll(context))
    }
}

impl HttpBody for ChargeEncoding<Body> {
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
