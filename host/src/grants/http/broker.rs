//! The front's side of the exchanges of a call in a worker process. Decides on each request, sends it, and streams both
//! bodies, as for a call in its own process. Believes nothing that the worker sends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use wasmtime_wasi_http::{Error, WasiBody, WasiHttpHooks as _};

use super::call_state::HttpCallState;
use super::client_connection::ConnectionDriver;
use super::exchange_frames::{BodyFrame, ExchangeAnswer, FailedExchange, RequestHead};
use crate::grants::call_record::CallRecord;
use crate::grants::frames::{FrameError, FrameReader, FrameWriter, SharedStream};

/// The exchanges of one call.
#[derive(Clone)]
pub(in crate::grants) struct HttpBroker(Arc<Shared>);

struct Shared {
    call: Mutex<HttpCallState>,
    record: CallRecord,
    upload: u64,
    /// Resolves when the latest request has been decided on.
    last: Mutex<Option<oneshot::Receiver<()>>>,
}

/// The place of a request among those of its call: each is decided on after the one before.
struct Turn {
    previous: Option<oneshot::Receiver<()>>,
    /// Dropped when this request has been decided on, or has failed.
    _decided: oneshot::Sender<()>,
}

impl HttpBroker {
    pub(in crate::grants) fn new(call: HttpCallState) -> Self {
        let (record, upload) = (call.record.clone(), call.traffic.upload);
        Self(Arc::new(Shared { call: Mutex::new(call), record, upload, last: Mutex::default() }))
    }

    /// Serves one exchange. Its place in the order of the requests is that of the call of this function.
    pub(in crate::grants) fn serve(
        &self,
        stream: UnixStream,
    ) -> impl Future<Output = Result<(), FrameError>> + Send + use<> {
        let (decided, own) = oneshot::channel();
        let previous = self.0.last.lock().unwrap_or_else(PoisonError::into_inner).replace(own);
        let turn = Turn { previous, _decided: decided };
        let shared = Arc::clone(&self.0);
        async move {
            let stream = SharedStream::new(stream);
            let mut reader = FrameReader::new(&stream);
            let head = reader.expect::<RequestHead>().await?;
            let (unread, is_unread) = oneshot::channel();
            let mut writer = FrameWriter::new(&stream);
            tokio::select! {
                done = shared.exchange(turn, head, reader, unread, &mut writer) => done,
                never = shared.discard(is_unread) => match never {},
                () = stream.closed() => Ok(()),
            }
        }
    }
}

impl Shared {
    fn failed(&self, error: Error) -> FailedExchange {
        FailedExchange { error: error.into(), limit: self.record.traffic().reached_limit() }
    }

    async fn exchange(
        &self,
        mut turn: Turn,
        head: RequestHead,
        reader: FrameReader,
        unread: oneshot::Sender<FrameReader>,
        writer: &mut FrameWriter,
    ) -> Result<(), FrameError> {
        let (request, options, length) = head.into_request()?;
        if let Some(previous) = &mut turn.previous {
            let _ = previous.await;
        }
        let body = RequestBody { reader: Some(reader), unread: Some(unread), length, left: length };
        let sending = {
            let request = request.map(|()| body.boxed_unsync());
            let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
            match refuse_hidden_header(&mut call, &request) {
                Err(error) => Err(error),
                Ok(()) => Ok(call.send_request(request, Some(options), Box::new(std::future::ready(Ok(()))))),
            }
        };
        drop(turn);
        let answered = match sending {
            Ok(sending) => Pin::from(sending).await,
            Err(error) => Err(error),
        };
        match answered {
            Ok((response, driver)) => self.answer(response, driver, writer).await,
            Err(error) => writer.send(&ExchangeAnswer::Failed(self.failed(error))).await,
        }
    }

    /// Sends the response, while the connection is driven. Ends when both are over.
    async fn answer(
        &self,
        response: Response<WasiBody>,
        driver: ConnectionDriver,
        writer: &mut FrameWriter,
    ) -> Result<(), FrameError> {
        let driver = async {
            // The body reports its error.
            let _ = Pin::from(driver).await;
            Ok::<(), FrameError>(())
        };
        let download = async {
            let (parts, mut body) = response.into_parts();
            writer.send(&ExchangeAnswer::of(&parts)).await?;
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => {
                        for frame in BodyFrame::split(frame) {
                            writer.send(&frame).await?;
                        }
                    }
                    Err(error) => return writer.send(&BodyFrame::Failed(self.failed(error))).await,
                }
            }
            writer.send(&BodyFrame::End).await
        };
        tokio::try_join!(download, driver).map(|_| ())
    }

    /// Reads on where a body of a request was dropped before its end, so that the guest does not wait for its upload. Counts
    /// the bytes.
    async fn discard(&self, unread: oneshot::Receiver<FrameReader>) -> std::convert::Infallible {
        if let Ok(mut reader) = unread.await {
            while let Ok(Some(BodyFrame::Data(piece))) = reader.next().await {
                if self.record.traffic().count_upload(piece.0.len() as u64, self.upload).is_err() {
                    break;
                }
            }
        }
        std::future::pending().await
    }
}

/// Refuses a request with a header that no guest can set. The worker's own filter lets none through, unless the worker was
/// taken over.
fn refuse_hidden_header(call: &mut HttpCallState, request: &Request<WasiBody>) -> Result<(), Error> {
    let is_hidden = call.forbidden_header_filter();
    if !request.headers().keys().any(|name| is_hidden(name)) {
        return Ok(());
    }
    call.deny("a request with a header that only belljar sets", "nothing allows this".to_owned());
    Err(Error::HttpRequestDenied)
}

/// The body of a request, as the worker sends it.
struct RequestBody {
    /// `None` after the last frame.
    reader: Option<FrameReader>,
    /// Gets the reader if this body is dropped before its last frame.
    unread: Option<oneshot::Sender<FrameReader>>,
    /// The length that the request declares.
    length: Option<u64>,
    /// What is missing of this length.
    left: Option<u64>,
}

impl RequestBody {
    fn take(&mut self, frame: Result<Option<BodyFrame>, FrameError>) -> Option<Result<Frame<Bytes>, Error>> {
        let wrong_length = || Error::HttpRequestBodySize(self.length);
        let error = match frame {
            Ok(Some(BodyFrame::Data(piece))) => {
                let left = self.left.map(|left| left.checked_sub(piece.0.len() as u64));
                if left != Some(None) {
                    self.left = left.flatten();
                    return Some(Ok(Frame::data(piece.0)));
                }
                wrong_length()
            }
            Ok(Some(BodyFrame::Trailers(fields))) => match fields.into_headers() {
                Ok(trailers) => return Some(Ok(Frame::trailers(trailers))),
                Err(_) => Error::HttpProtocolError,
            },
            Ok(Some(BodyFrame::End)) if self.left.unwrap_or_default() == 0 => {
                self.reader = None;
                return None;
            }
            Ok(Some(BodyFrame::End)) => wrong_length(),
            Ok(Some(BodyFrame::Failed(_))) => Error::HttpProtocolError,
            Ok(None) | Err(_) => Error::ConnectionTerminated,
        };
        self.reader = None;
        Some(Err(error))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
        let frame = ready!(reader.poll_next(cx));
        Poll::Ready(self.take(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.reader.is_none() || self.length == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(reader), Some(unread)) = (self.reader.take(), self.unread.take()) {
            let _ = unread.send(reader);
        }
    }
}

#[cfg(test)]
mod tests;
