//! Frames between the front and a call in a worker process: a length of four bytes (little-endian), then a value in
//! postcard. Every length is bounded, so that neither side can make the other one keep much.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The most bytes of a frame. The head of a request has at most 128 KiB of headers (wasmtime-wasi-http) and a URI of 64 KiB.
pub(super) const MAX_FRAME_BYTES: usize = 256 << 10;

/// The most bytes of a body or a connection in one frame.
pub(super) const MAX_PIECE_BYTES: usize = 64 << 10;

/// Bytes of the length before a frame.
const PREFIX_BYTES: usize = 4;

/// The least room for one read: small frames arrive together.
const MIN_READ_BYTES: usize = 4 << 10;

/// Why a stream of frames ends early.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream failed. The other side may have dropped it.
    #[error("the stream failed: {0}")]
    Io(#[from] io::Error),
    /// The stream ended where a frame was expected, or within one.
    #[error("the stream ended before its last frame")]
    Truncated,
    /// A frame is longer than allowed. Holds its length.
    #[error("a frame has {0} bytes, at most {MAX_FRAME_BYTES} are allowed")]
    TooLong(usize),
    /// The bytes of a frame are not the expected value.
    #[error("a frame is malformed")]
    Malformed,
}

impl FrameError {
    /// True if only a worker that does not keep to the protocol causes this error.
    pub fn is_violation(&self) -> bool {
        matches!(self, Self::TooLong(_) | Self::Malformed)
    }
}

/// A stream that its reader and its writer share.
#[derive(Clone)]
pub(super) struct SharedStream(Arc<UnixStream>);

impl SharedStream {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self(Arc::new(stream))
    }

    /// Waits until the other side has dropped the stream. Frames that it sent before may still be unread.
    pub(super) async fn closed(&self) {
        // Among the interests, only this one waits for the end of the stream without waiting for bytes.
        let _ = self.0.ready(Interest::PRIORITY).await;
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// Reads frames.
pub(super) struct FrameReader {
    stream: SharedStream,
    buffer: BytesMut,
}

impl FrameReader {
    pub(super) fn new(stream: &SharedStream) -> Self {
        Self { stream: stream.clone(), buffer: BytesMut::new() }
    }

    /// The next frame. `None`: the stream ended after a whole frame.
    pub(super) fn poll_next<T: DeserializeOwned>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<T>, FrameError>> {
        let Some(frame) = ready!(self.poll_bytes(cx))? else { return Poll::Ready(Ok(None)) };
        Poll::Ready(match postcard::take_from_bytes(&frame) {
            Ok((value, [])) => Ok(Some(value)),
            _ => Err(FrameError::Malformed),
        })
    }

    /// The next frame. See [`FrameReader::poll_next`].
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next frame of a stream that may not end before it.
    pub(super) async fn expect<T: DeserializeOwned>(&mut self) -> Result<T, FrameError> {
        self.next().await?.ok_or(FrameError::Truncated)
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<BytesMut>, FrameError>> {
        loop {
            let mut missing = PREFIX_BYTES.saturating_sub(self.buffer.len());
            if let Some(prefix) = self.buffer.first_chunk() {
                let length = usize::try_from(u32::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
                if length > MAX_FRAME_BYTES {
                    return Poll::Ready(Err(FrameError::TooLong(length)));
                }
                missing = (PREFIX_BYTES + length).saturating_sub(self.buffer.len());
                if missing == 0 {
                    self.buffer.advance(PREFIX_BYTES);
                    return Poll::Ready(Ok(Some(self.buffer.split_to(length))));
                }
            }
            self.buffer.reserve(missing.max(MIN_READ_BYTES));
            if ready!(self.stream.poll_read(cx, &mut self.buffer))? == 0 {
                return Poll::Ready(if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::Truncated) });
            }
        }
    }
}

/// Writes frames. At most one frame waits.
pub(super) struct FrameWriter {
    stream: SharedStream,
    frame: Vec<u8>,
    sent: usize,
}

impl FrameWriter {
    pub(super) fn new(stream: &SharedStream) -> Self {
        Self { stream: stream.clone(), frame: Vec::new(), sent: 0 }
    }

    /// Sends a frame.
    pub(super) async fn send<T: Serialize>(&mut self, frame: &T) -> Result<(), FrameError> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.start(frame)?;
        Ok(poll_fn(|cx| self.poll_flush(cx)).await?)
    }

    /// Puts a frame into the place of the last one, which has to be sent already.
    pub(super) fn start<T: Serialize>(&mut self, frame: &T) -> Result<(), FrameError> {
        let mut bytes = std::mem::take(&mut self.frame);
        bytes.clear();
        bytes.extend_from_slice(&[0; PREFIX_BYTES]);
        let mut bytes = postcard::to_extend(frame, bytes).map_err(|_| FrameError::Malformed)?;
        let length = bytes.len().saturating_sub(PREFIX_BYTES);
        let prefix = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME_BYTES);
        let prefix = prefix.ok_or(FrameError::TooLong(length))?;
        if let Some(place) = bytes.first_chunk_mut() {
            *place = prefix.to_le_bytes();
        }
        (self.frame, self.sent) = (bytes, 0);
        Ok(())
    }

    /// Sends what waits. Ready when nothing waits.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.frame.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let sent = ready!(self.stream.poll_write(cx, rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent = self.sent.saturating_add(sent);
        }
        Poll::Ready(Ok(()))
    }
}

/// Bytes in a frame, at most [`MAX_PIECE_BYTES`] long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BytePiece(pub(super) Bytes);

impl BytePiece {
    /// Removes a piece from the start of `bytes`. `None`: nothing is left.
    pub(super) fn take(bytes: &mut Bytes) -> Option<Self> {
        let length = bytes.len().min(MAX_PIECE_BYTES);
        (length > 0).then(|| Self(bytes.split_to(length)))
    }
}

impl Serialize for BytePiece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for BytePiece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BytePieceVisitor;

        impl Visitor<'_> for BytePieceVisitor {
            type Value = BytePiece;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MAX_PIECE_BYTES} bytes")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<BytePiece, E> {
                if bytes.len() > MAX_PIECE_BYTES {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                Ok(BytePiece(Bytes::copy_from_slice(bytes)))
            }
        }

        deserializer.deserialize_bytes(BytePieceVisitor)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn read_all(bytes: &[u8]) -> Result<Option<BytePiece>, FrameError> {
        let (mut there, here) = UnixStream::pair().unwrap();
        there.write_all(bytes).await.unwrap();
        drop(there);
        FrameReader::new(&SharedStream::new(here)).next().await
    }

    #[tokio::test]
    async fn malformed_frames_end_the_stream() {
        assert!(matches!(read_all(&[]).await, Ok(None)));
        assert_eq!(read_all(&[3, 0, 0, 0, 2, b'o', b'k']).await.unwrap(), Some(BytePiece(Bytes::from_static(b"ok"))));
        for truncated in [&[3, 0, 0][..], &[3, 0, 0, 0], &[3, 0, 0, 0, 2, b'o']] {
            assert!(matches!(read_all(truncated).await, Err(FrameError::Truncated)), "{truncated:?}");
        }
        for malformed in [&[0, 0, 0, 0][..], &[1, 0, 0, 0, 2], &[3, 0, 0, 0, 1, b'o', b'k'], &[1, 0, 0, 0, 0xff]] {
            assert!(matches!(read_all(malformed).await, Err(FrameError::Malformed)), "{malformed:?}");
        }
        assert!(matches!(read_all(&[0xff; 8]).await, Err(FrameError::TooLong(0xffff_ffff))));
        let over = u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_le_bytes();
        assert!(matches!(read_all(&over).await, Err(FrameError::TooLong(_))));
    }

    #[tokio::test]
    async fn a_piece_has_a_bound_of_its_own() {
        let (there, here) = UnixStream::pair().unwrap();
        let mut writer = FrameWriter::new(&SharedStream::new(there));
        let write = tokio::spawn(async move {
            writer.send(&BytePiece(vec![7; MAX_PIECE_BYTES].into())).await.unwrap();
            writer.send(&BytePiece(vec![7; MAX_PIECE_BYTES + 1].into())).await.unwrap();
            writer.send(&BytePiece(vec![7; MAX_FRAME_BYTES].into())).await
        });
        let mut reader = FrameReader::new(&SharedStream::new(here));
        assert_eq!(reader.expect::<BytePiece>().await.unwrap().0.len(), MAX_PIECE_BYTES);
        assert!(matches!(reader.expect::<BytePiece>().await, Err(FrameError::Malformed)));
        assert!(matches!(write.await.unwrap(), Err(FrameError::TooLong(_))));
    }

    #[tokio::test]
    async fn the_end_of_the_other_side_shows_before_its_frames_are_read() {
        let (there, here) = UnixStream::pair().unwrap();
        let stream = SharedStream::new(here);
        let mut writer = FrameWriter::new(&SharedStream::new(there));
        writer.send(&7_u8).await.unwrap();
        let is_closed = tokio::time::timeout(std::time::Duration::from_millis(50), stream.closed()).await;
        assert!(is_closed.is_err(), "a frame waits, and the stream is open");
        drop(writer);
        stream.closed().await;
        assert_eq!(FrameReader::new(&stream).expect::<u8>().await.unwrap(), 7);
    }
}
