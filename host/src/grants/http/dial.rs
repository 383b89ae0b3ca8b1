//! From a host to a connection: resolved once, every address judged, and the very address connected to that was judged.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::Error;

use super::origin::{Host, Origin, Scheme};
use super::rule::Rule;
use crate::model::Guard;

/// Addresses of one host that are tried.
const ADDRESSES: usize = 6;

/// Answers that a mount's resolver remembers.
const NAMES: u64 = 64;

/// TLS sessions that a grant remembers.
const SESSIONS: usize = 8;

/// What the operator says about the network.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name servers in place of the system's.
    pub dns: Vec<SocketAddr>,
    /// Certificates (PEM) that are trusted beside the system's.
    pub roots: Option<Vec<u8>>,
    /// Where belljar itself listens.
    pub own: Vec<SocketAddr>,
}

/// What connections are made with: read before the second wall stands, because it lies in files of the system's.
pub struct Network {
    servers: ResolverConfig,
    hosts: Arc<hickory_resolver::Hosts>,
    roots: Arc<RootCertStore>,
    own: Vec<SocketAddr>,
}

impl Network {
    /// Reads the system's name servers, host names and certificates. Where it has no certificates, Mozilla's are used, as
    /// they were when belljar was built.
    ///
    /// # Errors
    /// When the system's files or the operator's certificates cannot be read; says which.
    pub fn read(settings: &Settings) -> Result<Self, String> {
        let servers = if settings.dns.is_empty() {
            let read = hickory_resolver::system_conf::read_system_conf();
            // Without name servers, addresses and this machine's own names can still be reached.
            read.map_or_else(
                |error| {
                    tracing::warn!("no name servers: /etc/resolv.conf cannot be used ({error}); name some:  [network]  dns = [\"ADDRESS\"]");
                    ResolverConfig::from_parts(None, Vec::new(), Vec::new())
                },
                |(servers, _)| servers,
            )
        } else {
            let server = |address: &SocketAddr| {
                let [mut udp, mut tcp] = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
                (udp.port, tcp.port) = (address.port(), address.port());
                NameServerConfig::new(address.ip(), true, vec![udp, tcp])
            };
            ResolverConfig::from_parts(None, Vec::new(), settings.dns.iter().map(server).collect())
        };
        let mut roots = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        if let Some(pem) = &settings.roots {
            let own = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
            let own = own.map_err(|error| format!("it is not a list of certificates in PEM ({error})"))?;
            let (added, _) = roots.add_parsable_certificates(own);
            if added == 0 {
                return Err("it has no certificate of an authority".to_owned());
            }
        }
        let hosts = Arc::new(hickory_resolver::Hosts::from_system().unwrap_or_default());
        Ok(Self { servers, hosts, roots: Arc::new(roots), own: settings.own.clone() })
    }

    /// The ports of the name servers.
    pub fn dns_ports(&self) -> Vec<u16> {
        self.servers.name_servers().iter().flat_map(|server| server.connections.iter().map(|c| c.port)).collect()
    }

    /// TLS with the certificates that are trusted, and no session yet.
    pub(super) fn tls(&self) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder().with_root_certificates(Arc::clone(&self.roots)).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        Arc::new(config)
    }

    /// A resolver for one mount: what one asked for is not remembered for another.
    pub(super) fn resolver(&self) -> Result<Resolver, String> {
        let mut builder = TokioResolver::builder_with_config(self.servers.clone(), TokioRuntimeProvider::default());
        let options: &mut ResolverOpts = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = NAMES;
        options.timeout = Duration::from_secs(2);
        options.attempts = 2;
        // Read already; inside the wall it could not be.
        options.use_hosts_file = ResolveHosts::Never;
        let mut resolver = builder.build().map_err(|error| format!("cannot resolve names: {error}"))?;
        resolver.set_hosts(Arc::clone(&self.hosts));
        let runtime = Handle::try_current().map_err(|error| format!("cannot resolve names: {error}"))?;
        Ok(Resolver { resolver, runtime })
    }

    /// Whether `address` is one that belljar listens on.
    fn is_own(&self, address: SocketAddr) -> bool {
        self.own.iter().any(|own| super::address::leads_to(address, *own))
    }
}

/// A mount's resolver.
pub(super) struct Resolver {
    resolver: TokioResolver,
    /// Where its connections to name servers live: longer than any call.
    runtime: Handle,
}

impl Resolver {
    /// The addresses of `host`.
    async fn resolve(&self, host: &Host) -> Result<Vec<IpAddr>, Error> {
        let name = match host {
            Host::Ip(address) => return Ok(vec![*address]),
            // RFC 6761, 6.3: no name server is asked.
            host if host.is_localhost() => {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            // With its final dot: no search list of the system's is tried.
            Host::Name(name) => format!("{name}."),
        };
        let resolver = self.resolver.clone();
        let lookup = Abort(self.runtime.spawn(async move { resolver.lookup_ip(name).await }));
        let failed = || Error::DnsError { rcode: None, info_code: None };
        let found = lookup.await.map_err(|_| failed())?;
        let addresses: Vec<IpAddr> = found.iter().flat_map(hickory_resolver::lookup_ip::LookupIp::iter).collect();
        if addresses.is_empty() { Err(failed()) } else { Ok(addresses) }
    }
}

/// A task that ends when nobody waits for it any more.
struct Abort<T>(tokio::task::JoinHandle<T>);

impl<T> Future for Abort<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why there is no connection.
pub(super) enum Unreached {
    /// The host's addresses are not public, and no grant names them; one of them.
    Prohibited(IpAddr),
    /// belljar itself listens there.
    Own,
    /// It did not work.
    Failed(Error),
}

impl From<Error> for Unreached {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A stream of bytes to an upstream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, and whether HTTP/2 was agreed on.
pub(super) type Connected = (Box<dyn Stream>, bool);

/// Connects to `origin` as `rule` allows, TLS included, by `by` at the latest.
pub(super) async fn connect(
    network: &Network,
    resolver: &Resolver,
    rule: &Rule,
    origin: &Origin,
    by: Instant,
) -> Result<Connected, Unreached> {
    let found = timeout_at(by, resolver.resolve(&origin.host)).await.map_err(|_| Error::DnsTimeout)??;
    let (allowed, refused): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(|address| rule.reaches(*address, &origin.host));
    let addresses: Vec<SocketAddr> =
        allowed.into_iter().map(|address| SocketAddr::new(address, origin.port)).take(ADDRESSES).collect();
    if addresses.is_empty() {
        return Err(refused
            .first()
            .map_or(Unreached::Failed(Error::DestinationNotFound), |first| Unreached::Prohibited(*first)));
    }
    let is_own = |address: &SocketAddr| network.is_own(*address) && !rule.own_ports() && Guard::OwnPort.is_on();
    let addresses: Vec<SocketAddr> = addresses.into_iter().filter(|address| !is_own(address)).collect();
    if addresses.is_empty() {
        return Err(Unreached::Own);
    }
    let tcp = tcp(&addresses, by).await?;
    // What was connected to may have another spelling than what was judged. Nothing has been sent yet.
    if tcp.peer_addr().is_ok_and(|peer| is_own(&peer)) {
        return Err(Unreached::Own);
    }
    // A request and its answer are waited for, not a stream of small pieces.
    let _ = tcp.set_nodelay(true);
    if origin.scheme == Scheme::Http {
        return Ok((Box::new(tcp), false));
    }
    let Some(config) = &rule.tls else { return Err(Error::ConfigurationError.into()) };
    let name = match &origin.host {
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Error::HttpRequestUriInvalid)?,
        Host::Ip(address) => ServerName::IpAddress((*address).into()),
    };
    let shaken = timeout_at(by, TlsConnector::from(Arc::clone(config)).connect(name, tcp)).await;
    let tls = shaken.map_err(|_| Error::ConnectionTimeout)?.map_err(|error| tls_error(&error))?;
    let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(tls), is_h2))
}

/// The first of `addresses` that answers; each gets its part of the time.
async fn tcp(addresses: &[SocketAddr], by: Instant) -> Result<TcpStream, Error> {
    let mut last = Error::DestinationUnavailable;
    for (at, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let rest = u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        let until = now + by.saturating_duration_since(now) / rest;
        #[expect(clippy::disallowed_methods, reason = "an address that a grant allows, just judged")]
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
