//! Connects to a destination that the operator named: resolves its host once, checks every address, and connects to one
//! of the checked addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::host::Host;
use super::{Network, Resolver, address};
use crate::grants::outside::OutsideOpener;
use crate::model::Guard;

/// The most addresses of one host that are tried.
const MAX_ADDRESSES: usize = 6;

/// Where to connect, and which addresses the operator allows for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::grants) struct Destination<'a> {
    pub(in crate::grants) host: &'a Host,
    pub(in crate::grants) port: u16,
    /// Addresses that are allowed although they are not public.
    pub(in crate::grants) networks: &'a [IpNet],
    /// True if belljar's own ports are allowed.
    pub(in crate::grants) own_ports: bool,
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::grants) enum DialError {
    /// No address of the host is public, and the operator named none of them. Holds the first address.
    #[error("its address {0} is not public")]
    Prohibited(IpAddr),
    /// belljar itself listens on the address.
    #[error("belljar itself listens there")]
    Own,
    /// The name servers did not answer in time.
    #[error("the name servers do not answer")]
    LookupTimedOut,
    /// The host has no address.
    #[error("its name has no address")]
    NotFound,
    /// The host refused the connection.
    #[error("it refuses connections")]
    Refused,
    /// The host did not answer in time.
    #[error("it does not answer in time")]
    TimedOut,
    /// No route leads to the host.
    #[error("no route leads to it")]
    Unroutable,
    /// The host ended the connection.
    #[error("it ended the connection")]
    Ended,
    /// Anything else.
    #[error("it cannot be reached")]
    Unavailable,
}

/// True if belljar may connect to `address`, which was found for `host`. `networks`: the networks that the operator named.
pub(in crate::grants) fn allows_address(address: IpAddr, host: &Host, networks: &[IpNet]) -> bool {
    if address::is_public(address) || !Guard::Address.is_on() {
        return true;
    }
    let canonical = address::canonical(address);
    // The operator named the address itself, or this machine by its name, or the network.
    *host == Host::Ip(address)
        || (host.is_localhost() && canonical.is_loopback())
        || networks.iter().any(|net| net.contains(&address) || net.contains(&canonical))
}

/// Connects to `destination` until `deadline`.
pub(in crate::grants) async fn dial(
    network: &Network,
    resolver: &Resolver,
    destination: Destination<'_>,
    deadline: Instant,
) -> Result<TcpStream, DialError> {
    let Destination { host, port, networks, own_ports } = destination;
    let found = timeout_at(deadline, resolve(resolver, host)).await.map_err(|_| DialError::LookupTimedOut)??;
    let (allowed, refused): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(|address| allows_address(*address, host, networks));
    let addresses: Vec<SocketAddr> =
        allowed.into_iter().map(|address| SocketAddr::new(address, port)).take(MAX_ADDRESSES).collect();
    if addresses.is_empty() {
        return Err(refused.first().map_or(DialError::NotFound, |first| DialError::Prohibited(*first)));
    }
    let is_own = |address: &SocketAddr| network.is_own_address(*address) && !own_ports && Guard::OwnPort.is_on();
    let addresses: Vec<SocketAddr> = addresses.into_iter().filter(|address| !is_own(address)).collect();
    if addresses.is_empty() {
        return Err(DialError::Own);
    }
    let tcp = connect(&addresses, network.outside.as_ref(), deadline).await?;
    // The peer's address may have another spelling than the checked one. No byte has been sent yet.
    if tcp.peer_addr().is_ok_and(|peer| is_own(&peer)) {
        return Err(DialError::Own);
    }
    // Send each part of a request at once: the guest waits for the response.
    let _ = tcp.set_nodelay(true);
    Ok(tcp)
}

/// Resolves `host`.
async fn resolve(resolver: &Resolver, host: &Host) -> Result<Vec<IpAddr>, DialError> {
    match host {
        Host::Ip(address) => Ok(vec![*address]),
        // RFC 6761, 6.3: do not ask a DNS server.
        host if host.is_localhost() => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        Host::Name(name) => resolver.resolve(name).await.ok_or(DialError::NotFound),
    }
}

/// Connects to the first of `addresses` that answers. Divides the remaining time among the remaining addresses.
async fn connect(
    addresses: &[SocketAddr],
    outside: Option<&Arc<dyn OutsideOpener>>,
    deadline: Instant,
) -> Result<TcpStream, DialError> {
    let mut last = DialError::Unavailable;
    for (at, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let remaining = u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        let until = now + deadline.saturating_duration_since(now) / remaining;
        match timeout_at(until, connect_to(*address, outside)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = (&error).into(),
            Err(_) => last = DialError::TimedOut,
        }
    }
    Err(last)
}

/// Connects to one address. If the second wall hides its port, asks `outside` to begin the connection.
async fn connect_to(address: SocketAddr, outside: Option<&Arc<dyn OutsideOpener>>) -> io::Result<TcpStream> {
    #[expect(clippy::disallowed_methods, reason = "an address that a grant allows and that was just checked")]
    let connected = TcpStream::connect(address).await;
    let outside = match (&connected, outside) {
        (Err(error), Some(outside)) if error.kind() == io::ErrorKind::PermissionDenied => Arc::clone(outside),
        _ => return connected,
    };
    let socket = tokio::task::spawn_blocking(move || outside.connect(address)).await.map_err(io::Error::other)??;
    let stream = TcpStream::from_std(socket.into())?;
    // connect(2): the socket becomes writable when the connection is made or refused.
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

impl From<&io::Error> for DialError {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Self::Unroutable,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Self::Ended,
            _ => Self::Unavailable,
        }
    }
}
