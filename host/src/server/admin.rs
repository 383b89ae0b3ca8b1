//! The operator's own endpoint: metrics and health, on a loopback address.

mod gauges;
mod http;
mod process_stats;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use self::gauges::Gauges;
use self::process_stats::ProcessStats;
use super::listening::{ListenError, listen};
use crate::gateway::Gateway;
use crate::telemetry::{Metrics, Sink};

/// The state that the pages of the endpoint show.
struct AdminState {
    metrics: Arc<Metrics>,
    process: ProcessStats,
    gateway: OnceLock<Arc<Gateway>>,
    is_stopping: AtomicBool,
}

/// The endpoint before it serves.
pub(crate) struct AdminEndpoint {
    listener: StdListener,
    state: Arc<AdminState>,
}

/// Tells the endpoint that belljar stops.
pub(crate) struct StopNotice(Arc<AdminState>);

impl StopNotice {
    /// From now on, `/readyz` says that belljar is not ready.
    pub(crate) fn begin(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
    }
}

impl AdminEndpoint {
    /// Listens on `address`. Called before the second wall is raised: the wall forbids it, and the files of the process.
    ///
    /// # Errors
    /// The address is in use.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let listener = listen(address)?;
        let (metrics, process) = (Arc::default(), ProcessStats::open());
        let (gateway, is_stopping) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { listener, state: Arc::new(AdminState { metrics, process, gateway, is_stopping }) })
    }

    /// The sink whose events the metrics count.
    pub(crate) fn observe(&self, sink: Sink) -> Sink {
        sink.with_observer(self.state.metrics.clone())
    }

    /// How the endpoint learns that belljar stops.
    pub(crate) fn stop_notice(&self) -> StopNotice {
        StopNotice(Arc::clone(&self.state))
    }

    /// Serves in a task of its own, until the runtime ends.
    ///
    /// # Errors
    /// The runtime refuses the listener.
    pub(crate) fn start(self, gateway: Arc<Gateway>) -> std::io::Result<()> {
        let _ = self.state.gateway.set(gateway);
        let listener = TcpListener::from_std(self.listener)?;
        tracing::info!("metrics and health are at http://{}/metrics, /livez and /readyz", listener.local_addr()?);
        tokio::spawn(http::serve(listener, self.state));
        Ok(())
    }
}

impl AdminState {
    /// All metrics, in the text format of Prometheus.
    fn metrics_text(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let status = self.gateway.get().map(|gateway| gateway.status()).unwrap_or_default();
        Gauges { status: &status, process: &self.process }.register(&mut registry);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }

    /// Whether requests are welcome, and why not. `Err`: they are not.
    fn readiness(&self) -> Result<serde_json::Value, serde_json::Value> {
        let status = self.gateway.get().map(|gateway| gateway.status()).unwrap_or_default();
        let about = |state: &str| {
            serde_json::json!({
                "state": state, "configuration": status.configuration, "mounts": status.mounts,
                "version": env!("CARGO_PKG_VERSION"),
            })
        };
        match (self.is_stopping.load(Ordering::Relaxed), status.is_loaded) {
            (true, _) => Err(about("stopping")),
            (false, false) => Err(about("loading")),
            (false, true) => Ok(about("ready")),
        }
    }
}
