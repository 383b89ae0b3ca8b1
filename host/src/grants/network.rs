//! What connections need: a DNS resolver, trusted certificates, and the addresses on which belljar itself listens.

pub mod address;
pub(super) mod connection_slots;
pub(super) mod dial;
pub(super) mod endpoint;
pub mod host;
pub mod networks;
pub(super) mod route;
pub mod store_dialer;
pub(super) mod tls;
pub(super) mod upstream_breaker;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Handle, TryCurrentError};

use super::outside::OutsideOpener;
use crate::model::Guard;

/// The most DNS answers that a mount's resolver caches.
const DNS_CACHE_SIZE: u64 = 64;

/// The most TLS sessions that a grant caches.
const TLS_SESSION_CACHE_SIZE: usize = 8;

/// The operator's settings for the network.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// DNS servers. Empty: the system's servers.
    pub dns: Vec<SocketAddr>,
    /// Trusted root certificates in PEM, in addition to the system's.
    pub roots: Option<Vec<u8>>,
    /// The addresses on which belljar itself listens.
    pub own_addresses: Vec<SocketAddr>,
}

/// Why the operator's root certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The file is not PEM.
    #[error("it is not a list of certificates in PEM ({0})")]
    NotPem(#[source] rustls::pki_types::pem::Error),
    /// The file has no certificate authority.
    #[error("it has no certificate of a certificate authority")]
    NoAuthority,
}

/// Why belljar cannot make a resolver.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// The resolver library refuses its settings.
    #[error("cannot resolve names: {0}")]
    Settings(#[source] NetError),
    /// The caller runs outside of a tokio runtime.
    #[error("cannot resolve names: {0}")]
    NoRuntime(#[source] TryCurrentError),
}

/// What connections need. Read before belljar enters the Landlock sandbox, because it lies in system files.
#[derive(Clone)]
pub struct Network {
    servers: ResolverConfig,
    hosts: Arc<hickory_resolver::Hosts>,
    roots: Arc<RootCertStore>,
    own: Vec<SocketAddr>,
    /// Connects to ports that the second wall hides from this process.
    outside: Option<Arc<dyn OutsideOpener>>,
}

impl Network {
    /// Reads the system's DNS servers, host names and root certificates. If the system has no certificates, uses
    /// Mozilla's list from the time of the build.
    ///
    /// # Errors
    /// When the operator's root certificates cannot be used.
    pub fn read(settings: &NetworkSettings) -> Result<Self, RootsError> {
        let servers = if settings.dns.is_empty() {
            let read = hickory_resolver::system_conf::read_system_conf();
            // Without DNS servers, IP addresses and names of `/etc/hosts` can still be reached.
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
            let own = own.map_err(RootsError::NotPem)?;
            let (added, _) = roots.add_parsable_certificates(own);
            if added == 0 {
                return Err(RootsError::NoAuthority);
            }
        }
        let hosts = Arc::new(hickory_resolver::Hosts::from_system().unwrap_or_default());
        Ok(Self { servers, hosts, roots: Arc::new(roots), own: settings.own_addresses.clone(), outside: None })
    }

    /// The same network, in which `outside` connects to ports that the second wall hides from this process.
    #[must_use]
    pub fn with_outside(&self, outside: &Arc<dyn OutsideOpener>) -> Self {
        Self { outside: Some(Arc::clone(outside)), ..self.clone() }
    }

    /// The ports of the DNS servers.
    pub fn dns_ports(&self) -> Vec<u16> {
        self.servers.name_servers().iter().flat_map(|server| server.connections.iter().map(|c| c.port)).collect()
    }

    /// A TLS configuration with the trusted certificates and an empty session cache. `protocols`: what the client offers
    /// by ALPN (RFC 7301).
    pub(in crate::grants) fn tls(&self, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder().with_root_certificates(Arc::clone(&self.roots)).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(TLS_SESSION_CACHE_SIZE);
        Arc::new(config)
    }

    /// A resolver for one mount. Mounts do not share a cache: otherwise one mount could learn which names another one
    /// looked up.
    pub(in crate::grants) fn resolver(&self) -> Result<Resolver, ResolverError> {
        let mut builder = TokioResolver::builder_with_config(self.servers.clone(), TokioRuntimeProvider::default());
        let options: &mut ResolverOpts = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = DNS_CACHE_SIZE;
        options.timeout = Duration::from_secs(2);
        options.attempts = 2;
        // `hosts` holds this file already. The Landlock sandbox hides it later.
        options.use_hosts_file = ResolveHosts::Never;
        let mut resolver = builder.build().map_err(ResolverError::Settings)?;
        resolver.set_hosts(Arc::clone(&self.hosts));
        let runtime = Handle::try_current().map_err(ResolverError::NoRuntime)?;
        Ok(Resolver { resolver, runtime })
    }

    /// True if belljar itself listens on `address`.
    pub(in crate::grants) fn is_own_address(&self, address: SocketAddr) -> bool {
        self.own.iter().any(|own| address::reaches_listener(address, *own))
    }
}

/// True while requests and connections need a grant: while [`Guard::Egress`] is on.
pub(in crate::grants) fn needs_grant() -> bool {
    Guard::Egress.is_on()
}

/// A byte stream to another machine, with or without TLS.
pub(in crate::grants) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// The DNS resolver of one mount.
pub(in crate::grants) struct Resolver {
    resolver: TokioResolver,
    /// Runs the connections to DNS servers, which outlive a call.
    runtime: Handle,
}

impl Resolver {
    /// The addresses of the host `name`. `None` if it has none.
    pub(in crate::grants) async fn resolve(&self, name: &str) -> Option<Vec<IpAddr>> {
        // The final dot turns off the system's search list.
        let name = format!("{name}.");
        let resolver = self.resolver.clone();
        let lookup = AbortOnDrop(self.runtime.spawn(async move { resolver.lookup_ip(name).await }));
        let found = lookup.await.ok()?;
        let addresses: Vec<IpAddr> = found.iter().flat_map(hickory_resolver::lookup_ip::LookupIp::iter).collect();
        (!addresses.is_empty()).then_some(addresses)
    }
}

/// A task that is aborted when this handle is dropped.
pub(in crate::grants) struct AbortOnDrop<T>(pub(in crate::grants) tokio::task::JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
