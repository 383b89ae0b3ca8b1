//! The streams of a connection. Both halves share the connection. A guest that waits for one half drives the other one
//! too, so bytes that it wrote are sent while it reads.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::grants::call_record::CallRecord;
use crate::grants::network::ByteStream;
use crate::model::limits::Traffic;

/// The most bytes that wait to be sent, and the most bytes of one read.
pub(super) const BUFFER: usize = 64 << 10;

/// One connection of a guest.
pub(super) struct GuestConnection(Mutex<State>);

struct State {
    stream: Box<dyn ByteStream>,
    record: CallRecord,
    traffic: Traffic,
    /// Bytes that the guest wrote and that are not sent yet.
    unsent: BytesMut,
    /// Bytes that arrived and that the guest has not read yet.
    unread: Bytes,
    /// The guest ended its half, or the connection failed.
    write_end: WriteEnd,
    is_read_over: bool,
    _slot: Option<OwnedSemaphorePermit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteEnd {
    Open,
    /// The guest ended its half. It is shut down after the last byte.
    Requested,
    Over,
}

/// A limit on traffic stops the connection.
#[derive(Debug, thiserror::Error)]
#[error("a limit on network traffic is reached")]
struct TrafficLimit;

impl GuestConnection {
    pub(super) fn new(
        stream: Box<dyn ByteStream>,
        record: CallRecord,
        traffic: Traffic,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            stream,
            record,
            traffic,
            unsent: BytesMut::new(),
            unread: Bytes::new(),
            write_end: WriteEnd::Open,
            is_read_over: false,
            _slot: slot,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the guest's half after the bytes that are written.
    pub(super) fn end_writing(&self) {
        let mut state = self.lock();
        if state.write_end == WriteEnd::Open {
            state.write_end = WriteEnd::Requested;
        }
        let _ = state.poll_send(&mut Context::from_waker(Waker::noop()));
    }

    /// Reads no more.
    pub(super) fn end_reading(&self) {
        let mut state = self.lock();
        state.is_read_over = true;
        state.unread.clear();
    }
}

impl State {
    /// Sends what the guest wrote. Ready when nothing waits.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write_end == WriteEnd::Over {
            return Poll::Ready(Ok(()));
        }
        while !self.unsent.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.unsent))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(sent);
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if self.write_end == WriteEnd::Requested {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.write_end = WriteEnd::Over;
        }
        Poll::Ready(Ok(()))
    }

    /// Receives bytes, unless some wait already. Ready when the guest can read bytes, or the end.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() || self.is_read_over {
            return Poll::Ready(Ok(()));
        }
        // An answer may need what the guest wrote. Its error shows in the guest's next write.
        let _ = self.poll_send(cx);
        let mut room = BytesMut::zeroed(BUFFER);
        let mut buffer = ReadBuf::new(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        let read = buffer.filled().len();
        room.truncate(read);
        if read == 0 {
            self.is_read_over = true;
            return Poll::Ready(Ok(()));
        }
        if self.record.traffic().count_download(read as u64, self.traffic.download).is_err() {
            self.is_read_over = true;
            return Poll::Ready(Err(io::Error::other(TrafficLimit)));
        }
        self.unread = room.freeze();
        Poll::Ready(Ok(()))
    }
}

/// What the guest reads.
pub(super) struct Input {
    connection: Arc<GuestConnection>,
    /// An error that a wait found, for the next read.
    error: Option<io::Error>,
}

impl Input {
    pub(super) fn new(connection: Arc<GuestConnection>) -> Self {
        Self { connection, error: None }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {
        if self.error.is_some() {
            return;
        }
        let result = poll_fn(|cx| self.connection.lock().poll_receive(cx)).await;
        self.error = result.err();
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if let Some(error) = self.error.take() {
            return Err(StreamError::LastOperationFailed(error.into()));
        }
        let mut state = self.connection.lock();
        match state.poll_receive(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(Bytes::new()),
            Poll::Ready(Err(error)) => Err(StreamError::LastOperationFailed(error.into())),
            Poll::Ready(Ok(())) if state.unread.is_empty() => Err(StreamError::Closed),
            Poll::Ready(Ok(())) => {
                let len = state.unread.len().min(size);
                Ok(state.unread.split_to(len))
            }
        }
    }
}

/// What the guest writes.
pub(super) struct Output {
    connection: Arc<GuestConnection>,
    /// An error of an earlier write. The stream is over then.
    error: Option<io::Error>,
    is_over: bool,
}

impl Output {
    pub(super) fn new(connection: Arc<GuestConnection>) -> Self {
        Self { connection, error: None, is_over: false }
    }

    /// Sends without waiting. Keeps an error for the next function that the guest calls.
    fn send(&mut self) {
        let sent = self.connection.lock().poll_send(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Err(error)) = sent {
            self.error = Some(error);
        }
    }

    fn check(&mut self) -> StreamResult<()> {
        if let Some(error) = self.error.take() {
            self.is_over = true;
            return Err(StreamError::LastOperationFailed(error.into()));
        }
        let is_open = self.connection.lock().write_end == WriteEnd::Open;
        if self.is_over || !is_open { Err(StreamError::Closed) } else { Ok(()) }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        if self.error.is_some() || self.is_over {
            return;
        }
        let result = poll_fn(|cx| self.connection.lock().poll_send(cx)).await;
        self.error = result.err();
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check()?;
        {
            let mut state = self.connection.lock();
            if bytes.len() > BUFFER.saturating_sub(state.unsent.len()) {
                return Err(StreamError::trap("a write is longer than `check-write` allows"));
            }
            let counted = state.record.traffic().count_upload(bytes.len() as u64, state.traffic.upload);
            if counted.is_err() {
                drop(state);
                self.is_over = true;
                return Err(StreamError::LastOperationFailed(TrafficLimit.into()));
            }
            state.unsent.extend_from_slice(&bytes);
        }
        self.send();
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()?;
        self.send();
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check()?;
        self.send();
        let waits = !self.connection.lock().unsent.is_empty();
        // After an error, the guest gets it from its next call.
        Ok(if waits && self.error.is_none() { 0 } else { BUFFER })
    }
}
