//! The metrics that are no events: what belljar does at the moment of the scrape.

use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::process_stats::ProcessStats;
use crate::gateway::GatewayStatus;
use crate::store::{Replicas, StoreStatus};

/// The values of one scrape.
pub(super) struct Gauges<'a> {
    pub(super) status: &'a GatewayStatus,
    pub(super) process: &'a ProcessStats,
    pub(super) replicas: ReplicaGauges<'a>,
}

/// The values that are about replicas.
pub(super) struct ReplicaGauges<'a> {
    /// The generation of the configuration.
    pub(super) generation: &'a str,
    /// The store that replicas share.
    pub(super) store: Option<&'a StoreStatus>,
    /// The replicas that live.
    pub(super) replicas: &'a Replicas,
}

impl Gauges<'_> {
    /// Adds the values to a registry.
    pub(super) fn register(&self, registry: &mut Registry) {
        let status = self.status;
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        let own = registry.sub_registry_with_prefix("belljar");
        own.register("build", "The version of belljar", version);
        for (name, help, value) in [
            ("mounts", "Mounts that are served", status.mounts as u64),
            ("mounts_quarantined", "Mounts that wait for belljar trust", status.quarantined as u64),
            ("mounts_compiling", "Mounts whose component is compiled now", status.compiling as u64),
            ("mounts_unserved", "Mounts and components that cannot be served", status.unserved as u64),
            ("configuration_generation", "The number of the configuration since the start", status.configuration),
            ("turns_used", "Calls that run now", status.turns_used as u64),
            ("turns_limit", "The most calls that may run at once", status.turns as u64),
            ("subscribers", "Clients that wait for changes", status.subscribers as u64),
            ("watched_resources", "Resources that clients watch", status.watched as u64),
            ("watch_leases", "Mounts for which this replica looks for all replicas", status.leases as u64),
            ("records_waiting", "Events that wait to be written to the record", status.records_waiting as u64),
        ] {
            own.register(name, help, gauge(value));
        }
        let used = "Memory that all calls and all waiting answers take";
        own.register_with_unit("memory_used", used, Unit::Bytes, gauge(status.memory_used));
        let limit = "The most memory that all calls and all waiting answers may take";
        own.register_with_unit("memory_limit", limit, Unit::Bytes, gauge(status.memory_limit));
        self.replicas.register(own);
        // The names that Prometheus gives for every process.
        let process = registry.sub_registry_with_prefix("process");
        let cpu = Counter::<f64, AtomicU64>::default();
        cpu.inc_by(self.process.cpu().as_secs_f64());
        process.register_with_unit("cpu", "Processor time of this process", Unit::Seconds, cpu);
        if let Some(bytes) = self.process.resident_bytes() {
            process.register_with_unit("resident_memory", "Resident memory of this process", Unit::Bytes, gauge(bytes));
        }
        let start = Gauge::<f64, AtomicU64>::default();
        let since = self.process.start().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        start.set(since.as_secs_f64());
        process.register_with_unit("start_time", "Start of this process, since the Unix epoch", Unit::Seconds, start);
    }
}

impl ReplicaGauges<'_> {
    fn register(&self, own: &mut Registry) {
        let generation = Info::new([("generation", self.generation.to_owned())]);
        own.register("configuration", "The generation of the configuration that is served", generation);
        let Some(store) = self.store else { return };
        register_store(own, store);
        let family = Family::<[(&'static str, String); 1], Gauge<u64, AtomicU64>>::default();
        for (generation, count) in &self.replicas.generations {
            family.get_or_create(&[("generation", generation.clone())]).set(*count as u64);
        }
        own.register("replicas", "The replicas that live, by the generation of their configuration", family);
    }
}

/// Adds the values of the store that replicas share.
fn register_store(own: &mut Registry, store: &StoreStatus) {
    own.register("store_up", "1 if the store of [replicas] answers, otherwise 0", gauge(store.link.is_up.into()));
    for (name, help, value) in [
        ("store_questions", "Questions to the store of [replicas]", store.link.asked),
        ("store_failures", "Questions that the store of [replicas] did not answer", store.link.failed),
        ("quota_leases", "Requests with a rate that units set aside here covered", store.quotas.from_leases),
        ("quota_alone", "Requests with a rate that this replica counted alone", store.quotas.alone),
    ] {
        let counter = Counter::<u64, AtomicU64>::default();
        counter.inc_by(value);
        own.register(name, help, counter);
    }
}

/// A gauge with this value.
fn gauge(value: u64) -> Gauge<u64, AtomicU64> {
    let gauge = Gauge::default();
    gauge.set(value);
    gauge
}
