//! A stream that ends when a reply is too long: the parser of replies has no bound of its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::store::dial::StoreStream;

/// Bytes that may come without a whole reply among them.
const MAX_REPLY: u64 = 16 << 20;

/// Bytes that came since the last whole reply.
#[derive(Clone, Default)]
pub(super) struct ReplyMeter(Arc<AtomicU64>);

impl ReplyMeter {
    /// A reply is whole.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// See the module.
pub(super) struct BoundedStream {
    inner: Box<dyn StoreStream>,
    meter: ReplyMeter,
}

impl BoundedStream {
    /// Counts what `inner` gives with `meter`.
    pub(super) fn new(inner: Box<dyn StoreStream>, meter: ReplyMeter) -> Self {
        Self { inner, meter }
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let read = buffer.filled().len().saturating_sub(before) as u64;
        if self.meter.0.fetch_add(read, Ordering::Relaxed).saturating_add(read) > MAX_REPLY {
            return Poll::Ready(Err(io::Error::other("a reply of the store is too long")));
        }
        polled
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_reply_without_end_is_cut() {
        let (meter, mut buffer) = (ReplyMeter::default(), vec![0; 1 << 20]);
        let mut stream =
            BoundedStream::new(Box::new(tokio::io::join(tokio::io::repeat(b'x'), Vec::new())), meter.clone());
        for _ in 0..40 {
            stream.read_exact(&mut buffer).await.unwrap();
            meter.reset();
        }
        let mut read = 0;
        while stream.read_exact(&mut buffer).await.is_ok() {
            read += buffer.len() as u64;
        }
        assert_eq!(read, MAX_REPLY);
    }
}
