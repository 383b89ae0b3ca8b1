//! Connects for the grant: dials, and speaks TLS if the grant says so.

use std::sync::Arc;

use rustls::ClientConfig;

use crate::grants::network::ByteStream;
use crate::grants::network::endpoint::{Connecting, ConnectionScope, Connector};
use crate::grants::network::route::Route;

/// Connects to one server.
pub(in crate::grants) struct TcpConnector {
    pub(in crate::grants) route: Route,
    /// Has its own session cache: no other grant may resume this grant's TLS sessions.
    pub(in crate::grants) tls: Option<Arc<ClientConfig>>,
}

impl Connector for TcpConnector {
    fn connect(self: Arc<Self>, scope: ConnectionScope) -> Connecting {
        Box::pin(async move {
            let tcp = self.route.dial(&scope).await?;
            // The protocol is unknown, so anything that the guest sends may change something.
            scope.record.act();
            let Some(config) = &self.tls else { return Ok(Box::new(tcp) as Box<dyn ByteStream>) };
            Ok(Box::new(self.route.secure(config, tcp, scope.end()).await?) as Box<dyn ByteStream>)
        })
    }
}
