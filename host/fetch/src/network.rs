//! Opens connections: resolves a name, judges every address, and connects to a judged address. Names, servers and root
//! certificates are read before the wall is raised, because they lie in system files.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use belljar_fetch_protocol::FailureKind;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Hosts, TokioResolver};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::address;
use crate::failure::{Outcome, failure};
use crate::stream::Stream;
use crate::url::Origin;

/// The most addresses of one host that are tried.
const MAX_ADDRESSES: usize = 4;

/// The longest attempt to connect to one address, its TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of the system and of the operator.
pub(crate) struct Network {
    servers: ResolverConfig,
    hosts: Arc<Hosts>,
    tls: Arc<ClientConfig>,
}

/// Opens connections.
pub(crate) struct Dialer {
    resolver: TokioResolver,
    tls: TlsConnector,
}

/// A connection, and whether it leads to the public internet.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) is_public: bool,
}

impl Network {
    /// Reads the DNS servers, host names and root certificates. If the system has no certificates, uses Mozilla's list
    /// from the time of the build.
    pub(crate) fn read(settings: &belljar_fetch_protocol::Network) -> Outcome<Self> {
        let servers = if settings.dns.is_empty() {
            // Without DNS servers, IP addresses and names of `/etc/hosts` can still be reached.
            hickory_resolver::system_conf::read_system_conf()
                .map_or_else(|_| ResolverConfig::from_parts(None, Vec::new(), Vec::new()), |(servers, _)| servers)
        } else {
            let server = |address: &SocketAddr| {
                let [mut udp, mut tcp] = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
                (udp.port, tcp.port) = (address.port(), address.port());
                NameServerConfig::new(address.ip(), true, vec![udp, tcp])
            };
            ResolverConfig::from_parts(None, Vec::new(), settings.dns.iter().map(server).collect())
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        if let Some(pem) = &settings.roots {
            let own: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect();
            if roots.add_parsable_certificates(own).0 == 0 {
                let problem = "the operator's root certificates hold no certificate of an authority";
                return Err(failure(FailureKind::Request, problem, "write certificates in PEM into that file"));
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(|error| {
                failure(FailureKind::Request, format!("TLS cannot be set up: {error}"), "report this as a bug")
            })?;
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let hosts = Arc::new(Hosts::from_system().unwrap_or_default());
        Ok(Self { servers, hosts, tls: Arc::new(tls) })
    }

    /// The ports of the DNS servers.
    pub(crate) fn dns_ports(&self) -> Vec<u16> {
        self.servers.name_servers().iter().flat_map(|server| server.connections.iter().map(|c| c.port)).collect()
    }

    /// Opens connections on the runtime that runs.
    pub(crate) fn dialer(&self) -> Outcome<Dialer> {
        let mut builder = TokioResolver::builder_with_config(self.servers.clone(), TokioRuntimeProvider::default());
        let options: &mut ResolverOpts = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.timeout = Duration::from_secs(2);
        options.attempts = 2;
        // `hosts` holds this file already.
        options.use_hosts_file = ResolveHosts::Never;
        let mut resolver = builder.build().map_err(|error| {
            failure(FailureKind::Network, format!("names cannot be resolved: {error}"), "check /etc/resolv.conf")
        })?;
        resolver.set_hosts(Arc::clone(&self.hosts));
        Ok(Dialer { resolver, tls: TlsConnector::from(Arc::clone(&self.tls)) })
    }
}

impl Dialer {
    /// Connects to `origin`. `any_address`: addresses that are not public are allowed too.
    pub(crate) async fn connect(&self, origin: &Origin, any_address: bool) -> Outcome<Connection> {
        let found = self.resolve(origin).await?;
        let allowed: Vec<IpAddr> = found.iter().copied().filter(|ip| any_address || address::is_public(*ip)).collect();
        if allowed.is_empty() {
            let first = found.first().map(IpAddr::to_string).unwrap_or_default();
            return Err(failure(
                FailureKind::Address,
                format!("the server sends to \"{origin}\", whose address {first} is not public"),
                "name that server as the source if you trust it",
            ));
        }
        // The first reason is shown: the addresses that a name server prefers come first.
        let mut reason = None;
        for ip in allowed.into_iter().take(MAX_ADDRESSES) {
            match tokio::time::timeout(CONNECT_TIMEOUT, self.connect_to(origin, ip)).await {
                Ok(Ok(stream)) => return Ok(Connection { stream, is_public: address::is_public(ip) }),
                Ok(Err(error)) => reason.get_or_insert(error.to_string()),
                Err(_) => reason.get_or_insert(format!("{ip} does not answer in {} s", CONNECT_TIMEOUT.as_secs())),
            };
        }
        let reason = reason.unwrap_or_default();
        Err(failure(
            FailureKind::Network,
            format!("cannot connect to \"{origin}\": {reason}"),
            "check the name, the network and the certificates of this machine",
        ))
    }

    async fn connect_to(&self, origin: &Origin, ip: IpAddr) -> std::io::Result<Stream> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the judged address of a server that the operator or the registry names"
        )]
        let tcp = TcpStream::connect(SocketAddr::new(ip, origin.port)).await?;
        let _ = tcp.set_nodelay(true);
        if !origin.secure {
            return Ok(Stream::Plain(tcp));
        }
        let name = ServerName::try_from(origin.host.clone()).map_err(std::io::Error::other)?;
        Ok(Stream::Tls(Box::new(self.tls.connect(name, tcp).await?)))
    }

    async fn resolve(&self, origin: &Origin) -> Outcome<Vec<IpAddr>> {
        if let Some(ip) = origin.ip() {
            return Ok(vec![ip]);
        }
        // RFC 6761, 6.3: do not ask a DNS server.
        if origin.is_loopback() {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        // The final dot turns off the system's search list.
        let found = self.resolver.lookup_ip(format!("{}.", origin.host)).await;
        let addresses: Vec<IpAddr> = found.map(|found| found.iter().collect()).unwrap_or_default();
        if addresses.is_empty() {
            let problem = format!("the host \"{}\" has no address", origin.host);
            return Err(failure(FailureKind::Network, problem, "check its spelling and the network of this machine"));
        }
        Ok(addresses)
    }
}
