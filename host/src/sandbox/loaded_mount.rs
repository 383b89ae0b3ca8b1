//! Loaded mounts.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::component_code::ComponentCode;
use super::mount_id::MountId;
use super::principal_cache::PrincipalCache;
use super::spare::SpareSlot;
use super::worker::mount::WorkerMount;
use super::{descriptors, output};
use crate::grants::MountGrants;
use crate::model::{MountName, ReadError};

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

    /// The state of the wall of the worker process in which calls of the mount run, as words; "full" if all of it stands.
    /// Starts the worker if it does not run. `None` if calls run in this process.
    ///
    /// # Errors
    /// Why the worker does not start.
    pub async fn worker_wall(&self) -> Option<Result<String, ReadError>> {
        let record = self.mounts.upgrade()?.read().unwrap_or_else(PoisonError::into_inner).get(&self.id).cloned();
        Some(record?.worker.as_ref()?.wall().await)
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
    pub(super) code: Arc<ComponentCode>,
    pub(super) grants: Arc<MountGrants>,
    /// The pool of file descriptors, if the grants of the mount open files.
    pub(super) descriptors: Option<Arc<descriptors::DescriptorPool>>,
    /// The rate limit of its log lines.
    pub(super) log_rate: Arc<output::LogRate>,
    /// Its variants for principals that have secrets of their own.
    pub(super) principals: PrincipalCache<MountRecord>,
    /// Its spare instance.
    pub(super) spare: Arc<SpareSlot>,
    /// The worker process of the mount. `None`: its calls run in this process.
    pub(super) worker: Option<WorkerMount>,
}
