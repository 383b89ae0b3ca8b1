//! Checks with ordinary calls whether a provider conforms to the interfaces that it exports.

use std::sync::Arc;

use super::pipeline::{Gateway, MountCall};
use crate::catalog::{Mount, ServedMount};
use crate::interfaces::Exported;
use crate::interfaces::conformance::{ConformanceCaller, ConformanceReport, ConformanceRun};
use crate::model::{ReadError, Usage};
use crate::policy::Caller;

/// Makes the calls of the conformance checks.
struct Probe<'a> {
    gateway: &'a Gateway,
    call: MountCall<'a>,
}

impl ConformanceCaller for Probe<'_> {
    async fn call<F: Exported>(&mut self, function: F) -> (Result<F::Reply, ReadError>, Usage) {
        self.gateway.call_unchecked(self.call, function).await
    }
}

impl Gateway {
    /// Runs every conformance check on `mount`.
    pub async fn conformance(&self, caller: &Caller, mount: &Arc<Mount>) -> ConformanceReport {
        let snapshot = self.catalog.snapshot();
        let names = ServedMount { mount, snapshot: &snapshot };
        let probe = Probe { gateway: self, call: MountCall::new(caller, mount).as_probe() };
        ConformanceRun::new(probe, &names, mount.gate.limits()).run(mount.interfaces).await
    }
}
