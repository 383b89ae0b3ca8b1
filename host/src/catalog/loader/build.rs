//! Builds the mount for a plan, from the plan, the contents of its file, and the mount that was served before.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{BuildError, Fallback};
use super::plan::LoadPlan;
use super::source::ComponentSourceError;
use super::state::{ComponentFacts, FailedLoad, FoundComponent, LoadState, PendingCompile, PlannedFile};
use crate::catalog::current::Catalog;
use crate::catalog::mount::Mount;
use crate::config::{self, Config, Isolation};
use crate::grants::{GrantConfig, MountGrants, OutsideOpener};
use crate::model::{Digest, text};
use crate::sandbox::{LoadedMount, Place, Sandbox};

/// The most bytes of components that are kept in memory while they wait to be compiled.
const PENDING_BYTES: usize = 64 << 20;

/// The files and ports that this process can still open by name, after landlock (the second wall) restricted it.
#[derive(Clone)]
pub struct LandlockScope {
    /// Directories, including all directories below.
    pub directories: Vec<PathBuf>,
    /// TCP ports.
    pub ports: Vec<u16>,
    /// Opens more for mounts in worker processes. `None`: nothing more can be opened.
    pub outside: Option<Arc<dyn OutsideOpener>>,
}

impl LandlockScope {
    /// Opens what this process cannot, for the mount of `plan`.
    fn outside(&self, plan: &LoadPlan) -> Option<&Arc<dyn OutsideOpener>> {
        let has_worker = plan.isolation.has_worker();
        self.outside.as_ref().filter(|outside| has_worker && outside.is_running())
    }

    /// Checks that everything that these grants need can be opened.
    fn check(&self, grants: &GrantConfig, plan: &LoadPlan, config: &Config) -> Result<(), BuildError> {
        let secrets = config.ambient.secrets.directories(grants.secret_names());
        let own = grants.own_directories(&config.ambient);
        let kernel = grants.kernel_paths();
        let outside = self.outside(plan);
        let read = if outside.is_some() { Vec::new() } else { grants.directories(&config.ambient) };
        for wanted in read.into_iter().chain(kernel).chain(secrets).chain(own) {
            if !self.directories.iter().any(|open| wanted.starts_with(open)) {
                let shown = text::excerpt(&wanted.to_string_lossy(), 200);
                return Err(BuildError::Landlock(format!("\"{shown}\"")));
            }
        }
        let ports = config.mounts.get(&plan.name).map(config::MountConfig::ports).unwrap_or_default();
        // The first port also needs name servers and certificates, which are read before the wall is raised.
        let connects_outside = outside.is_some() && config.ambient.network.is_some();
        match ports.iter().find(|port| !connects_outside && !self.ports.contains(port)) {
            Some(port) => Err(BuildError::Landlock(format!("TCP port {port}"))),
            None => Ok(()),
        }
    }
}

/// Builds mounts under one configuration.
pub(super) struct Builder<'a> {
    pub(super) config: &'a Config,
    pub(super) catalog: &'a Catalog,
    pub(super) sandbox: &'a Sandbox,
    /// `None` if landlock does not restrict this process.
    pub(super) scope: Option<&'a LandlockScope>,
    /// Components that could not be loaded.
    pub(super) failed: &'a HashMap<Digest, FailedLoad>,
}

/// The state before a scan.
#[derive(Clone, Copy)]
pub(super) struct PreviousState<'a> {
    pub(super) state: &'a LoadState,
    /// Its mounts, by component.
    pub(super) loaded: &'a HashMap<Digest, Arc<Mount>>,
}

impl Builder<'_> {
    /// Decides which mount is served for a plan, and adds it to `next`.
    pub(super) fn place_mount(&self, before: PreviousState<'_>, next: &mut LoadState, file: PlannedFile) {
        let PlannedFile { plan, contents, code } = file;
        let old = before.state.served.get(&plan.name);
        let FoundComponent { facts, bytes } = match contents {
            Ok(found) => found,
            Err(error) => {
                if error == ComponentSourceError::BeingWritten && self.keep_old(next, old, &plan) {
                    // The file is read again when the writer has finished.
                    next.may_succeed_later = true;
                    return;
                }
                return self.refuse(next, old, &plan, &BuildError::Source(error));
            }
        };
        // This check covers the bytes that are loaded: a later compilation compares its bytes with this digest.
        if let Some(one) = plan.quarantine(&facts.digest, self.config) {
            next.quarantined.push(one);
            return;
        }
        if let Some(same) =
            old.filter(|old| old.digest == facts.digest && old.warning == facts.warning && plan.is_plan_of(old))
        {
            next.served.insert(plan.name.clone(), Arc::clone(same));
            return;
        }
        if let Some(mount) = before.loaded.get(&facts.digest) {
            return self.build(next, old, &plan, &facts, &mount.loaded);
        }
        if let Some(failed) = self.failed.get(&facts.digest).filter(|failed| failed.is_active()) {
            next.may_succeed_later |= failed.until.is_some();
            return self.refuse(next, old, &plan, &failed.error);
        }
        match code {
            Some(Ok(loaded)) => self.build(next, old, &plan, &facts, &loaded),
            Some(Err(error)) => self.refuse(next, old, &plan, &error),
            None => {
                // Until the component is compiled, the earlier mount stays.
                self.keep_old(next, old, &plan);
                let pending: usize = next.pending.iter().flat_map(|one| &one.bytes).map(|bytes| bytes.len()).sum();
                let bytes = bytes.filter(|bytes| pending + bytes.len() <= PENDING_BYTES).map(Into::into);
                next.pending.push(PendingCompile { plan, facts, bytes });
            }
        }
    }

    /// Builds the mount from a loaded component. If its grants cannot be opened, the `old` mount stays, provided that
    /// it has no more grants than the plan.
    pub(super) fn build(
        &self,
        next: &mut LoadState,
        old: Option<&Arc<Mount>>,
        plan: &LoadPlan,
        facts: &ComponentFacts,
        loaded: &LoadedMount,
    ) {
        let grants = match self.configure_grants(plan) {
            Ok(grants) => grants,
            Err(error) => {
                next.may_succeed_later = true;
                let kept = old.filter(|old| old.base == plan.base && plan.still_grants(old) && self.may_use(plan, old));
                return match kept {
                    Some(old) => {
                        next.refuse(plan, &error, Fallback::Unchanged);
                        next.served.insert(plan.name.clone(), Arc::clone(old));
                    }
                    None => next.refuse(plan, &error, Fallback::Nothing),
                };
            }
        };
        let holds = grants.kinds();
        let has_principal_secrets = grants.per_principal().is_some();
        for unusable in holds.iter().filter(|kind| !facts.usable_kinds.contains(kind)) {
            tracing::warn!(mount = %plan.name, "holds a grant that its component cannot use: {unusable}");
        }
        if let Some(warning) = facts.warning {
            tracing::warn!(mount = %plan.name, "{warning}");
        }
        let all = self.grants(plan).map(|grants| grants.directories(&self.config.ambient)).unwrap_or_default();
        // Directories on a drive that may hang are not watched.
        let directories = if grants.may_stall() { Vec::new() } else { all };
        let place = match plan.isolation {
            Isolation::None => Place::Here,
            Isolation::Shared if plan.configured_grants.is_empty() => Place::SharedWorker(&plan.limits),
            Isolation::Shared | Isolation::Mount => Place::Worker(&plan.limits),
            Isolation::Call => Place::WorkerForCall(&plan.limits),
        };
        let loaded = match self.sandbox.load_again(&plan.name, loaded, grants, place) {
            Ok(loaded) => loaded,
            Err(why) => return next.refuse(plan, &BuildError::Component(why.to_string()), Fallback::Nothing),
        };
        let key = plan.key(&facts.digest);
        let base_mount = Mount::plain(plan.name.clone(), &plan.base, plan.limits.clone());
        let mount = Mount {
            file: plan.file.clone(),
            digest: facts.digest,
            gate: self.catalog.gates().gate(&plan.name, &facts.digest, &plan.limits),
            loaded,
            configured_grants: plan.configured_grants.clone(),
            ask: plan.ask,
            cache: plan.cache,
            search: plan.search,
            tool_prefix: plan.tool_prefix.clone(),
            powers: self.grants(plan).map(GrantConfig::powers).unwrap_or_default(),
            view: self.grants(plan).map(|grants| grants.view.clone()).unwrap_or_default(),
            lists_skills: plan.skills,
            isolation: plan.isolation,
            granted_kinds: holds,
            usable_kinds: facts.usable_kinds.clone(),
            needs: Arc::clone(&facts.needs),
            missing_needs: self.grants(plan).unwrap_or(&GrantConfig::default()).missing(facts.needs.all()),
            interfaces: facts.interfaces,
            warning: facts.warning,
            has_principal_secrets,
            directories,
            cached: self.catalog.caches().find_or_create(&plan.name, key),
            ..base_mount
        };
        next.served.insert(plan.name.clone(), Arc::new(mount));
    }

    /// The grants in the configuration.
    fn grants(&self, plan: &LoadPlan) -> Option<&GrantConfig> {
        self.config.mounts.get(&plan.name).map(|mount| &mount.grants)
    }

    /// Configures the grants for the mount: turns them into handles.
    fn configure_grants(&self, plan: &LoadPlan) -> Result<MountGrants, BuildError> {
        let nothing = GrantConfig::default();
        let grants = self.grants(plan).unwrap_or(&nothing);
        if let Some(scope) = self.scope {
            scope.check(grants, plan, self.config)?;
        }
        let ambient = match self.scope.and_then(|scope| scope.outside(plan)) {
            Some(outside) => &self.config.ambient.with_outside(outside),
            None => &self.config.ambient,
        };
        grants.configure(ambient).map_err(|why| BuildError::Grant(why.to_string()))
    }

    /// True if the component of `mount` may use the grants of `plan`.
    fn may_use(&self, plan: &LoadPlan, mount: &Mount) -> bool {
        plan.quarantine(&mount.digest, self.config).is_none()
    }

    /// Keeps the component of the `old` mount, under the current configuration. Returns true if the mount is served.
    fn keep_old(&self, next: &mut LoadState, old: Option<&Arc<Mount>>, plan: &LoadPlan) -> bool {
        let Some(old) = old.filter(|old| self.may_use(plan, old)) else { return false };
        if plan.is_plan_of(old) {
            next.served.insert(plan.name.clone(), Arc::clone(old));
        } else {
            self.build(next, Some(old), plan, &ComponentFacts::of(old), &old.loaded);
        }
        next.served.contains_key(&plan.name)
    }

    /// Records why `plan` is not built, and keeps the component of the `old` mount if possible.
    pub(super) fn refuse(&self, next: &mut LoadState, old: Option<&Arc<Mount>>, plan: &LoadPlan, error: &BuildError) {
        let is_kept = self.keep_old(next, old, plan);
        let fallback = match old {
            Some(old) if is_kept => Fallback::EarlierBytes(old.digest),
            _ => Fallback::Nothing,
        };
        next.refuse(plan, error, fallback);
    }
}
