//! Serves one connection over standard input and output.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::ErrorData;
use tokio::io::{AsyncRead, AsyncWrite};

use super::dispatch::Dispatcher;
use super::line_transport::LineTransport;
use super::standard_streams::standard_streams;
use crate::mcp::Handler;
use crate::mcp::outbox::Outbox;
use crate::mcp::subscriptions::SubscribeGate;
use crate::transport::error::ServeError;
use crate::transport::limits::{DRAIN, LAST_ANSWERS_TIME};

/// Running requests may continue for this time after standard input ends. A script may still read the answers; most
/// clients are gone.
const DRAIN_AFTER_INPUT: Duration = Duration::from_millis(1200);

/// Serves until standard input ends or `stop` completes. Running requests may continue for [`DRAIN`]; then they are
/// stopped. Each is answered.
///
/// # Errors
/// The first message does not open a connection, or the streams fail.
pub async fn serve(handler: Handler, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
    serve_on(handler, standard_streams(), stop).await
}

/// As [`serve`], over any pair of streams.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on<R, W>(handler: Handler, streams: (R, W), stop: impl Future<Output = ()>) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let outbox = Arc::clone(handler.outbox());
    serve_with_outbox(handler, outbox, streams, stop).await
}

/// As [`serve_on`]. Counts each answer in `outbox` while it is written.
pub(super) async fn serve_with_outbox<R, W>(
    handler: Handler,
    outbox: Arc<Outbox>,
    (input, output): (R, W),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let recorded = handler.clone();
    let on_refused = Arc::new(move |error: &ErrorData| recorded.record_refused(None, error, 1));
    let lines = LineTransport::new(input, output, outbox, on_refused);
    let (pending, ended) = (Arc::clone(&lines.pending), Arc::clone(&lines.ended));
    let peer = Arc::new(OnceLock::new());
    let lines = Dispatcher::new(lines, handler.clone(), Arc::clone(&peer));
    let served = async {
        let service = match rmcp::serve_server(SubscribeGate::new(handler.clone()), lines).await {
            Ok(service) => service,
            // The client closed the connection without a message.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::NotOpened(Box::new(error))),
        };
        let _ = peer.set(service.peer().clone());
        service.waiting().await.map(|_| ()).map_err(ServeError::Failed)
    };
    let farewell = async {
        let drain = tokio::select! {
            () = stop => {
                handler.begin_shutdown();
                DRAIN
            }
            // Requests that were read before still run, because a script may read the answers.
            () = ended.notified() => {
                handler.end_subscriptions();
                DRAIN_AFTER_INPUT
            }
        };
        if tokio::time::timeout(drain, pending.wait_until_answered()).await.is_err() {
            handler.stop_requests();
            let _ = tokio::time::timeout(LAST_ANSWERS_TIME, pending.wait_until_answered()).await;
        }
    };
    tokio::select! {
        served = served => served,
        () = farewell => Ok(()),
    }
}
