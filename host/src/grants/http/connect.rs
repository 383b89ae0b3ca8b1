//! Connects to a host: resolves it once, checks every address, and connects to one of the checked addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::Error;

use super::origin::{Host, Origin, Scheme};
use super::origin_grant::OriginGrant;
use crate::grants::network::{Network, Resolver};
use crate::model::Guard;

/// The most addresses of one host that are tried.
const MAX_ADDRESSES: usize = 6;

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

/// A byte stream to an upstream, with or without TLS.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection, and true if both sides agreed on HTTP/2.
pub(super) type UpstreamConnection = (Box<dyn ByteStream>, bool);

/// Resolves `host`.
async fn resolve(resolver: &Resolver, host: &Host) -> Result<Vec<IpAddr>, Error> {
    match host {
        Host::Ip(address) => Ok(vec![*address]),
        // RFC 6761, 6.3: do not ask a DNS server.
        host if host.is_localhost() => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        Host::Name(name) => {
            let found = resolver.resolve(name).await;
            found.ok_or(Error::DnsError { rcode: None, info_code: None })
        }
    }
}

/// Connects to `origin`, with the TLS handshake, until `deadline`. `grant` decides which addresses are allowed.
pub(super) async fn connect(
    network: &Network,
    resolver: &Resolver,
    grant: &OriginGrant,
    origin: &Origin,
    deadline: Instant,
) -> Result<UpstreamConnection, ConnectError> {
    let found = timeout_at(deadline, resolve(resolver, &origin.host)).await.map_err(|_| Error::DnsTimeout)??;
    let (allowed, refused): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(|address| grant.allows_address(*address, &origin.host));
    let addresses: Vec<SocketAddr> =
        allowed.into_iter().map(|address| SocketAddr::new(address, origin.port)).take(MAX_ADDRESSES).collect();
    if addresses.is_empty() {
        return Err(refused
            .first()
            .map_or(ConnectError::Failed(Error::DestinationNotFound), |first| ConnectError::Prohibited(*first)));
    }
    let is_own =
        |address: &SocketAddr| network.is_own_address(*address) && !grant.own_ports() && Guard::OwnPort.is_on();
    let addresses: Vec<SocketAddr> = addresses.into_iter().filter(|address| !is_own(address)).collect();
    if addresses.is_empty() {
        return Err(ConnectError::Own);
    }
    let tcp = connect_tcp(&addresses, deadline).await?;
    // The peer's address may have another spelling than the checked one. No byte has been sent yet.
    if tcp.peer_addr().is_ok_and(|peer| is_own(&peer)) {
        return Err(ConnectError::Own);
    }
    // Send each part of a request at once: the guest waits for the response.
    let _ = tcp.set_nodelay(true);
    if origin.scheme == Scheme::Http {
        return Ok((Box::new(tcp), false));
    }
    let Some(config) = &grant.tls else { return Err(Error::ConfigurationError.into()) };
    let name = match &origin.host {
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Error::HttpRequestUriInvalid)?,
        Host::Ip(address) => ServerName::IpAddress((*address).into()),
    };
    let handshake = timeout_at(deadline, TlsConnector::from(Arc::clone(config)).connect(name, tcp)).await;
    let tls = handshake.map_err(|_| Error::ConnectionTimeout)?.map_err(|error| tls_error(&error))?;
    let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(tls), is_h2))
}

/// Connects to the first of `addresses` that answers. Divides the remaining time among the remaining addresses.
async fn connect_tcp(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Error> {
    let mut last = Error::DestinationUnavailable;
    for (at, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let remaining = u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        let until = now + deadline.saturating_duration_since(now) / remaining;
        #[expect(clippy::disallowed_methods, reason = "an address that a grant allows and that was just checked")]
        match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = connect_error(&error),
            Err(_) => last = Error::ConnectionTimeout,
        }
    }
    Err(last)
}

fn connect_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Error::DestinationIpUnroutable,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Error::ConnectionTerminated,
        _ => Error::DestinationUnavailable,
    }
}

fn tls_error(error: &io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => Error::TlsCertificateError,
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some(u8::from(*alert)), alert_message: Some(format!("{alert:?}")) }
        }
        Some(_) => Error::TlsProtocolError,
        None => connect_error(error),
    }
}
