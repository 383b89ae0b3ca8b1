//! Connects for the grant: dials, speaks TLS, and starts the relay between the guest and the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

use super::login::Credentials;
use super::relay::Relay;
use crate::grants::network::endpoint::{ConnectFailure, Connecting, ConnectionScope, Connector};
use crate::grants::network::route::Route;
use crate::grants::network::{AbortOnDrop, ByteStream};

/// Bytes that wait between the guest and belljar, in each direction.
const BUFFER: usize = 32 << 10;

/// Connects to one database.
pub(super) struct PostgresConnector {
    pub(super) route: Route,
    /// `None`: without TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) credentials: Credentials,
    /// Server and database, as in `at`.
    pub(super) target: String,
}

impl PostgresConnector {
    /// Connects to the server, without a login.
    pub(super) async fn reach(&self, scope: &ConnectionScope) -> Result<Box<dyn ByteStream>, ConnectFailure> {
        let mut tcp = self.route.dial(scope).await?;
        let Some(config) = &self.tls else { return Ok(Box::new(tcp)) };
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        let lost = |_| ConnectFailure::Unavailable("it ended the connection".to_owned());
        tcp.write_all_buf(&mut request).await.map_err(lost)?;
        // Exactly one byte: what follows belongs to TLS, whoever sent it.
        match tcp.read_u8().await.map_err(lost)? {
            b'S' => Ok(Box::new(self.route.secure(config, tcp, scope.deadline).await?)),
            b'N' => Err(ConnectFailure::Failed(
                "the server has no TLS; turn it on there (ssl = on), or set  tls = false  in the grant if it runs on this machine"
                    .to_owned(),
            )),
            _ => Err(ConnectFailure::Failed("it does not speak PostgreSQL's protocol".to_owned())),
        }
    }
}

impl Connector for PostgresConnector {
    fn connect(self: Arc<Self>, scope: ConnectionScope) -> Connecting {
        Box::pin(async move {
            let reached = tokio::time::timeout_at(scope.deadline, self.reach(&scope)).await;
            let late = |_| ConnectFailure::Unavailable("it does not answer in time".to_owned());
            let server = reached.map_err(late)??;
            if !self.credentials.is_read_only {
                scope.record.act();
            }
            let (guest, own) = tokio::io::duplex(BUFFER);
            let task = AbortOnDrop(tokio::spawn(Relay::new(self, scope, own, server).run()));
            Ok(Box::new(GuestEnd { stream: guest, _relay: task }) as Box<dyn ByteStream>)
        })
    }
}

/// The guest's end of a relay. The relay ends with it.
struct GuestEnd {
    stream: DuplexStream,
    _relay: AbortOnDrop<()>,
}

impl AsyncRead for GuestEnd {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for GuestEnd {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
