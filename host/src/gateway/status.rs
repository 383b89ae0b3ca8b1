//! What the gateway does now, in numbers.

use super::pipeline::Gateway;

/// What the gateway does now, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayStatus {
    /// Mounts that are served.
    pub mounts: usize,
    /// Mounts that wait for `belljar trust`.
    pub quarantined: usize,
    /// Mounts whose component is compiled now.
    pub compiling: usize,
    /// Mounts and components that cannot be served.
    pub unserved: usize,
    /// True once every component that was there at the start is loaded or refused.
    pub is_loaded: bool,
    /// The number of the configuration since the start.
    pub configuration: u64,
    /// Bytes that all calls and all waiting answers take.
    pub memory_used: u64,
    /// The most bytes that they may take.
    pub memory_limit: u64,
    /// Calls that run now.
    pub turns_used: usize,
    /// The most calls that may run at once.
    pub turns: usize,
    /// Clients that wait for changes.
    pub subscribers: usize,
    /// Resources that they watch.
    pub watched: usize,
    /// Mounts for which this replica looks for all replicas whether watched resources changed.
    pub leases: usize,
    /// Events that wait to be written to the record.
    pub records_waiting: usize,
}

impl Gateway {
    /// What the gateway does now.
    pub fn status(&self) -> GatewayStatus {
        let snapshot = self.catalog.snapshot();
        let (turns_used, turns) = self.admission.turns();
        let (watched, subscribers) = self.subscriptions.counts();
        GatewayStatus {
            mounts: snapshot.mounts().len(),
            quarantined: snapshot.quarantined().len(),
            compiling: snapshot.compiling().len(),
            unserved: snapshot.unserved().len() + snapshot.refused().len(),
            is_loaded: self.catalog.is_loaded(),
            configuration: self.catalog.config_version(),
            memory_used: self.budget().used(),
            memory_limit: self.budget().cap(),
            turns_used,
            turns,
            subscribers,
            watched,
            leases: self.subscriptions.leases(),
            records_waiting: self.audit.waiting(),
        }
    }
}
