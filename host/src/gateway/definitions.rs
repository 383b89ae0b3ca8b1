//! The tools of all mounts, or their prompts: lists, and the way from a public name to its definition.
//!
//! A public name is the mount's prefix, an "_" and the provider's own name. A prefix has no "_", so a name splits in one
//! way. An operator may give a mount an empty prefix; then the first mount that has a name gets it, unless the name begins
//! with the prefix of another mount.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::time::{Instant, timeout_at};

use super::authorize::to_error;
use super::call_group::CallGroup;
use super::pipeline::{Gateway, MountCall};
use crate::catalog::listing::ListPosition;
use crate::catalog::{CachedDefinitions, Defined, Mount, Notice, Snapshot};
use crate::interfaces::definitions::{CheckedDefinitions, are_names_checked};
use crate::interfaces::tools::ToolDefinition;
use crate::model::{Fault, MountName, ReadError, text};
use crate::policy::{Access, Action, Caller, Principal, Refusal};

/// Mounts that are asked concurrently.
const CONCURRENT_MOUNTS: usize = 8;

/// Definitions of one page.
const PAGE: usize = 1000;

/// The most notices of one page.
const MAX_NOTICES: usize = 64;

/// The longest public name. Clients put up to 14 characters in front of it, and models take 64.
pub const MAX_PUBLIC_NAME: usize = 50;

/// Names of belljar's own tools.
pub const OWN_TOOLS: [&str; 3] = ["list_resources", "read_resource", "search_resources"];

/// A definition with its public name.
pub struct PublicDefinition<D> {
    /// The public name.
    pub name: String,
    /// The definition.
    pub definition: Arc<D>,
    /// Its mount.
    pub mount: Arc<Mount>,
}

/// One page of the list of all tools, or of all prompts.
pub struct DefinitionPage<D> {
    /// The definitions in the order of mounts, those of one mount by name.
    pub entries: Vec<PublicDefinition<D>>,
    /// Where the next page starts. `None` on the last page.
    pub next: Option<ListPosition>,
    /// What was left out, and why; sanitised.
    pub notices: Vec<(MountName, Notice)>,
}

/// A definition that a principal may use.
pub(super) struct FoundDefinition<D> {
    pub(super) mount: Arc<Mount>,
    pub(super) definition: Arc<D>,
    pub(super) access: Access,
}

/// What comes before the provider's own names in the public names of tools and prompts.
pub fn tool_prefix(mount: &Mount) -> String {
    match mount.tool_prefix.as_str() {
        "" => String::new(),
        prefix => format!("{prefix}_"),
    }
}

/// The public name of the definition `own` of `mount`.
pub(super) fn public_name(mount: &Mount, own: &str) -> String {
    [&tool_prefix(mount), own].concat()
}

impl Gateway {
    /// One page of the tools, or of the prompts, of all mounts that `caller` may use, starting at `start`. Of one mount only,
    /// if `only` names one.
    pub async fn definitions<D: Defined>(
        &self,
        caller: &Caller,
        start: Option<ListPosition>,
        only: Option<&MountName>,
    ) -> DefinitionPage<D> {
        let group = CallGroup::new(&self.audit, caller);
        let snapshot = self.loaded_snapshot().await;
        let end = Instant::now() + self.list_time;
        let mut page = DefinitionPage { entries: Vec::new(), next: None, notices: Vec::new() };
        // A reason may name another mount.
        let knows_all = self.knows_all(&caller.principal, &snapshot);
        let add_notice = |notices: &mut Vec<(MountName, Notice)>, mount: &Mount, why: String| {
            tracing::warn!(mount = %mount.name, "{why}");
            let notice = Notice::LeftOut(why);
            let notice = if knows_all { Some(notice) } else { notice.without_details() };
            notices.extend(notice.filter(|_| notices.len() < MAX_NOTICES).map(|notice| (mount.name.clone(), notice)));
        };
        // These notices are given once for each list: on its first page.
        if start.is_none() {
            let absent = self.absent_mounts(&caller.principal, &snapshot, only);
            page.notices.extend(absent.map(|(name, notice)| (name.clone(), notice)).take(MAX_NOTICES));
        }
        let from = snapshot.mounts_from(start.as_ref().map(|position| &position.mount));
        let mut rest = from.iter().filter(|mount| {
            only.is_none_or(|only| mount.name == *only)
                && D::is_exported(mount.interfaces)
                && self.may_use_any(&caller.principal, D::ACTION, mount)
        });
        let (mut pending, mut offset) = (FuturesOrdered::new(), start.map_or(0, |position| position.offset));
        loop {
            while pending.len() < CONCURRENT_MOUNTS
                && let Some(mount) = rest.next()
            {
                let group = &group;
                pending.push_back(async move { (mount, self.current_definitions::<D>(group, mount, end).await) });
            }
            let Some((mount, known)) = pending.next().await else { return page };
            let skip = usize::try_from(std::mem::take(&mut offset)).unwrap_or(usize::MAX);
            let Some(known) = known else {
                let why = format!("its {}s could not be listed in time", D::WHAT);
                add_notice(&mut page.notices, mount, why);
                continue;
            };
            if skip == 0 {
                let reasons = known.failure.iter().chain(&known.list.left_out);
                reasons.for_each(|why| add_notice(&mut page.notices, mount, why.clone()));
            }
            for (at, definition) in known.list.all.iter().enumerate().skip(skip) {
                if page.entries.len() >= PAGE {
                    let at = ListPosition { offset: at as u64, ..ListPosition::start_of(&mount.name, 0) };
                    page.next = Some(at);
                    return page;
                }
                if self.decide(&caller.principal, D::ACTION, mount, Some(definition.name())).is_err() {
                    continue;
                }
                let name = public_name(mount, definition.name());
                match self.refuse_name::<D>(&caller.principal, &snapshot, mount, &name) {
                    Some(why) => add_notice(&mut page.notices, mount, why),
                    None => page.entries.push(PublicDefinition {
                        name,
                        definition: Arc::clone(definition),
                        mount: Arc::clone(mount),
                    }),
                }
            }
        }
    }

    /// Why `mount` does not get the public name `name`. `None`: it gets it.
    fn refuse_name<D: Defined>(
        &self,
        principal: &Principal,
        snapshot: &Snapshot,
        mount: &Arc<Mount>,
        name: &str,
    ) -> Option<String> {
        let shown = text::quoted(name, 80);
        if !are_names_checked() {
            return None;
        }
        if name.len() > MAX_PUBLIC_NAME {
            return Some(format!(
                "the {} {shown} is left out: the name has {} characters, and models take {MAX_PUBLIC_NAME}; set a shorter tool-prefix under [mounts.{}]",
                D::WHAT,
                name.len(),
                mount.name
            ));
        }
        if OWN_TOOLS.contains(&name) {
            return Some(format!("the {} {shown} is left out: belljar's own tool has this name", D::WHAT));
        }
        let (owner, _) = self.owners::<D>(snapshot, name).find(|(owner, own)| {
            // The prefix of another mount is its own, whether its list is known or not.
            let has_prefix = !owner.tool_prefix.is_empty();
            Arc::ptr_eq(owner, mount) || (has_prefix && mount.tool_prefix.is_empty()) || {
                let known = D::slot(&owner.listings(principal)).current();
                known.is_some_and(|known| known.list.find(own).is_some())
            }
        })?;
        let is_own = Arc::ptr_eq(owner, mount);
        (!is_own).then(|| {
            format!(
                "the {} {shown} is left out: mount \"{}\" has this name or prefix already; set another tool-prefix under [mounts.{}]",
                D::WHAT, owner.name, mount.name
            )
        })
    }

    /// The mounts that may have the public name `name`, the first claim first, each with its own name for it.
    fn owners<'s, 'n, D: Defined>(
        &self,
        snapshot: &'s Snapshot,
        name: &'n str,
    ) -> impl Iterator<Item = (&'s Arc<Mount>, &'n str)> {
        let mounts = || snapshot.mounts().iter().filter(|mount| D::is_exported(mount.interfaces));
        let split = name.split_once('_');
        let prefixed = mounts().filter_map(move |mount| {
            let (prefix, own) = split?;
            (mount.tool_prefix == prefix && !prefix.is_empty()).then_some((mount, own))
        });
        let is_bare = |mount: &&Arc<Mount>| mount.tool_prefix.is_empty();
        let is_taken =
            split.is_some_and(|(prefix, _)| !prefix.is_empty() && mounts().any(|mount| mount.tool_prefix == prefix));
        let bare = mounts().filter(is_bare).filter(move |_| !is_taken).map(move |mount| (mount, name));
        prefixed.chain(bare)
    }

    /// The tool with the public name `name`, if it is known without a call and `principal` may call it.
    pub fn known_tool(&self, principal: &Principal, name: &str) -> Option<Arc<ToolDefinition>> {
        let snapshot = self.catalog.snapshot();
        let known = |(mount, own): (&Arc<Mount>, &str)| {
            // What a tool that is hidden demands of clients would tell that it is there.
            let is_visible = self.decide(principal, Action::Call, mount, Some(own)).is_ok()
                && self.may_use_any(principal, Action::Call, mount);
            let known = || ToolDefinition::slot(&mount.listings(principal)).current()?.list.find(own).map(Arc::clone);
            is_visible.then(known).flatten()
        };
        self.owners::<ToolDefinition>(&snapshot, name).find_map(known)
    }

    /// The definition with the public name `name`, if `caller` may use it.
    ///
    /// # Errors
    /// [`ReadError::NotFound`] if there is none, or if it is hidden; or why it cannot be known now.
    pub async fn definition<D: Defined>(&self, caller: &Caller, name: &str) -> Result<PublicDefinition<D>, Fault> {
        let FoundDefinition { mount, definition, access: _ } =
            self.find_definition(caller, name).await.map_err(|(error, mount)| Fault { error, mount, uri: None })?;
        Ok(PublicDefinition { name: name.to_owned(), definition, mount })
    }

    /// As [`Gateway::definition`], with the access for the call.
    pub(super) async fn find_definition<D: Defined>(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<FoundDefinition<D>, (ReadError, Option<MountName>)> {
        let snapshot = self.loaded_snapshot().await;
        let (principal, group) = (&caller.principal, CallGroup::new(&self.audit, caller));
        let mut failure = (ReadError::NotFound, None);
        if name.len() > MAX_PUBLIC_NAME && are_names_checked() {
            return Err(failure);
        }
        for (mount, own) in self.owners::<D>(&snapshot, name) {
            let access = match self.decide(principal, D::ACTION, mount, Some(own)) {
                Ok(access) if self.may_use_any(principal, D::ACTION, mount) => access,
                Err(scope @ Refusal::Scope(_)) => {
                    failure = (to_error(scope), Some(mount.name.clone()));
                    continue;
                }
                _ => continue,
            };
            let slot = |known: Arc<CachedDefinitions<D>>| known.list.find(own).map(Arc::clone);
            let kept = D::slot(&mount.listings(principal)).current();
            let found = match kept.and_then(slot) {
                Some(found) => Some(found),
                None => {
                    let end = Instant::now() + mount.gate.limits().time;
                    match self.current_definitions::<D>(&group, mount, end).await {
                        Some(known) => {
                            if let Some(why) = &known.failure {
                                failure = (ReadError::Unavailable(why.clone()), Some(mount.name.clone()));
                            }
                            slot(known)
                        }
                        None => {
                            let why = format!("its {}s could not be listed in time; try again", D::WHAT);
                            failure = (ReadError::Unavailable(why), Some(mount.name.clone()));
                            None
                        }
                    }
                }
            };
            if let Some(definition) = found {
                return Ok(FoundDefinition { mount: Arc::clone(mount), definition, access });
            }
        }
        Err(failure)
    }

    /// True if `principal` may use some tool or prompt of `mount`, as `action` says.
    ///
    /// A tool sees all that its mount was granted, and may answer with it. So whoever is denied a part of a mount for
    /// reading gets none of its tools and prompts.
    fn may_use_any(&self, principal: &Principal, action: Action, mount: &Mount) -> bool {
        !self.has_rules()
            || (!self.visibility(principal, action, mount).is_nothing()
                && !self.visibility(principal, Action::Read, mount).has_denied())
    }

    /// The definitions of `mount`, at most one second old. `None` if the deadline passed first.
    pub(super) async fn current_definitions<D: Defined>(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        by: Instant,
    ) -> Option<Arc<CachedDefinitions<D>>> {
        let listings = mount.listings(&group.caller().principal);
        let slot = D::slot(&listings);
        if let Some(known) = slot.current().filter(|known| known.is_current()) {
            return Some(known);
        }
        // When several requests arrive at once, one of them asks the provider.
        let turn = timeout_at(by, slot.check_lock.lock()).await;
        let known = slot.current();
        if turn.is_err() || known.as_ref().is_some_and(|known| known.is_current()) {
            return known;
        }
        // The first list does not wait for a revision.
        let revision = match &known {
            Some(_) => self.list_revision(group, mount, by).await,
            None => None,
        };
        if let Some(known) =
            known.filter(|known| revision.is_some() && known.revision == revision && known.failure.is_none())
        {
            known.mark_current();
            return Some(known);
        }
        let (list, cost) = self.call(MountCall::in_group(group, mount).with_deadline(by), D::list()).await;
        drop(cost);
        let memory = self.catalog.caches().memory();
        let listed = match list {
            Ok(list) => CachedDefinitions::new(list, None, revision, memory),
            Err(error) => {
                let failure = Some(error.with_cure(Some(&mount.name)));
                let failed = CachedDefinitions::new(CheckedDefinitions::default(), failure, None, memory);
                // The next request asks again.
                failed.mark_outdated();
                failed
            }
        };
        slot.set(Some(Arc::clone(&listed)));
        self.catalog.caches().evict();
        Some(listed)
    }
}
