//! The state that the pages of the endpoint show.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

use super::gauges::Gauges;
use super::live::LiveRequests;
use super::process_stats::ProcessStats;
use crate::gateway::{Gateway, GatewayStatus};
use crate::telemetry::activity::{self, Activity};
use crate::telemetry::{Metrics, Sink};

/// Requests are welcome.
const READY: &str = "ready";

/// The state that the pages of the endpoint show.
pub(super) struct AdminState {
    metrics: Arc<Metrics>,
    pub(super) activity: Arc<Activity>,
    pub(super) live: LiveRequests,
    pub(super) process: ProcessStats,
    gateway: OnceLock<Arc<Gateway>>,
    is_stopping: AtomicBool,
}

impl AdminState {
    /// The state before any event. Opens files that the second wall forbids.
    pub(super) fn new() -> Self {
        let (metrics, activity, process) = (Arc::default(), Arc::<Activity>::default(), ProcessStats::open());
        let live = LiveRequests::new(Arc::clone(&activity));
        let (gateway, is_stopping) = (OnceLock::new(), AtomicBool::new(false));
        Self { metrics, activity, live, process, gateway, is_stopping }
    }

    /// The gateway, once it is made.
    pub(super) fn gateway(&self) -> Option<&Arc<Gateway>> {
        self.gateway.get()
    }

    /// What the gateway does now. All zero before it is made.
    fn status(&self) -> GatewayStatus {
        self.gateway.get().map(|gateway| gateway.status()).unwrap_or_default()
    }

    /// Sets the gateway, once.
    pub(super) fn set_gateway(&self, gateway: Arc<Gateway>) {
        let _ = self.gateway.set(gateway);
    }

    /// From now on, requests are not welcome.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// The sink whose events the metrics and the console count.
    pub(super) fn observe(&self, sink: Sink) -> Sink {
        sink.with_observer(self.metrics.clone()).with_observer(self.activity.clone())
    }

    /// All metrics, in the text format of Prometheus.
    pub(super) fn metrics_text(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let status = self.status();
        Gauges { status: &status, process: &self.process }.register(&mut registry);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }

    /// Ends a step of the last hour from time to time, for ever.
    pub(super) async fn count_steps(&self) {
        loop {
            let status = self.status();
            self.activity.end_step(status.memory_used, status.turns_used);
            tokio::time::sleep(activity::STEP).await;
        }
    }

    /// Whether requests are welcome, in a word: `ready`, `loading` or `stopping`.
    pub(super) fn state_word(&self, status: &GatewayStatus) -> &'static str {
        match (self.is_stopping.load(Ordering::Relaxed), status.is_loaded) {
            (true, _) => "stopping",
            (false, false) => "loading",
            (false, true) => READY,
        }
    }

    /// True if requests are welcome, and what the page says of it.
    pub(super) fn readiness(&self) -> (bool, serde_json::Value) {
        let status = self.status();
        let state = self.state_word(&status);
        let about = serde_json::json!({
            "state": state, "configuration": status.configuration, "mounts": status.mounts,
            "version": env!("CARGO_PKG_VERSION"),
        });
        (state == READY, about)
    }
}
