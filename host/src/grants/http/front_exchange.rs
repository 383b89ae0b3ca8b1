//! The exchange of a call in a worker process: hands the request over to the front, which decides and sends it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, request};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::client_connection::ConnectionDriver;
use super::exchange_frames::{BodyFrame, ExchangeAnswer, FailedExchange, RequestHead};
use crate::grants::call_record::CallRecord;
use crate::grants::frames::{FrameError, FrameReader, FrameWriter, SharedStream};
use crate::grants::front::Opening;
use crate::grants::traffic::TrafficExceeded;
use crate::model::limits::Traffic;

/// Sends the request over the stream that `opening` gives. Dropping the response, its body included, ends the exchange in
/// the front.
pub(super) async fn run(
    opening: Opening,
    request: Request<WasiBody>,
    options: RequestOptions,
    record: CallRecord,
    traffic: Traffic,
) -> Result<(Response<WasiBody>, ConnectionDriver), Error> {
    let stream = SharedStream::new(opening.await.map_err(|_| Error::InternalError(None))?);
    let (parts, body) = request.into_parts();
    let writer = FrameWriter::new(&stream);
    let mut upload = Box::pin(upload(writer, parts, body, options, record.clone(), traffic.upload));
    let mut is_uploaded = false;
    let mut reader = FrameReader::new(&stream);
    let answer = poll_fn(|cx| {
        // An error of the upload shows in the answer.
        if !is_uploaded && upload.as_mut().poll(cx).is_ready() {
            is_uploaded = true;
        }
        reader.poll_next::<ExchangeAnswer>(cx)
    })
    .await;
    let answer = answer.and_then(|answer| answer.ok_or(FrameError::Truncated)?.into_response());
    let answer = answer.map_err(|_| Error::ConnectionTerminated)?;
    let (status, headers) = answer.map_err(|failed| take_failure(&record, failed))?;
    let body = ResponseBody { reader, record, cap: traffic.download, is_over: false };
    let mut response = Response::new(body.boxed_unsync());
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    let driver = async move {
        if !is_uploaded {
            let _ = upload.await;
        }
        Ok(())
    };
    Ok((response, Box::new(driver)))
}

/// The error of a failure. Notes the limit that the call has reached in the front.
fn take_failure(record: &CallRecord, failed: FailedExchange) -> Error {
    if let Some(limit) = failed.limit {
        record.traffic().note_limit(limit);
    }
    failed.error.into()
}

/// Sends the head and the body of the request.
async fn upload(
    mut writer: FrameWriter,
    parts: request::Parts,
    mut body: WasiBody,
    options: RequestOptions,
    record: CallRecord,
    cap: u64,
) -> Result<(), FrameError> {
    writer.send(&RequestHead::of(&parts, &body, &options)).await?;
    let mut is_whole = true;
    while is_whole && let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            is_whole = false;
            break;
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        is_whole = record.traffic().count_upload(bytes, cap).is_ok();
        // Send too many bytes too: the front counts them, and its error is that of the request.
        for frame in BodyFrame::split(frame) {
            writer.send(&frame).await?;
        }
    }
    let failed = FailedExchange { error: Error::HttpProtocolError.into(), limit: None };
    writer.send(&if is_whole { BodyFrame::End } else { BodyFrame::Failed(failed) }).await
}

/// The body of a response, as the front sends it.
struct ResponseBody {
    reader: FrameReader,
    record: CallRecord,
    cap: u64,
    is_over: bool,
}

impl ResponseBody {
    fn fail(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match ready!(self.reader.poll_next::<BodyFrame>(cx)) {
            Ok(Some(BodyFrame::Data(piece))) => {
                let counted = self.record.traffic().count_download(piece.0.len() as u64, self.cap);
                match counted {
                    Err(TrafficExceeded(cap)) => self.fail(Error::HttpResponseBodySize(Some(cap))),
                    Ok(()) => Poll::Ready(Some(Ok(Frame::data(piece.0)))),
                }
            }
            Ok(Some(BodyFrame::Trailers(fields))) => match fields.into_headers() {
                Ok(trailers) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Err(_) => self.fail(Error::HttpProtocolError),
            },
            Ok(Some(BodyFrame::End)) => {
                self.is_over = true;
                Poll::Ready(None)
            }
            Ok(Some(BodyFrame::Failed(failed))) => {
                let error = take_failure(&self.record, failed);
                self.fail(error)
            }
            Ok(None) | Err(_) => self.fail(Error::ConnectionTerminated),
        }
    }
}
