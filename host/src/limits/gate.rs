//! The gate of one mount, with one version of its limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::mount_state::MountState;
use super::operation::Operation;
use super::operation_breaker::{self, OperationBreaker};
use crate::model::{Limits, MountName, ReadError};
use crate::policy::CallerId;

/// Admission to one mount, with one version of its limits.
pub struct Gate {
    pub(super) state: Arc<GateState>,
    pub(super) operations: Arc<OperationBreaker>,
}

pub(super) struct GateState {
    pub(super) mount: Arc<MountState>,
    pub(super) limits: Limits,
    /// The limits of the calls of tools.
    pub(super) tool_limits: Limits,
}

impl Gate {
    /// A gate outside of any registry; see [`GateRegistry`](super::gate_registry::GateRegistry).
    pub fn new(name: MountName, limits: Limits) -> Self {
        Self::of(Arc::new(MountState::new(name, &limits)), Arc::default(), limits)
    }

    pub(super) fn of(mount: Arc<MountState>, operations: Arc<OperationBreaker>, limits: Limits) -> Self {
        let tool_limits = limits.of_tools();
        Self { state: Arc::new(GateState { mount, limits, tool_limits }), operations }
    }

    /// The mount's limits.
    pub fn limits(&self) -> &Limits {
        &self.state.limits
    }

    /// The limits of the calls of the mount's tools.
    pub fn tool_limits(&self) -> &Limits {
        &self.state.tool_limits
    }

    /// Charges processor time to the mount that was spent on a result after its call had ended.
    pub fn charge_cpu(&self, time: Duration) {
        self.state.mount.share.charge(Instant::now(), time);
    }

    /// Records the result of an admitted call for the circuit breaker.
    pub fn record_result(&self, origin: CallOrigin, operation: &dyn Operation, error: Option<&ReadError>) {
        if let Some(pause) = self.operations.record_result(operation, origin.breaker_scope, error, Instant::now) {
            tracing::warn!(
                mount = %self.state.mount.name,
                "{} failed again; next attempt in {}",
                operation_breaker::log_text(operation),
                humantime::format_duration(pause)
            );
        }
    }
}

/// The origin of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOrigin {
    /// The connection, the session or the principal. Callers with the fewest running calls come first.
    pub caller: CallerId,
    /// The scope of the circuit breaker. The connection or session if the permissions of a call depend on the caller,
    /// otherwise 0 for all callers.
    pub breaker_scope: u64,
}
