//! One request over a new connection, with HTTP/1.1 or HTTP/2: sends it, and drives the connection until the response has
//! come. Knows no grants and no calls.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::Error;

use super::connect::UpstreamConnection;

/// The future that drives the connection after the request was sent. `wasi:http` polls it.
pub(super) type ConnectionDriver = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// The most bytes of the status line and the headers of a response.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The most headers of a response.
const MAX_HEADERS: usize = 100;

/// The most response bytes that an HTTP/2 connection buffers for the guest.
const MAX_BUFFERED_BYTES: u32 = 256 << 10;

/// Sends the request, and drives the connection until the head of the response has arrived.
pub(super) async fn exchange<B>(
    (stream, is_h2): UpstreamConnection,
    request: Request<B>,
    deadline: Instant,
) -> Result<(Response<Incoming>, ConnectionDriver), Error>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = TokioIo::new(stream);
    if is_h2 {
        let tasks = Arc::new(Mutex::new(JoinSet::new()));
        let mut builder = hyper::client::conn::http2::Builder::new(Tasks(Arc::downgrade(&tasks)));
        builder
            .initial_stream_window_size(MAX_BUFFERED_BYTES)
            .initial_connection_window_size(MAX_BUFFERED_BYTES)
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
            .max_concurrent_reset_streams(8);
        let (mut sender, connection) =
            timeout_at(deadline, builder.handshake(stream)).await.map_err(|_| Error::ConnectionTimeout)??;
        let response = async move { sender.send_request(request).await };
        drive(response, async { (connection.await, join_tasks(tasks).await).0 }, deadline).await
    } else {
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
        let (mut sender, connection) =
            timeout_at(deadline, builder.handshake(stream)).await.map_err(|_| Error::ConnectionTimeout)??;
        let response = async move { sender.send_request(request).await };
        drive(response, connection, deadline).await
    }
}

async fn drive(
    response: impl Future<Output = hyper::Result<Response<Incoming>>>,
    connection: impl Future<Output = hyper::Result<()>> + Send + 'static,
    deadline: Instant,
) -> Result<(Response<Incoming>, ConnectionDriver), Error> {
    let mut connection = Box::pin(connection);
    let mut is_over = false;
    let both = async {
        let mut response = pin!(response);
        poll_fn(|cx| {
            // Poll the connection first, because it delivers the response.
            if !is_over && connection.as_mut().poll(cx).is_ready() {
                is_over = true;
            }
            response.as_mut().poll(cx)
        })
        .await
    };
    let response = timeout_at(deadline, both)
        .await
        .map_err(|_| Error::HttpResponseTimeout)?
        .map_err(|error| convert_error(&error))?;
    let io = async move {
        if !is_over {
            // Ignore its error: the body reports the same error.
            let _ = connection.await;
        }
        Ok(())
    };
    Ok((response, Box::new(io)))
}

/// Converts an error of hyper. Leaves out text of the upstream.
pub(super) fn convert_error(error: &hyper::Error) -> Error {
    match () {
        () if error.is_timeout() => Error::HttpResponseTimeout,
        () if error.is_parse_too_large() => Error::HttpResponseHeaderSectionSize(u32::try_from(MAX_HEAD_BYTES).ok()),
        () if error.is_incomplete_message() => Error::HttpResponseIncomplete,
        () if error.is_canceled() || error.is_closed() => Error::ConnectionTerminated,
        () if error.is_parse() => Error::HttpProtocolError,
        // hyper keeps the reason of an HTTP/2 error in its source.
        () if std::error::Error::source(error).is_some_and(|source| !source.is::<std::io::Error>()) => {
            Error::HttpProtocolError
        }
        () => Error::ConnectionTerminated,
    }
}

/// Waits for the tasks of an HTTP/2 connection, which deliver the body after the connection future has ended. Dropping
/// the future aborts the tasks.
async fn join_tasks(tasks: Arc<Mutex<JoinSet<()>>>) {
    loop {
        let mut running = std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if running.is_empty() {
            return;
        }
        while running.join_next().await.is_some() {}
    }
}

/// Runs the tasks of an HTTP/2 connection. They end with the exchange.
#[derive(Clone)]
struct Tasks(Weak<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        if let Some(tasks) = self.0.upgrade() {
            tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
        }
    }
}
