//! The peer of requests that do not come through a service of rmcp. Its notifications go nowhere.

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, InitializeRequestParams, ServerJsonRpcMessage};
use rmcp::service::{Peer, RunningService};
use rmcp::transport::Transport;

use super::handler::Handler;

/// A peer that discards each message. It ends when this value is dropped.
pub struct DetachedPeer {
    peer: Peer<RoleServer>,
    _running: RunningService<RoleServer, Handler>,
}

impl DetachedPeer {
    /// Only a running service of rmcp has a peer. This starts a service that receives no request.
    pub fn new(handler: Handler) -> Self {
        Self::with(handler, None)
    }

    /// As [`DetachedPeer::new`], for a client that sent `greeting` as its `initialize` request.
    pub(super) fn with(handler: Handler, greeting: Option<InitializeRequestParams>) -> Self {
        let running = rmcp::service::serve_directly(handler, NullTransport, greeting);
        Self { peer: running.peer().clone(), _running: running }
    }

    /// The peer.
    pub fn peer(&self) -> &Peer<RoleServer> {
        &self.peer
    }
}

/// A transport that receives nothing and discards each sent message.
struct NullTransport;

impl Transport<RoleServer> for NullTransport {
    type Error = std::convert::Infallible;

    fn send(&mut self, _: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        std::future::pending().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
