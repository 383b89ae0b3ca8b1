//! The operator's own endpoint: metrics, health and a console, on a loopback address. And the probes: health for the
//! machines that watch this one, on any address.

mod console;
mod gauges;
mod http;
mod live;
mod metrics_token;
mod process_stats;
mod state;

use std::net::TcpListener as StdListener;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::net::TcpListener;

use self::metrics_token::{MetricsToken, MetricsTokenError};
use self::state::AdminState;
use super::listening::{ListenError, listen};
use crate::config::AdminConfig;
use crate::gateway::Gateway;
use crate::store::{Replicas, SharedStore};
use crate::telemetry::Sink;

/// The endpoint before it serves.
pub(crate) struct AdminEndpoint {
    console: Option<StdListener>,
    probes: Option<StdListener>,
    /// What a request for metrics must bring to the probes.
    token: Option<MetricsToken>,
    state: Arc<AdminState>,
}

/// Why the endpoint cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminEndpointError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The token cannot be read.
    #[error(transparent)]
    Token(#[from] MetricsTokenError),
}

/// Tells the endpoint that belljar stops.
pub(crate) struct StopNotice(Arc<AdminState>);

impl StopNotice {
    /// From now on, `/readyz` says that belljar is not ready.
    pub(crate) fn begin(&self) {
        self.0.stop();
    }
}

impl AdminEndpoint {
    /// Listens on the addresses of `config`. `None` if it has none. Called before the second wall is raised: the wall
    /// forbids it, and the files of the process.
    ///
    /// # Errors
    /// An address is in use, or the token cannot be read.
    pub(crate) fn bind(config: &AdminConfig) -> Result<Option<Self>, AdminEndpointError> {
        if config.listen.is_none() && config.probes.is_none() {
            return Ok(None);
        }
        let token = config.metrics_token.as_deref().map(MetricsToken::read).transpose()?;
        let (console, probes) = (config.listen.map(listen).transpose()?, config.probes.map(listen).transpose()?);
        Ok(Some(Self { console, probes, token, state: Arc::new(AdminState::new()) }))
    }

    /// The sink whose events the metrics and the console count.
    pub(crate) fn observe(&self, sink: Sink) -> Sink {
        self.state.observe(sink)
    }

    /// The listeners.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &StdListener> {
        self.console.iter().chain(&self.probes)
    }

    /// How the endpoint learns that belljar stops.
    pub(crate) fn stop_notice(&self) -> StopNotice {
        StopNotice(Arc::clone(&self.state))
    }

    /// Serves in a task of its own, until the runtime ends.
    ///
    /// # Errors
    /// The runtime refuses the listener.
    pub(crate) fn start(
        self,
        gateway: Arc<Gateway>,
        store: Option<Arc<SharedStore>>,
        replicas: Arc<ArcSwap<Replicas>>,
    ) -> std::io::Result<()> {
        self.state.set_gateway(gateway, store, replicas);
        let (steps, live) = (Arc::clone(&self.state), Arc::clone(&self.state));
        tokio::spawn(async move { steps.count_steps().await });
        if let Some(listener) = self.probes {
            let listener = TcpListener::from_std(listener)?;
            tracing::info!("probes at http://{}/readyz and /livez", listener.local_addr()?);
            tokio::spawn(http::serve(listener, Arc::clone(&self.state), http::AdminPages::Probes(self.token)));
        }
        if let Some(listener) = self.console {
            let listener = TcpListener::from_std(listener)?;
            tracing::info!("the console is at http://{}/, metrics at /metrics", listener.local_addr()?);
            tokio::spawn(async move { live.live.run().await });
            tokio::spawn(http::serve(listener, self.state, http::AdminPages::All));
        }
        Ok(())
    }
}
