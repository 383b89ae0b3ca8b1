//! Connects to the store that replicas share. The rules are those of a grant: every address is checked after the DNS
//! lookup, and addresses that are not public must be named.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ipnet::IpNet;
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::dial::{Destination, DialError, dial};
use super::host::Host;
use super::tls::{HandshakeError, handshake};
use super::{Network, Resolver};
use crate::store::{DialFailure, StoreDialer, StoreStream};

/// See the module.
pub struct TcpStoreDialer {
    network: Arc<Network>,
    /// Made for the first connection: a dialer is made before the tokio runtime, and a resolver needs one.
    resolver: OnceCell<Resolver>,
    host: Host,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    networks: Vec<IpNet>,
}

impl TcpStoreDialer {
    /// A dialer for `host` and `port`. Needs no tokio runtime.
    pub fn new(network: Arc<Network>, (host, port): (Host, u16), has_tls: bool, networks: Vec<IpNet>) -> Self {
        let tls = has_tls.then(|| network.tls(&[]));
        Self { network, resolver: OnceCell::new(), host, port, tls, networks }
    }

    async fn connect(&self, deadline: Instant) -> Result<Box<dyn StoreStream>, DialFailure> {
        let Self { network, host, port, networks, .. } = self;
        let fail = |why: String| DialFailure(format!("cannot be reached: {why}"));
        let resolver = self.resolver.get_or_try_init(async || network.resolver()).await;
        let resolver = resolver.map_err(|error| fail(error.to_string()))?;
        let destination = Destination { host, port: *port, networks, own_ports: false };
        let tcp = dial(network, resolver, destination, deadline).await.map_err(|error| match error {
            DialError::Prohibited(address) => DialFailure(format!(
                "has the address {address}, which is not public; if that is right, add  networks = [\"{address}\"]  to [replicas]"
            )),
            // Names are looked up as they are: no domain of this machine is added.
            DialError::NotFound if !host.to_string().contains('.') => {
                fail(format!("\"{host}\" has no address; write the whole name, such as \"{host}.example.internal\""))
            }
            error => fail(error.to_string()),
        })?;
        let Some(config) = &self.tls else { return Ok(Box::new(tcp)) };
        let tls = handshake(config, host, tcp, deadline).await.map_err(|error| match error {
            HandshakeError::Name => fail(format!("\"{host}\" cannot be in a certificate")),
            HandshakeError::TimedOut => fail("the TLS handshake takes too long".to_owned()),
            HandshakeError::Failed(error) => match HandshakeError::refusal(&error) {
                Some(rustls::Error::InvalidCertificate(why)) => DialFailure(format!(
                    "has a certificate that is not trusted ({why}); to trust its issuer, set  ca  under [network]"
                )),
                Some(why) => fail(format!("TLS: {why}")),
                None => fail(DialError::from(&error).to_string()),
            },
        })?;
        Ok(Box::new(tls))
    }
}

impl StoreDialer for TcpStoreDialer {
    fn dial(&self, deadline: Instant) -> BoxFuture<'_, Result<Box<dyn StoreStream>, DialFailure>> {
        self.connect(deadline).boxed()
    }
}
