//! Routes: the way of a grant to its destination, for connections that guests open by `wasi:sockets`.

use std::sync::Arc;

use ipnet::IpNet;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use super::dial::{Destination, DialError, dial};
use super::endpoint::{ConnectFailure, ConnectionScope};
use super::host::Host;
use super::tls::{HandshakeError, handshake};
use super::{Network, Resolver};
use crate::model::command;

/// The way of one grant to its destination, for connections that guests open by `wasi:sockets`.
pub(in crate::grants) struct Route {
    pub(in crate::grants) host: Host,
    pub(in crate::grants) port: u16,
    pub(in crate::grants) networks: Vec<IpNet>,
    pub(in crate::grants) network: Arc<Network>,
    pub(in crate::grants) resolver: Arc<Resolver>,
    /// The words of `belljar grant MOUNT` that name the grant: `--tcp`, `db.internal:5432`.
    pub(in crate::grants) flags: [String; 2],
}

impl Route {
    /// Connects for the call `scope`.
    pub(in crate::grants) async fn dial(&self, scope: &ConnectionScope) -> Result<TcpStream, ConnectFailure> {
        let Self { host, port, networks, .. } = self;
        let destination = Destination { host, port: *port, networks, own_ports: false };
        dial(&self.network, &self.resolver, destination, scope.end()).await.map_err(|error| match error {
            DialError::Prohibited(address) => {
                let address = address.to_string();
                let own = self.flags.iter().map(String::as_str);
                let words = ["grant", scope.mount.as_str()].into_iter().chain(own).chain(["--network", &address]);
                ConnectFailure::Denied(format!("its address is not public; to allow it, run: {}", command::line(words)))
            }
            DialError::Own => ConnectFailure::Denied("nothing allows this: belljar itself listens there".to_owned()),
            error => ConnectFailure::Unavailable(error.to_string()),
        })
    }

    /// Performs a TLS handshake with the destination.
    pub(in crate::grants) async fn secure(
        &self,
        config: &Arc<ClientConfig>,
        tcp: TcpStream,
        deadline: Instant,
    ) -> Result<TlsStream<TcpStream>, ConnectFailure> {
        handshake(config, &self.host, tcp, deadline).await.map_err(|error| match error {
            HandshakeError::Name => ConnectFailure::Failed(format!("TLS: \"{}\" cannot be in a certificate", self.host)),
            HandshakeError::TimedOut => ConnectFailure::Unavailable("the TLS handshake takes too long".to_owned()),
            HandshakeError::Failed(error) => match HandshakeError::refusal(&error) {
                Some(rustls::Error::InvalidCertificate(why)) => ConnectFailure::Failed(format!(
                    "TLS: the certificate of the server is not trusted ({why}); to trust its issuer, set  ca  under [network]"
                )),
                Some(why) => ConnectFailure::Failed(format!("TLS: {why}")),
                None => ConnectFailure::Unavailable(DialError::from(&error).to_string()),
            },
        })
    }
}
