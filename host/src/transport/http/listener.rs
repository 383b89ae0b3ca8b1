//! The listener: accepts connections, gives each a slot in the table, and closes them at the shutdown.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::connections::ConnectionTable;
use super::endpoint::Endpoint;
use super::front_door::FrontDoor;
use super::poll_again::PollAgain;
use super::socket::Socket;
use super::stream::ServedStream;
use super::tls::TlsIdentity;
use crate::mcp::{Handler, next_peer_id};
use crate::model::bounds::{EVICT_WRITING_AFTER, HANDSHAKE_TIME};
use crate::transport::error::ServeError;
use crate::transport::limits::{LAST_ANSWERS_TIME, LAST_READ_TIME};

/// Streams may take this time to end at the shutdown.
const STREAM_END_TIME: Duration = Duration::from_millis(300);

/// After the stop, connections are accepted until no request has come for this time.
const QUIET: Duration = Duration::from_millis(50);

/// After the stop, connections are accepted for at most this time. Clients that ask again and again are answered until then.
const MAX_FAREWELL: Duration = Duration::from_secs(1);

/// Answers are held back for this time before the listener closes.
const HOLD: Duration = Duration::from_millis(20);

/// Accepts connections and serves them.
struct Acceptor {
    endpoint: Arc<Endpoint>,
    connections: Arc<ConnectionTable>,
    builder: hyper::server::conn::http1::Builder,
    graceful: GracefulShutdown,
    tls: Option<Arc<TlsIdentity>>,
    bounds: Bounds,
    /// Cancelled when belljar stops: unfinished handshakes are not waited for.
    stopping: CancellationToken,
}

/// Serves on `listener` until `stop` completes. Running requests may continue for the time of the drain; then they are
/// stopped. Each is answered, and so is each request that comes meanwhile. From `leaving` on, each answer closes its
/// connection, so that clients connect elsewhere.
///
/// # Errors
/// The listener has no local address.
pub async fn serve(
    handler: Handler,
    listener: TcpListener,
    front: FrontDoor,
    leaving: CancellationToken,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let cancel = CancellationToken::new();
    let own = listener.local_addr().map_err(ServeError::NoAddress)?;
    let (bounds, tls) = (front.bounds, front.tls.clone());
    let endpoint = Arc::new(Endpoint::new(handler.clone(), own, front, leaving.clone(), cancel.clone()));
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).max_headers(64).max_buf_size(64 << 10);
    builder.header_read_timeout(bounds.headers);
    let connections = ConnectionTable::new(bounds.connections, EVICT_WRITING_AFTER.get(), cancel.clone());
    let (graceful, stopping) = (GracefulShutdown::new(), CancellationToken::new());
    let acceptor = Acceptor { endpoint, connections, builder, graceful, tls, bounds, stopping };
    tokio::select! {
        biased;
        () = stop => {}
        () = acceptor.accept_all(&listener) => {}
    }
    leaving.cancel();
    handler.begin_shutdown();
    let began = Instant::now();
    let idle_by = began + bounds.drain;
    let farewell = async {
        let is_idle = tokio::time::timeout_at(idle_by, handler.wait_until_idle()).await.is_ok();
        if !is_idle {
            handler.stop_requests();
            let _ = tokio::time::timeout(LAST_ANSWERS_TIME, handler.wait_until_idle()).await;
        }
        acceptor.endpoint.wait_until_quiet(QUIET, began + MAX_FAREWELL).await;
    };
    tokio::select! {
        biased;
        () = farewell => {}
        () = acceptor.accept_all(&listener) => {}
    }
    // The kernel resets connections that wait in its queue when the listener closes.
    acceptor.endpoint.hold_answers();
    let _ = tokio::time::timeout(HOLD, acceptor.accept_all(&listener)).await;
    acceptor.accept_queued(listener).await;
    acceptor.endpoint.release_answers();
    let Acceptor { endpoint, graceful, stopping, .. } = acceptor;
    stopping.cancel();
    let mut shut = std::pin::pin!(graceful.shutdown());
    let mut shut_by = async |by| tokio::time::timeout_at(by, shut.as_mut()).await.is_ok();
    // Clients may read their last answers until this time. The streams of sessions end only when they are cancelled.
    if !shut_by(idle_by.max(Instant::now() + LAST_READ_TIME)).await {
        cancel.cancel();
        if !shut_by(Instant::now() + STREAM_END_TIME).await {
            tracing::info!("some clients had not read their answers when belljar stopped");
        }
    }
    cancel.cancel();
    endpoint.record_unwritten();
    Ok(())
}

impl Acceptor {
    /// Accepts connections, for ever.
    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.serve(stream, peer.ip()).await,
                Err(error) => {
                    // The process probably has no free file descriptor. Evicting a connection frees one.
                    tracing::warn!("cannot accept a connection: {error}");
                    self.connections.evict_least_active();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Accepts the connections that wait in the kernel's queue, and closes the listener.
    async fn accept_queued(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else { return };
        // The listener does not block, so this ends with the queue.
        while let Ok((stream, peer)) = listener.accept() {
            if let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
                self.serve(stream, peer.ip()).await;
            }
        }
    }

    /// Serves a connection in a task of its own. While the table is full, new connections wait in the kernel's queue.
    async fn serve(&self, stream: TcpStream, peer: IpAddr) {
        let slot = loop {
            match self.connections.add(peer) {
                Some(slot) => break slot,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let (endpoint, served) = (Arc::clone(&self.endpoint), Arc::clone(&slot.connection));
        let peer = next_peer_id();
        let service = service_fn(move |request| {
            let (endpoint, served) = (Arc::clone(&endpoint), Arc::clone(&served));
            async move { Ok::<_, Infallible>(endpoint.answer(served, peer, request).await) }
        });
        let socket = Socket::new(stream, self.bounds.write, Arc::clone(&slot.connection));
        let (tls, builder, watcher) = (self.tls.clone(), self.builder.clone(), self.graceful.watcher());
        let stopping = self.stopping.clone();
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
}
