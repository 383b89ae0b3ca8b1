//! The metrics that are no events: what belljar does at the moment of the scrape.

use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::process_stats::ProcessStats;
use crate::gateway::GatewayStatus;

/// The values of one scrape.
pub(super) struct Gauges<'a> {
    pub(super) status: &'a GatewayStatus,
    pub(super) process: &'a ProcessStats,
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
            ("records_waiting", "Events that wait to be written to the record", status.records_waiting as u64),
        ] {
            own.register(name, help, gauge(value));
        }
        let used = "Memory that all calls and all waiting answers take";
        own.register_with_unit("memory_used", used, Unit::Bytes, gauge(status.memory_used));
        let limit = "The most memory that all calls and all waiting answers may take";
        own.register_with_unit("memory_limit", limit, Unit::Bytes, gauge(status.memory_limit));
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

/// A gauge with this value.
fn gauge(value: u64) -> Gauge<u64, AtomicU64> {
    let gauge = Gauge::default();
    gauge.set(value);
    gauge
}
