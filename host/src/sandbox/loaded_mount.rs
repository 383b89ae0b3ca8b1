//! Loaded mounts.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use serde::{Deserialize, Serialize};

use super::output::GuestOutput;
use super::principal_cache::PrincipalCache;
use super::store_data::StoreData;
use super::worker::mount::WorkerMount;
use super::{descriptors, output};
use crate::grants::MountGrants;
use crate::interfaces::Exports;
use crate::model::MountName;

/// The identifier of a loaded mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MountId(pub(super) u64);

impl MountId {
    /// The identifier of no mount: calls to it are refused.
    pub fn none() -> Self {
        Self(0)
    }

    /// The identifier as a number, unique in this process for all time.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A handle of a loaded mount. The mount stays loaded until the handle is dropped, even if another version replaced it.
/// Dropping it does not stop running calls.
pub struct LoadedMount {
    pub(super) id: MountId,
    pub(super) mounts: Weak<MountRecords>,
}

impl LoadedMount {
    /// A handle of no mount: calls to it are refused.
    pub fn none() -> Self {
        Self { id: MountId::none(), mounts: Weak::new() }
    }

    /// A handle for the calls of a scripted executor, for tests.
    #[cfg(test)]
    pub(crate) fn numbered(number: u64) -> Self {
        Self { id: MountId(number), mounts: Weak::new() }
    }

    /// The identifier for calls.
    pub fn id(&self) -> MountId {
        self.id
    }
}

impl Drop for LoadedMount {
    fn drop(&mut self) {
        if let Some(mounts) = self.mounts.upgrade() {
            let removed = mounts.write().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
            // Dropped outside of the lock: it may close files.
            drop(removed);
        }
    }
}

/// All loaded mounts.
pub(super) type MountRecords = RwLock<HashMap<MountId, Arc<MountRecord>>>;

/// The sandbox's record of a loaded mount.
pub(super) struct MountRecord {
    pub(super) name: MountName,
    pub(super) exports: Arc<Exports<StoreData>>,
    pub(super) grants: MountGrants,
    /// The pool of file descriptors, if the grants of the mount open files.
    pub(super) descriptors: Option<Arc<descriptors::DescriptorPool>>,
    /// The rate limit of its log lines.
    pub(super) log_rate: Arc<output::LogRate>,
    /// Its variants for principals that have secrets of their own.
    pub(super) principals: PrincipalCache<MountRecord>,
    /// The compiled code, if calls may run in a worker process.
    pub(super) code: Option<Arc<File>>,
    /// The worker process of the mount. `None`: its calls run in this process.
    pub(super) worker: Option<WorkerMount>,
}

impl MountRecord {
    /// Logs what a guest printed, as often as the mount may.
    pub(super) fn log(&self, output: &GuestOutput) {
        for line in self.log_rate.limit(output.lines(self.grants.redactor())) {
            tracing::info!(target: "belljar::guest", mount = %self.name, "printed {line}");
        }
    }
}
