//! The state that the pages of the endpoint show.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

use super::gauges::{Gauges, ReplicaGauges};
use super::live::LiveRequests;
use super::process_stats::ProcessStats;
use crate::gateway::{Gateway, GatewayStatus};
use crate::store::{Replicas, SharedStore, StoreStatus};
use crate::telemetry::activity::{self, Activity};
use crate::telemetry::{Metrics, Sink};

/// Requests are welcome.
pub(super) const READY: &str = "ready";

/// The state that the pages of the endpoint show.
pub(super) struct AdminState {
    metrics: Arc<Metrics>,
    pub(super) activity: Arc<Activity>,
    pub(super) live: LiveRequests,
    pub(super) process: ProcessStats,
    gateway: OnceLock<Arc<Gateway>>,
    store: OnceLock<Arc<SharedStore>>,
    replicas: OnceLock<Arc<ArcSwap<Replicas>>>,
    is_stopping: AtomicBool,
}

impl AdminState {
    /// The state before any event. Opens files that the second wall forbids.
    pub(super) fn new() -> Self {
        let (metrics, activity, process) = (Arc::default(), Arc::<Activity>::default(), ProcessStats::open());
        let live = LiveRequests::new(Arc::clone(&activity));
        let (gateway, store, replicas) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let is_stopping = AtomicBool::new(false);
        Self { metrics, activity, live, process, gateway, store, replicas, is_stopping }
    }

    /// The gateway, once it is made.
    pub(super) fn gateway(&self) -> Option<&Arc<Gateway>> {
        self.gateway.get()
    }

    /// What the gateway does now. All zero before it is made.
    fn status(&self) -> GatewayStatus {
        self.gateway.get().map(|gateway| gateway.status()).unwrap_or_default()
    }

    /// Sets the gateway and the store of replicas, once.
    pub(super) fn set_gateway(
        &self,
        gateway: Arc<Gateway>,
        store: Option<Arc<SharedStore>>,
        replicas: Arc<ArcSwap<Replicas>>,
    ) {
        let _ = self.replicas.set(replicas);
        if let Some(store) = store {
            let _ = self.store.set(store);
        }
        let _ = self.gateway.set(gateway);
    }

    /// The state of the store of replicas. `None` if there is none.
    pub(super) fn store(&self) -> Option<StoreStatus> {
        self.store.get().map(|store| store.status())
    }

    /// See [`AdminState::state_word`].
    pub(super) fn word(&self) -> &'static str {
        self.state_word(&self.status())
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
        let store = self.store();
        let generation = self.gateway.get().map(|gateway| gateway.generation().name.clone()).unwrap_or_default();
        let replicas = self.replicas.get().map(|replicas| replicas.load_full()).unwrap_or_default();
        let replicas = ReplicaGauges { generation: &generation, store: store.as_ref(), replicas: &replicas };
        Gauges { status: &status, process: &self.process, replicas }.register(&mut registry);
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
        let mut about = serde_json::json!({
            "state": state, "configuration": status.configuration, "mounts": status.mounts,
            "version": env!("CARGO_PKG_VERSION"),
            "generation": self.gateway.get().map(|gateway| gateway.generation().name.clone()),
        });
        if let Some(store) = self.store() {
            let word = match &store.link.why {
                _ if store.link.is_up => "up".to_owned(),
                Some(why) => format!("down: it {why}"),
                None => "down: it is not reached yet".to_owned(),
            };
            about.as_object_mut().and_then(|about| about.insert("store".to_owned(), word.into()));
        }
        (state == READY, about)
    }
}
