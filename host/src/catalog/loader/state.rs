//! The result of a scan: the mounts that are or will be served, those that are not, and the facts about component
//! files.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::error::{BuildError, Fallback};
use super::plan::LoadPlan;
use super::source::{ComponentSourceError, ComponentStamp};
use crate::catalog::mount::Mount;
use crate::catalog::quarantine::QuarantinedMount;
use crate::catalog::unserved::{CompilingMount, RefusedMount, UnservedMount};
use crate::grants::Needs;
use crate::interfaces::Interfaces;
use crate::model::{Digest, MountName};
use crate::sandbox::LoadedMount;

/// The mounts that are or will be served, and those that are not.
#[derive(Default)]
pub(super) struct LoadState {
    pub(super) served: BTreeMap<MountName, Arc<Mount>>,
    pub(super) refused: Vec<RefusedMount>,
    /// What clients are told about the refused mounts: name, base, and the kind of reason.
    pub(super) unserved: Vec<UnservedMount>,
    pub(super) quarantined: Vec<QuarantinedMount>,
    /// Mounts whose components are not compiled yet.
    pub(super) pending: Vec<PendingCompile>,
    /// True if something failed that may succeed later.
    pub(super) may_succeed_later: bool,
}

impl LoadState {
    /// The mounts that are not served because their component is being compiled.
    pub(super) fn compiling(&self) -> Vec<CompilingMount> {
        let pending = self.pending.iter().map(|one| &one.plan).filter(|plan| !self.served.contains_key(&plan.name));
        pending.map(|plan| CompilingMount { name: plan.name.clone(), base: plan.base.clone() }).collect()
    }

    /// Records that `plan` cannot be built, and which mount is served in its place.
    pub(super) fn refuse(&mut self, plan: &LoadPlan, error: &BuildError, fallback: Fallback) {
        self.refused.push(RefusedMount {
            name: plan.name.to_string(),
            reason: fallback.explain(error),
            base: Some(plan.base.clone()),
            needs_restart: error.needs_restart(),
        });
        self.unserved.push(UnservedMount { name: plan.name.clone(), base: plan.base.clone(), reason: error.cause() });
    }
}

/// The facts about a component.
#[derive(Clone)]
pub(super) struct ComponentFacts {
    pub(super) digest: Digest,
    pub(super) usable_kinds: Vec<&'static str>,
    pub(super) needs: Arc<Needs>,
    pub(super) interfaces: Interfaces,
    pub(super) warning: Option<&'static str>,
}

impl ComponentFacts {
    /// The facts about the component of `mount`.
    pub(super) fn of(mount: &Mount) -> Self {
        let Mount { digest, interfaces, warning, .. } = *mount;
        Self { digest, usable_kinds: mount.usable_kinds.clone(), needs: Arc::clone(&mount.needs), interfaces, warning }
    }
}

/// A component that was read.
pub(super) struct FoundComponent {
    pub(super) facts: ComponentFacts,
    /// The bytes, if the component was just read and may need compiling.
    pub(super) bytes: Option<Vec<u8>>,
}

/// The contents of a file.
pub(super) type FileContents = Result<FoundComponent, ComponentSourceError>;

/// Code from the compile cache, loaded without grants, or the reason why it cannot be served. `None` if the component
/// must be compiled, or must not be loaded.
pub(super) type CachedCode = Option<Result<Arc<LoadedMount>, BuildError>>;

/// A plan, and the contents of its file.
pub(super) struct PlannedFile {
    pub(super) plan: LoadPlan,
    pub(super) contents: FileContents,
    pub(super) code: CachedCode,
}

/// A mount whose component waits to be compiled.
pub(super) struct PendingCompile {
    pub(super) plan: LoadPlan,
    pub(super) facts: ComponentFacts,
    /// The checked bytes, if memory allows. Otherwise they are read and compared again.
    pub(super) bytes: Option<Arc<[u8]>>,
}

/// A file that was read in an earlier scan.
pub(super) struct SeenFile {
    pub(super) stamp: ComponentStamp,
    /// The size limit that applied when it was read.
    pub(super) cap: u64,
    pub(super) facts: Result<ComponentFacts, ComponentSourceError>,
}

/// A component that could not be loaded.
pub(super) struct FailedLoad {
    pub(super) error: BuildError,
    /// The time of the next attempt. `None`: never.
    pub(super) until: Option<Instant>,
}

impl FailedLoad {
    /// True until the time of the next attempt.
    pub(super) fn is_active(&self) -> bool {
        self.until.is_none_or(|until| until > Instant::now())
    }
}
