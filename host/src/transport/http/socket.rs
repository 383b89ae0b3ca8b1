//! The socket of one connection, with a time-out for writes.
//!
//! After an ordinary close, the kernel keeps the unread bytes in its memory until the peer reads them. A connection
//! that belljar cuts is reset instead, and the kernel drops these bytes.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

use super::connections::Connection;

/// A TCP stream with a write time-out, which is reset on drop if its connection was cut.
pub(super) struct Socket {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    connection: Arc<Connection>,
}

impl Socket {
    /// A write fails if the peer reads no byte for the time `write`.
    pub(super) fn new(stream: TcpStream, write: Duration, connection: Arc<Connection>) -> Self {
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(write));
        Self { stream: Box::pin(stream), connection }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection.is_reset() {
            // With zero linger, closing resets the connection, and the kernel drops the unread bytes.
            let _ = self.stream.get_ref().set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        self.stream.as_mut().poll_read(context, into)
    }
}

impl AsyncWrite for Socket {
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
