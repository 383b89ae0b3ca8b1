//! Connects for the grant: reaches the server, and starts the relay between the guest and the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::relay::Relay;
use super::server::DatabaseServer;
use crate::grants::network::endpoint::{ConnectFailure, Connecting, ConnectionScope, Connector};
use crate::grants::network::{AbortOnDrop, ByteStream};

/// Bytes that wait between the guest and belljar, in each direction.
const BUFFER: usize = 32 << 10;

/// Connects to one database.
pub(super) struct PostgresConnector(pub(super) Arc<DatabaseServer>);

impl Connector for PostgresConnector {
    fn connect(self: Arc<Self>, scope: ConnectionScope) -> Connecting {
        Box::pin(async move {
            let reached = tokio::time::timeout_at(scope.end(), self.0.reach(&scope)).await;
            let late = |_| ConnectFailure::Unavailable("it does not answer in time".to_owned());
            let server = reached.map_err(late)??;
            if !self.0.credentials.is_read_only {
                scope.record.act();
            }
            let (guest, own) = tokio::io::duplex(BUFFER);
            let task = AbortOnDrop(tokio::spawn(Relay::new(Arc::clone(&self.0), scope, own, server).run()));
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
