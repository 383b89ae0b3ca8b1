//! The connection of a call in a worker process: the front connects, and both exchange the bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

use super::connection_frames::{ConnectAnswer, ConnectionFrame};
use crate::grants::call_record::CallRecord;
use crate::grants::frames::{BytePiece, FrameError, FrameReader, FrameWriter, MAX_PIECE_BYTES, SharedStream};
use crate::grants::front::Opening;

/// A connection that the front made. Dropping it ends the connection.
pub(super) struct FrontConnection {
    reader: FrameReader,
    writer: FrameWriter,
    unread: Bytes,
    is_read_over: bool,
    is_write_over: bool,
    /// True after the front has closed its end. What it sent before can still be read.
    is_closed: bool,
}

impl FrontConnection {
    /// Waits for the answer of the front on the stream that `opening` gives.
    pub(super) async fn open(opening: Opening, record: CallRecord) -> Result<Self, ErrorCode> {
        let stream = SharedStream::new(opening.await.map_err(|_| ErrorCode::RemoteUnreachable)?);
        let mut reader = FrameReader::new(&stream);
        match reader.expect::<ConnectAnswer>().await.map_err(|_| ErrorCode::RemoteUnreachable)? {
            ConnectAnswer::Connected => {}
            ConnectAnswer::Refused(refusal, limit) => {
                if let Some(limit) = limit {
                    record.traffic().note_limit(limit);
                }
                return Err(refusal.into());
            }
        }
        let writer = FrameWriter::new(&stream);
        Ok(Self { reader, writer, unread: Bytes::new(), is_read_over: false, is_write_over: false, is_closed: false })
    }

    /// Sends what waits. After the front has closed its end, nothing is sent and nothing fails: as with TCP, the guest reads
    /// what was sent to it, and then the end.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_closed {
            return Poll::Ready(Ok(()));
        }
        match ready!(self.writer.poll_flush(cx)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                self.is_closed = true;
                Poll::Ready(Ok(()))
            }
            sent => Poll::Ready(sent),
        }
    }
}

/// An error of the frames, as an error of the connection.
fn reset(error: FrameError) -> io::Error {
    match error {
        FrameError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::ConnectionReset, error),
    }
}

impl AsyncRead for FrontConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.unread.is_empty() && !self.is_read_over {
            match ready!(self.reader.poll_next(cx)).map_err(reset)? {
                Some(ConnectionFrame::Data(piece)) => self.unread = piece.0,
                Some(ConnectionFrame::End) => self.is_read_over = true,
                Some(ConnectionFrame::Failed) | None => {
                    self.is_read_over = self.is_closed;
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
            }
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FrontConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_write_over || (self.is_closed && self.is_read_over) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(self.poll_send(cx))?;
        let length = bytes.len().min(MAX_PIECE_BYTES);
        if self.is_closed {
            return Poll::Ready(Ok(length));
        }
        let piece = BytePiece(bytes.copy_to_bytes(length));
        self.writer.start(&ConnectionFrame::Data(piece)).map_err(reset)?;
        // What cannot be sent now waits for the next flush.
        if let Poll::Ready(Err(error)) = self.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        if !self.is_write_over && !self.is_closed {
            self.writer.start(&ConnectionFrame::End).map_err(reset)?;
        }
        self.is_write_over = true;
        self.poll_send(cx)
    }
}
