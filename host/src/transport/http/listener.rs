//! The listener: accepts connections, gives each a slot in the table, and closes them at the shutdown.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connections::ConnectionTable;
use super::endpoint::Endpoint;
use super::front_door::FrontDoor;
use super::poll_again::PollAgain;
use super::socket::Socket;
use super::stream::ServedStream;
use crate::mcp::{Handler, next_peer_id};
use crate::model::bounds::{EVICT_WRITING_AFTER, HANDSHAKE_TIME};
use crate::transport::error::ServeError;
use crate::transport::limits::{LAST_ANSWERS_TIME, LAST_READ_TIME};

/// Streams may take this time to end at the shutdown.
const STREAM_END_TIME: Duration = Duration::from_millis(300);

/// Serves on `listener` until `stop` completes. Running requests may continue for the time of the drain; then they are
/// stopped. Each is answered.
///
/// # Errors
/// The listener has no local address.
pub async fn serve(
    handler: Handler,
    listener: TcpListener,
    front: FrontDoor,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let cancel = CancellationToken::new();
    let own = listener.local_addr().map_err(ServeError::NoAddress)?;
    let (bounds, tls) = (front.bounds, front.tls.clone());
    let endpoint = Arc::new(Endpoint::new(handler.clone(), own, front, cancel.clone()));
    let unwritten = Arc::clone(&endpoint);
    // Cancelled when belljar stops: unfinished handshakes are not waited for.
    let stopping = CancellationToken::new();
    let connections = ConnectionTable::new(bounds.connections, EVICT_WRITING_AFTER.get());
    let graceful = GracefulShutdown::new();
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).max_headers(64).max_buf_size(64 << 10);
    builder.header_read_timeout(bounds.headers);
    let mut stop = pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => (stream, peer.ip()),
                Err(error) => {
                    // The process probably has no free file descriptor. Evicting a connection frees one.
                    tracing::warn!("cannot accept a connection: {error}");
                    connections.evict_least_active();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        // While the table is full, new connections wait in the kernel's accept queue.
        let slot = async {
            loop {
                match connections.add(peer) {
                    Some(slot) => break slot,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let slot = tokio::select! { biased; () = &mut stop => break, slot = slot => slot };
        let endpoint = Arc::clone(&endpoint);
        let served = Arc::clone(&slot.connection);
        let peer = next_peer_id();
        let service = service_fn(move |request| {
            let (endpoint, served) = (Arc::clone(&endpoint), Arc::clone(&served));
            async move { Ok::<_, Infallible>(endpoint.answer(served, peer, request).await) }
        });
        let socket = Socket::new(stream, bounds.write, Arc::clone(&slot.connection));
        let (tls, builder, watcher) = (tls.clone(), builder.clone(), graceful.watcher());
        let stopping = stopping.clone();
        tokio::spawn(PollAgain::new(async move {
            let stream = match tls {
                None => ServedStream::Plain(socket),
                Some(identity) => tokio::select! {
                    biased;
                    stream = identity.accept(socket, HANDSHAKE_TIME.get()) => match stream {
                        Some(stream) => ServedStream::Tls(Box::new(stream)),
                        None => return,
                    },
                    () = slot.connection.wait_for_close() => return,
                    () = stopping.cancelled() => return,
                },
            };
            let mut connection = pin!(watcher.watch(builder.serve_connection(TokioIo::new(stream), service)));
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("connection: {error}");
                        slot.connection.reset_on_close();
                    }
                }
                () = slot.connection.wait_for_close() => {
                    tracing::debug!("a connection is closed: it was silent or slow");
                    slot.connection.reset_on_close();
                }
            }
        }));
    }
    drop(listener);
    stopping.cancel();
    handler.begin_shutdown();
    let mut shut = std::pin::pin!(graceful.shutdown());
    let mut shut_by = async |by| tokio::time::timeout_at(by, shut.as_mut()).await.is_ok();
    let by = Instant::now() + bounds.drain;
    let is_idle = tokio::time::timeout_at(by, handler.wait_until_idle()).await.is_ok();
    if !is_idle {
        handler.stop_requests();
        let _ = tokio::time::timeout(LAST_ANSWERS_TIME, handler.wait_until_idle()).await;
    }
    // Clients may read their last answers until this time. The streams of sessions end only when they are cancelled.
    if !shut_by(by.max(Instant::now() + LAST_READ_TIME)).await {
        cancel.cancel();
        if !shut_by(Instant::now() + STREAM_END_TIME).await {
            tracing::info!("some clients had not read their answers when belljar stopped");
        }
    }
    cancel.cancel();
    unwritten.record_unwritten();
    Ok(())
}
