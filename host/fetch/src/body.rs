//! What a request sends: nothing, a form, a document, or a blob from a file. A blob is read piece by piece while it is sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// The bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// What a request sends.
#[derive(Clone)]
pub(crate) enum Payload {
    None,
    /// A form in its encoding.
    Form(String),
    /// A document with its media type.
    Document(String, Bytes),
    Blob(Blob),
}

/// An open file, and how much of it was sent.
#[derive(Clone)]
pub(crate) struct Blob {
    file: Arc<File>,
    size: u64,
    sent: Arc<AtomicU64>,
}

/// The body of one request.
pub(crate) enum Body {
    Bytes(Option<Bytes>),
    Blob(Blob),
}

impl Payload {
    /// The body, from its beginning.
    pub(crate) fn body(&self) -> Body {
        match self {
            Self::None => Body::Bytes(None),
            Self::Form(form) => Body::Bytes(Some(form.clone().into())),
            Self::Document(_, bytes) => Body::Bytes(Some(bytes.clone())),
            Self::Blob(blob) => {
                blob.sent.store(0, Ordering::Relaxed);
                Body::Blob(blob.clone())
            }
        }
    }

    pub(crate) fn media_type(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Form(_) => Some("application/x-www-form-urlencoded"),
            Self::Document(media_type, _) => Some(media_type),
            Self::Blob(_) => Some("application/octet-stream"),
        }
    }

    /// The bytes of a blob that were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        if let Self::Blob(blob) = self { blob.sent() } else { 0 }
    }
}

impl Blob {
    pub(crate) fn new(file: File, size: u64) -> Self {
        Self { file: Arc::new(file), size, sent: Arc::default() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The piece that begins at `from`. Empty at the end.
    pub(crate) fn piece(&self, from: u64) -> io::Result<Bytes> {
        let mut buffer = vec![0; PIECE.min(usize::try_from(self.size.saturating_sub(from)).unwrap_or(PIECE))];
        self.file.read_exact_at(&mut buffer, from)?;
        Ok(buffer.into())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match self.get_mut() {
            Self::Bytes(bytes) => bytes.take().map(Ok),
            Self::Blob(blob) => {
                let from = blob.sent();
                let piece = if from < blob.size { Some(blob.piece(from)) } else { None };
                if let Some(Ok(piece)) = &piece {
                    blob.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                }
                piece
            }
        };
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Bytes(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Blob(blob) => blob.size.saturating_sub(blob.sent()),
        })
    }
}
