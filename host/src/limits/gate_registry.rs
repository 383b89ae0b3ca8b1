//! The gates of all mounts, by name. Usage, debts, held turns and failures of a mount are kept here and not in the
//! mount. Therefore a configuration change does not reset them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::gate::Gate;
use super::mount_state::MountState;
use super::operation_breaker::OperationBreaker;
use crate::model::{Digest, Limits, MountName};

/// The most removed mounts whose state is kept. A mount that returns still has its debts, turns and failures.
const MAX_REMEMBERED: usize = 4096;

/// The gates of all mounts; see the module.
#[derive(Default)]
pub struct GateRegistry(Mutex<HashMap<MountName, RegisteredMount>>);

struct RegisteredMount {
    mount: Arc<MountState>,
    /// Replaced when the digest changes: other bytes fail differently.
    operations: Arc<OperationBreaker>,
    digest: Digest,
    limits: Limits,
}

impl GateRegistry {
    /// The gate of the mount `name`, with `limits` from now on. Limits on all calls of the mount together also change
    /// for calls that entered through earlier gates.
    pub fn gate(&self, name: &MountName, digest: &Digest, limits: &Limits) -> Gate {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REMEMBERED && !all.contains_key(name) {
            all.retain(|_, entry| Arc::strong_count(&entry.mount) > 1 || entry.mount.is_overdrawn(Instant::now()));
        }
        let entry = all.entry(name.clone()).or_insert_with(|| RegisteredMount {
            mount: Arc::new(MountState::new(name.clone(), limits)),
            operations: Arc::default(),
            digest: *digest,
            limits: limits.clone(),
        });
        if entry.digest != *digest {
            (entry.operations, entry.digest) = (Arc::default(), *digest);
        }
        if entry.limits != *limits {
            entry.operations.forget_limits();
            entry.mount.set_limits(limits);
            entry.limits = limits.clone();
        }
        Gate::of(Arc::clone(&entry.mount), Arc::clone(&entry.operations), limits.clone())
    }
}
