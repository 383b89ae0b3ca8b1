//! The endpoints of a mount, and what its calls share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};

use crate::grants::ambient::Ambient;
use crate::grants::network::connection_slots::ConnectionSlots;
use crate::grants::network::endpoint::TcpEndpoint;
use crate::grants::network::host::{Host, parse_host_and_port};
use crate::grants::network::route::Route;
use crate::grants::network::upstream_breaker::UpstreamBreaker;
use crate::grants::network::{self, Network};
use crate::grants::network_handover::{EndpointHandover, NetworkHandover};
use crate::grants::tcp::{self, TcpConnector};

/// The most hosts of one mount that can have a name.
const MAX_NAMES: usize = 1 << 14;

/// The endpoints of one mount.
pub(in crate::grants) struct SocketsMountState {
    /// Empty in a worker process.
    endpoints: Vec<TcpEndpoint>,
    /// The host, the port and the host memory of the endpoints of the front. Empty outside of a worker process.
    front_endpoints: Vec<(Host, u16, u64)>,
    /// The names of the endpoints, each once. The place of a name decides its invented address.
    names: Vec<String>,
    /// Limits the simultaneous connections of the mount, over all principals.
    pub(super) connection_slots: ConnectionSlots,
    pub(super) upstreams: UpstreamBreaker<(String, u16)>,
    network: Option<Arc<Network>>,
}

/// The names of the hosts, each once.
fn names_of<'a>(hosts: impl Iterator<Item = &'a Host>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for host in hosts {
        if let Host::Name(name) = host
            && !names.contains(name)
            && names.len() < MAX_NAMES
        {
            names.push(name.clone());
        }
    }
    names
}

impl SocketsMountState {
    /// The state of a mount with these endpoints.
    pub(in crate::grants) fn new(endpoints: Vec<TcpEndpoint>, ambient: &Ambient) -> Self {
        let names = names_of(endpoints.iter().map(|endpoint| &endpoint.host));
        let network = ambient.network.clone();
        Self {
            endpoints,
            front_endpoints: Vec::new(),
            names,
            connection_slots: ConnectionSlots::default(),
            upstreams: UpstreamBreaker::default(),
            network,
        }
    }

    /// True if calls can connect to nothing.
    pub(in crate::grants) fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.front_endpoints.is_empty()
    }

    /// The state of a mount in a worker process, where the front connects.
    pub(in crate::grants) fn of_worker(handover: &NetworkHandover) -> Self {
        let endpoint = |given: &EndpointHandover| match parse_host_and_port(&given.host) {
            Ok((host, None)) => Some((host, given.port, given.host_memory)),
            _ => None,
        };
        let front_endpoints: Vec<_> = handover.endpoints.iter().filter_map(endpoint).collect();
        Self {
            endpoints: Vec::new(),
            names: names_of(front_endpoints.iter().map(|(host, _, _)| host)),
            front_endpoints,
            connection_slots: ConnectionSlots::default(),
            upstreams: UpstreamBreaker::default(),
            network: None,
        }
    }

    /// The endpoints, for a worker process.
    pub(in crate::grants) fn handover(&self) -> Vec<EndpointHandover> {
        let endpoint = |endpoint: &TcpEndpoint| EndpointHandover {
            kind: endpoint.kind.to_owned(),
            host: endpoint.host.to_string(),
            port: endpoint.port,
            host_memory: endpoint.host_memory,
        };
        self.endpoints.iter().map(endpoint).collect()
    }

    /// In a worker process: the bytes of host memory that a connection needs besides its buffers. `None`: the front does not
    /// have this endpoint.
    pub(super) fn front_host_memory(&self, host: &Host, port: u16) -> Option<u64> {
        let found = self.front_endpoints.iter().find(|(own, at, _)| own == host && *at == port);
        found.map(|(_, _, bytes)| *bytes).or_else(|| (!network::needs_grant()).then_some(0))
    }

    /// Takes over what all principals of the mount share.
    pub(in crate::grants) fn share(&mut self, base: &Self) {
        self.connection_slots = base.connection_slots.clone();
    }

    /// The invented address of `name`. `None`: no endpoint has this name.
    pub(super) fn address_of(&self, name: &str) -> Option<IpAddr> {
        let at = u16::try_from(self.names.iter().position(|own| own == name)?).ok()?;
        let [high, low] = at.checked_add(1)?.to_be_bytes();
        // RFC 2544 reserves this network for benchmarks, so no server has such an address.
        Some(Ipv4Addr::new(198, 18, high, low).into())
    }

    /// The host for which `address` stands: a name if belljar invented the address, otherwise the address itself.
    pub(super) fn host_of(&self, address: IpAddr) -> Host {
        let canonical = address.to_canonical();
        let name = self.names.iter().find(|name| self.address_of(name) == Some(canonical));
        name.map_or(Host::Ip(canonical), |name| Host::Name(name.clone()))
    }

    /// The endpoint with this host and port.
    pub(super) fn find(&self, host: &Host, port: u16) -> Option<&TcpEndpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.host == *host && endpoint.port == port)
    }

    /// An endpoint for any host, when connections need no grant. `None` otherwise.
    pub(super) fn unguarded(&self, host: &Host, port: u16) -> Option<TcpEndpoint> {
        if network::needs_grant() {
            return None;
        }
        let network = self.network.clone()?;
        let route = Route {
            host: host.clone(),
            port,
            networks: vec![Ipv4Net::default().into(), Ipv6Net::default().into()],
            resolver: Arc::new(network.resolver().ok()?),
            network,
            flags: Default::default(),
        };
        let connector = Arc::new(TcpConnector { route, tls: None });
        Some(TcpEndpoint { kind: tcp::NAME, host: host.clone(), port, connector, host_memory: 0 })
    }
}
