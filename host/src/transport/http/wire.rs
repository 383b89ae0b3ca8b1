//! The bytes of one connection: written in time or not at all, and gone with it.
//!
//! A socket that is closed goes on to offer what was written to it, out of the kernel's memory, for as long as its peer
//! does not take it. One that was cut does not.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

use super::house::Guest;

/// A socket.
pub(super) struct Wire {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    guest: Arc<Guest>,
}

impl Wire {
    /// `write`: how long the peer may not take a single byte.
    pub(super) fn new(stream: TcpStream, write: Option<Duration>, guest: Arc<Guest>) -> Self {
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(write);
        Self { stream: Box::pin(stream), guest }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.guest.was_cut() {
            // The peer is reset, and the kernel forgets what it did not take.
            let _ = self.stream.get_ref().set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        self.stream.as_mut().poll_read(context, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
