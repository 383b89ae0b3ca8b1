//! What is served for one mount: from its plan, from what was found in its file, and from what was served before.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;

use super::looking::Cached;
use super::{Facts, Found, KEPT, Loader, State, Waiting, Why};
use crate::catalog::mount::Unread;
use crate::catalog::plan::Plan;
use crate::catalog::unserved::Cause;
use crate::catalog::{Mount, Quarantined, quarantine};
use crate::config::{self, Config};
use crate::grants::{Ambient, Held, Requested};
use crate::model::{Digest, MountName, text};
use crate::sandbox::{Loaded, Sandbox};

/// What can still be opened by name, where a wall around the process keeps the rest from it.
#[derive(Clone)]
pub struct Within {
    /// Directories, with all that is below.
    pub directories: Vec<PathBuf>,
    /// TCP ports.
    pub ports: Vec<u16>,
}

/// Loads a component for nobody in particular: who is made from it gets its own grants.
pub(super) async fn load_bare(
    sandbox: &Sandbox,
    ambient: &Ambient,
    (name, bytes, digest): (&MountName, Arc<[u8]>, &Digest),
) -> Result<Loaded, String> {
    sandbox.load(name, bytes, digest, nothing(ambient)?).await
}

/// The grants of nobody.
pub(super) fn nothing(ambient: &Ambient) -> Result<Held, String> {
    Requested::default().configure(ambient)
}

impl Loader {
    /// Decides what is served for `plan`.
    pub(super) fn place(
        &self,
        next: &mut State,
        loaded: &HashMap<Digest, Arc<Mount>>,
        plan: Plan,
        found: Found,
        cached: Cached,
    ) {
        let old = self.state.served.get(&plan.name);
        let (facts, bytes) = match found {
            Ok(found) => found,
            // It is looked at again when that has ended.
            Err(Unread::BeingWritten) if self.keep(next, old, &plan) => return next.may_change = true,
            Err(why) => return self.refuse(next, old, &plan, &why.to_string()),
        };
        // The bytes that are judged are those that are loaded: what is compiled later is compared with this digest.
        if plan.needs_pin
            && let Some(one) = quarantine::judge(&plan, &facts.digest, &self.config.pins)
        {
            next.quarantined.push(one);
            return;
        }
        if let Some(same) =
            old.filter(|old| old.digest == facts.digest && old.warning == facts.warning && plan.made(old))
        {
            next.served.insert(plan.name.clone(), Arc::clone(same));
            return;
        }
        if let Some(mount) = loaded.get(&facts.digest) {
            return self.make(next, old, &plan, &facts, &mount.loaded);
        }
        if let Some((why, until)) = self.failed.get(&facts.digest)
            && until.is_none_or(|until| until > Instant::now())
        {
            next.may_change |= until.is_some();
            return self.refuse(next, old, &plan, &why.clone());
        }
        match cached {
            Some(Ok(loaded)) => self.make(next, old, &plan, &facts, &loaded),
            Some(Err(why)) => self.refuse(next, old, &plan, &why),
            None => {
                // Until it is compiled, what was there goes on.
                if !self.keep(next, old, &plan) {
                    // It comes out of quarantine when there is something that can be served.
                    let held_back = |one: &&Quarantined| one.name == plan.name && one.base == plan.base;
                    next.quarantined.extend(self.state.quarantined.iter().find(held_back).cloned());
                }
                let kept: usize = next.waiting.iter().flat_map(|one| &one.bytes).map(|bytes| bytes.len()).sum();
                let bytes = bytes.filter(|bytes| kept + bytes.len() <= KEPT).map(Into::into);
                next.waiting.push(Waiting { plan, facts, bytes });
            }
        }
    }

    /// Makes the mount from what is loaded. When its grants cannot be given to it, the `old` one goes on, where it has no
    /// more than is granted now.
    pub(super) fn make(&self, next: &mut State, old: Option<&Arc<Mount>>, plan: &Plan, facts: &Facts, loaded: &Loaded) {
        let held = match self.hold(plan) {
            Ok(held) => held,
            Err(why) => {
                next.may_change = true;
                let goes_on =
                    old.filter(|old| old.base == plan.base && plan.still_grants(old) && self.may_use(plan, old));
                return match goes_on {
                    Some(old) => {
                        let reason = format!("{}; until then it goes on as it was", why.reason);
                        next.refuse(plan, Cause::Grant, Why { reason, ..why });
                        next.served.insert(plan.name.clone(), Arc::clone(old));
                    }
                    None => next.refuse(plan, Cause::Grant, why),
                };
            }
        };
        let holds = held.kinds();
        for useless in holds.iter().filter(|kind| !facts.uses.contains(kind)) {
            tracing::warn!(mount = %plan.name, "holds a grant that its component cannot use: {useless}");
        }
        if let Some(warning) = facts.warning {
            tracing::warn!(mount = %plan.name, "{warning}");
        }
        let all = self.grants(plan).map(|grants| grants.directories(&self.config.ambient)).unwrap_or_default();
        let directories = if held.may_stall() { Vec::new() } else { all };
        let Some(loaded) = self.sandbox.load_again(&plan.name, loaded, held) else {
            return next.refuse(plan, Cause::Component, "it is no longer loaded".to_owned());
        };
        let plain = Mount::plain(plan.name.clone(), &plan.base, plan.limits.clone());
        let mount = Mount {
            file: plan.file.clone(),
            digest: facts.digest,
            gate: self.catalog.gates().gate(&plan.name, &facts.digest, &plan.limits),
            loaded,
            written: plan.written.clone(),
            ask: plan.ask,
            cache: plan.cache,
            search: plan.search,
            holds,
            uses: facts.uses.clone(),
            needs: Arc::clone(&facts.needs),
            lacks: self.grants(plan).unwrap_or(&Requested::default()).lacks(&facts.needs),
            completes: facts.completes,
            revises: facts.revises,
            warning: facts.warning,
            directories,
            ..plain
        };
        next.served.insert(plan.name.clone(), Arc::new(mount));
    }

    /// What the operator grants.
    pub(super) fn grants(&self, plan: &Plan) -> Option<&Requested> {
        self.config.mounts.get(&plan.name).map(|mount| &mount.grants)
    }

    /// Turns what is granted into handles.
    pub(super) fn hold(&self, plan: &Plan) -> Result<Held, Why> {
        let nothing = Requested::default();
        let grants = self.grants(plan).unwrap_or(&nothing);
        if let Some(within) = &self.within {
            within.check(grants, plan, &self.config)?;
        }
        Ok(grants.configure(&self.config.ambient)?)
    }

    pub(super) fn may_use(&self, plan: &Plan, mount: &Mount) -> bool {
        !plan.needs_pin || quarantine::judge(plan, &mount.digest, &self.config.pins).is_none()
    }

    /// Goes on with what the `old` mount is made of, under what is written now. Says whether there is such a mount.
    pub(super) fn keep(&self, next: &mut State, old: Option<&Arc<Mount>>, plan: &Plan) -> bool {
        let Some(old) = old.filter(|old| self.may_use(plan, old)) else { return false };
        if plan.made(old) {
            next.served.insert(plan.name.clone(), Arc::clone(old));
        } else {
            self.make(next, Some(old), plan, &Facts::of(old), &old.loaded);
        }
        next.served.contains_key(&plan.name)
    }

    pub(super) fn refuse(&self, next: &mut State, old: Option<&Arc<Mount>>, plan: &Plan, why: &str) {
        match old.filter(|_| self.keep(next, old, plan)) {
            Some(old) => next.refuse(
                plan,
                Cause::Component,
                format!("{why}; until another is there, the earlier bytes ({}) are served", old.digest),
            ),
            None => next.refuse(plan, Cause::Component, why.to_owned()),
        }
    }
}

impl Within {
    /// Whether everything can be opened that these grants need.
    fn check(&self, grants: &Requested, plan: &Plan, config: &Config) -> Result<(), Why> {
        let shut = |what: String| {
            let reason =
                format!("its grant of {what} needs a restart: the second wall was raised without it; restart belljar");
            Why { reason, needs_restart: true }
        };
        for wanted in grants.directories(&config.ambient) {
            if !self.directories.iter().any(|open| wanted.starts_with(open)) {
                return Err(shut(format!("\"{}\"", text::excerpt(&wanted.to_string_lossy(), 200))));
            }
        }
        let ports = config.mounts.get(&plan.name).map(config::Mount::ports).unwrap_or_default();
        match ports.iter().find(|port| !self.ports.contains(port)) {
            Some(port) => Err(shut(format!("TCP port {port}"))),
            None => Ok(()),
        }
    }
}
