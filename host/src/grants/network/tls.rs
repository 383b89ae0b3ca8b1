//! TLS to a destination: the server's certificate must be for the destination's host.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::host::Host;

/// Why a handshake failed.
pub(in crate::grants) enum HandshakeError {
    /// The host is not a name that certificates can have.
    Name,
    /// The handshake did not end in time.
    TimedOut,
    /// TLS refused, or the connection failed.
    Failed(io::Error),
}

impl HandshakeError {
    /// The error of the TLS library, if it refused.
    pub(in crate::grants) fn refusal(error: &io::Error) -> Option<&rustls::Error> {
        error.get_ref()?.downcast_ref()
    }
}

/// Performs the handshake with `host` over `tcp`, until `deadline`.
pub(in crate::grants) async fn handshake(
    config: &Arc<ClientConfig>,
    host: &Host,
    tcp: TcpStream,
    deadline: Instant,
) -> Result<TlsStream<TcpStream>, HandshakeError> {
    let name = match host {
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| HandshakeError::Name)?,
        Host::Ip(address) => ServerName::IpAddress((*address).into()),
    };
    let handshake = timeout_at(deadline, TlsConnector::from(Arc::clone(config)).connect(name, tcp)).await;
    handshake.map_err(|_| HandshakeError::TimedOut)?.map_err(HandshakeError::Failed)
}
