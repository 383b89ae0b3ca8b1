//! The operator's own endpoint: metrics, health and a console, on a loopback address.

mod console;
mod gauges;
mod http;
mod live;
mod process_stats;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use self::gauges::Gauges;
use self::live::LiveRequests;
use self::process_stats::ProcessStats;
use super::listening::{ListenError, listen};
use crate::gateway::{Gateway, GatewayStatus};
use crate::telemetry::activity::{self, Activity};
use crate::telemetry::{Metrics, Sink};

/// Requests are welcome.
const READY: &str = "ready";

/// The state that the pages of the endpoint show.
struct AdminState {
    metrics: Arc<Metrics>,
    activity: Arc<Activity>,
    live: LiveRequests,
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
        let (metrics, activity, process) = (Arc::default(), Arc::<Activity>::default(), ProcessStats::open());
        let live = LiveRequests::new(Arc::clone(&activity));
        let (gateway, is_stopping) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { listener, state: Arc::new(AdminState { metrics, activity, live, process, gateway, is_stopping }) })
    }

    /// The sink whose events the metrics and the console count.
    pub(crate) fn observe(&self, sink: Sink) -> Sink {
        sink.with_observer(self.state.metrics.clone()).with_observer(self.state.activity.clone())
    }

    /// The listener.
    pub(crate) fn listener(&self) -> &StdListener {
        &self.listener
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
        tracing::info!("the console is at http://{}/, metrics at /metrics", listener.local_addr()?);
        let (steps, live) = (Arc::clone(&self.state), Arc::clone(&self.state));
        tokio::spawn(async move { steps.count_steps().await });
        tokio::spawn(async move { live.live.run().await });
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

    /// Ends a step of the last hour from time to time, for ever.
    async fn count_steps(&self) {
        loop {
            let status = self.gateway.get().map(|gateway| gateway.status()).unwrap_or_default();
            self.activity.end_step(status.memory_used, status.turns_used);
            tokio::time::sleep(activity::STEP).await;
        }
    }

    /// Whether requests are welcome, in a word: `ready`, `loading` or `stopping`.
    fn state_word(&self, status: &GatewayStatus) -> &'static str {
        match (self.is_stopping.load(Ordering::Relaxed), status.is_loaded) {
            (true, _) => "stopping",
            (false, false) => "loading",
            (false, true) => READY,
        }
    }

    /// True if requests are welcome, and what the page says of it.
    fn readiness(&self) -> (bool, serde_json::Value) {
        let status = self.gateway.get().map(|gateway| gateway.status()).unwrap_or_default();
        let state = self.state_word(&status);
        let about = serde_json::json!({
            "state": state, "configuration": status.configuration, "mounts": status.mounts,
            "version": env!("CARGO_PKG_VERSION"),
        });
        (state == READY, about)
    }
}
