//! The host's side of a guest's TCP socket.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use wasmtime_wasi::p2::Pollable;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};

use super::call_state::{OpenConnection, PendingConnection};
use super::streams::GuestConnection;

/// A socket.
pub(super) struct TcpSocket {
    pub(super) family: IpAddressFamily,
    /// The address that the guest gave.
    pub(super) remote: Option<SocketAddr>,
    /// Bytes of host memory that the connection needs besides its buffers.
    pub(super) host_memory: u64,
    pub(super) state: SocketState,
}

/// What a socket is doing.
pub(super) enum SocketState {
    New,
    Connecting(PendingConnection),
    /// The guest has not asked for the result yet.
    Opened(Result<OpenConnection, ErrorCode>),
    Connected(Arc<GuestConnection>),
    Failed,
}

impl fmt::Debug for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "New",
            Self::Connecting(_) => "Connecting",
            Self::Opened(_) => "Opened",
            Self::Connected(_) => "Connected",
            Self::Failed => "Failed",
        })
    }
}

impl TcpSocket {
    pub(super) fn new(family: IpAddressFamily) -> Self {
        Self { family, remote: None, host_memory: 0, state: SocketState::New }
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let SocketState::Connecting(opening) = &mut self.state {
            let Poll::Ready(opened) = opening.as_mut().poll(cx) else { return Poll::Pending };
            self.state = SocketState::Opened(opened);
        }
        Poll::Ready(())
    }

    /// The result of connecting.
    pub(super) fn take_opened(&mut self) -> Result<OpenConnection, ErrorCode> {
        if self.poll_open(&mut Context::from_waker(Waker::noop())).is_pending() {
            return Err(ErrorCode::WouldBlock);
        }
        match std::mem::replace(&mut self.state, SocketState::Failed) {
            SocketState::Opened(opened) => opened,
            other => {
                self.state = other;
                Err(ErrorCode::NotInProgress)
            }
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for TcpSocket {
    async fn ready(&mut self) {
        std::future::poll_fn(|cx| self.poll_open(cx)).await;
    }
}
