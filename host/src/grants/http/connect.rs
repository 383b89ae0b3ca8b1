//! Connects to an origin, with TLS if its scheme wants it.

use std::net::IpAddr;

use tokio::time::Instant;
use wasmtime_wasi_http::Error;

use super::origin::{Origin, Scheme};
use super::origin_grant::OriginGrant;
use crate::grants::network::dial::{DialError, dial};
use crate::grants::network::tls::{HandshakeError, handshake};
use crate::grants::network::{ByteStream, Network, Resolver};

/// Why belljar could not connect.
pub(super) enum ConnectError {
    /// No address of the host is public, and the grant names none of them. Holds the first address.
    Prohibited(IpAddr),
    /// belljar itself listens on the address.
    Own,
    /// Resolving or connecting failed.
    Failed(Error),
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<DialError> for ConnectError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Prohibited(address) => Self::Prohibited(address),
            DialError::Own => Self::Own,
            error => Self::Failed(dial_error(error)),
        }
    }
}

/// A connection, and true if both sides agreed on HTTP/2.
pub(super) type UpstreamConnection = (Box<dyn ByteStream>, bool);

/// Connects to `origin`, with the TLS handshake, until `deadline`. `grant` decides which addresses are allowed.
pub(super) async fn connect(
    network: &Network,
    resolver: &Resolver,
    grant: &OriginGrant,
    origin: &Origin,
    deadline: Instant,
) -> Result<UpstreamConnection, ConnectError> {
    let tcp = dial(network, resolver, grant.destination(origin), deadline).await?;
    if origin.scheme == Scheme::Http {
        return Ok((Box::new(tcp), false));
    }
    let Some(config) = &grant.tls else { return Err(Error::ConfigurationError.into()) };
    let tls = handshake(config, &origin.host, tcp, deadline).await.map_err(|error| tls_error(&error))?;
    let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(tls), is_h2))
}

fn dial_error(error: DialError) -> Error {
    match error {
        DialError::LookupTimedOut => Error::DnsTimeout,
        DialError::NotFound => Error::DnsError { rcode: None, info_code: None },
        DialError::Refused => Error::ConnectionRefused,
        DialError::TimedOut => Error::ConnectionTimeout,
        DialError::Unroutable => Error::DestinationIpUnroutable,
        DialError::Ended => Error::ConnectionTerminated,
        DialError::Prohibited(_) | DialError::Own => Error::DestinationIpProhibited,
        DialError::Unavailable => Error::DestinationUnavailable,
    }
}

fn tls_error(error: &HandshakeError) -> Error {
    let io = match error {
        HandshakeError::Name => return Error::HttpRequestUriInvalid,
        HandshakeError::TimedOut => return Error::ConnectionTimeout,
        HandshakeError::Failed(io) => io,
    };
    match HandshakeError::refusal(io) {
        Some(rustls::Error::InvalidCertificate(_)) => Error::TlsCertificateError,
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some(u8::from(*alert)), alert_message: Some(format!("{alert:?}")) }
        }
        Some(_) => Error::TlsProtocolError,
        None => dial_error(io.into()),
    }
}
