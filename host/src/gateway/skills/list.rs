//! `skills/list`: the skills of all mounts, page by page, and one skill by its URI.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::build::{BuiltSkill, SkillCandidate};
use super::entry::{SkillEntry, SkillLookupError, SkillVisibility, skill_uri};
use super::name::SkillName;
use crate::catalog::listing::{ListPosition, is_full};
use crate::catalog::skills::SkillSet;
use crate::catalog::{Mount, Notice, Snapshot};
use crate::gateway::call_group::CallGroup;
use crate::gateway::pipeline::{Gateway, MountCall};
use crate::interfaces::skills::{GetSkill, root_of};
use crate::model::error::LimitKind;
use crate::model::{Fault, MountName, ReadError};
use crate::policy::{Action, Caller, Principal};

/// The time in which the files of one skill must be read. The first skill of a page may take it, whatever the time of a
/// listing is: a page without any skill would make no progress.
pub(super) const SKILL_TIME: Duration = Duration::from_secs(20);

/// Skills that are computed before the page looks at its time again.
const BATCH: usize = 16;

/// Skills that a page passes, hidden or left out, before the task yields to others.
const SKIPPED_PER_TURN: usize = 32;

/// The most notices of one page.
const MAX_NOTICES: usize = 64;

/// One page of the list of skills.
#[derive(Debug, Default)]
pub struct SkillList {
    /// The skills, by mount and directory.
    pub skills: Vec<SkillEntry>,
    /// Where the next page starts. `None` on the last page.
    pub next: Option<ListPosition>,
    /// The mounts whose skills are missing, wholly or in part, and the reasons; sanitised.
    pub notices: Vec<(MountName, Notice)>,
}

impl SkillList {
    /// The bytes of the entries.
    pub fn bytes(&self) -> usize {
        self.skills.iter().map(|one| one.skill.weight()).sum()
    }
}

/// A page that is being filled.
struct PageBuilder<'a> {
    gateway: &'a Gateway,
    group: &'a CallGroup,
    snapshot: &'a Snapshot,
    pages: u32,
    began: Instant,
    page: SkillList,
    bytes: usize,
    /// True if the page dealt with a skill, whether it shows it or not.
    has_progress: bool,
}

impl Gateway {
    /// One page of the skills of all mounts, starting at `start`. `only` restricts the list to one mount.
    ///
    /// A mount or skill that fails is left out with a notice.
    pub async fn list_skills(
        &self,
        caller: &Caller,
        start: Option<ListPosition>,
        only: Option<&MountName>,
    ) -> SkillList {
        let group = CallGroup::new(&self.audit, caller);
        // Loading is not the fault of any mount, so it does not count against the listing's time.
        let snapshot = self.loaded_snapshot().await;
        let principal = &caller.principal;
        let pages = start.as_ref().map_or(0, |start| start.pages);
        let mut builder = PageBuilder {
            gateway: self,
            group: &group,
            snapshot: &snapshot,
            pages,
            began: Instant::now(),
            page: SkillList::default(),
            bytes: 0,
            has_progress: false,
        };
        if start.is_none() {
            builder.add_absent(principal, only);
        }
        let from = snapshot.mounts_from(start.as_ref().map(|start| &start.mount).or(only));
        let from = from.iter().take_while(|mount| only.is_none_or(|only| mount.name == *only));
        for mount in from.filter(|mount| mount.has_skills()) {
            let visible = self.skill_visibility(principal, mount);
            if visible.is_nothing() {
                continue;
            }
            let position = match &start {
                Some(start) if start.mount == mount.name => start.clone(),
                _ => ListPosition::start_of(&mount.name, pages),
            };
            if builder.add_mount(mount, &visible, position).await {
                break;
            }
        }
        builder.page
    }

    /// The skill whose `SKILL.md` has this URI, whether it is listed or not.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn skill(&self, caller: &Caller, uri: &str) -> Result<SkillEntry, SkillLookupError> {
        let Some(SkillName { mount, reference }) = self.skill_name(&caller.principal, uri).await else {
            return Err(SkillLookupError::Unknown);
        };
        let root = root_of(reference).ok_or(SkillLookupError::Unknown)?;
        let visible = self.skill_visibility(&caller.principal, &mount);
        if !visible.contains(reference) {
            return Err(SkillLookupError::Unknown);
        }
        let counted = self.count_action(caller, Action::List, Some(&mount.name)).await;
        let quota = counted.map_err(SkillLookupError::Failed)?;
        let group = CallGroup::new(&self.audit, caller);
        let found = self.find_skill(&group, &mount, &visible, root).await?;
        quota.charge(found.skill.weight()).await;
        Ok(found)
    }

    /// The skill in the directory `root`.
    pub(super) async fn find_skill(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        visible: &SkillVisibility,
        root: &str,
    ) -> Result<SkillEntry, SkillLookupError> {
        let by = Instant::now() + SKILL_TIME;
        let fault = |error| SkillLookupError::Failed(Fault { error, mount: Some(mount.name.clone()), uri: None });
        let set = self.skill_set(group, mount, by).await;
        let set = set.map_err(|notice| fault(ReadError::Unavailable(format!("its list of skills: {notice}"))))?;
        let (candidate, is_listed): (SkillCandidate, _) = match set.find(root) {
            Some((root, files)) => ((Arc::clone(root), files.into()), true),
            None if mount.interfaces.skills => {
                let call = MountCall::in_group(group, mount).with_deadline(by);
                match self.call(call, GetSkill { root: root.to_owned() }).await.0 {
                    Ok(skill) => ((root.into(), skill.files.into_iter().map(Into::into).collect()), false),
                    Err(ReadError::NotFound) => return Err(SkillLookupError::Unknown),
                    Err(error) => return Err(fault(error)),
                }
            }
            None => return Err(SkillLookupError::Unknown),
        };
        let (root, files) = &candidate;
        if !visible.contains_all(files) {
            return Err(SkillLookupError::Unknown);
        }
        let listings = mount.listings(&group.caller().principal);
        let slot = &listings.skills;
        let entry = |skill| SkillEntry { mount: mount.name.clone(), skill };
        if let Some(kept) = slot.kept(root, files).filter(|_| is_listed) {
            return kept.map(entry).map_err(|why| SkillLookupError::Invalid(why.to_string()));
        }
        // One request computes at a time: a flood of requests costs a mount no more than its list.
        let Ok(_turn) = timeout_at(by, slot.turn.lock()).await else {
            return Err(fault(ReadError::busy("other requests for its skills are running")));
        };
        if let Some(kept) = slot.kept(root, files).filter(|_| is_listed) {
            return kept.map(entry).map_err(|why| SkillLookupError::Invalid(why.to_string()));
        }
        let mut built = self.build_skills(group, mount, std::slice::from_ref(&candidate), (by, is_listed)).await;
        match built.pop() {
            Some(BuiltSkill::Skill(skill)) => Ok(entry(skill)),
            Some(BuiltSkill::Refused(why)) => Err(SkillLookupError::Invalid(why.to_string())),
            Some(BuiltSkill::Failed(error)) => Err(fault(error)),
            None => Err(SkillLookupError::Unknown),
        }
    }
}

impl PageBuilder<'_> {
    fn is_full(&self) -> bool {
        is_full(self.page.skills.len(), self.bytes, self.pages)
    }

    /// True if the page must end here.
    fn is_over(&self) -> bool {
        self.is_full() || (self.has_progress && Instant::now() >= self.began + self.gateway.list_time)
    }

    /// The time until which skills of this page may be computed.
    fn end(&self) -> Instant {
        self.began + if self.has_progress { self.gateway.list_time } else { SKILL_TIME }
    }

    /// True if a call failed because the time of the page is over.
    fn is_late(&self, error: &ReadError) -> bool {
        error.limit().is_some_and(|limit| limit.kind == LimitKind::ListTime) || Instant::now() >= self.end()
    }

    /// Adds a mount's skills, starting at `position`. Returns true if the page ends here.
    async fn add_mount(&mut self, mount: &Arc<Mount>, visible: &SkillVisibility, mut position: ListPosition) -> bool {
        if self.is_over() {
            return self.end_at(position);
        }
        let set = match self.gateway.skill_set(self.group, mount, self.end()).await {
            Ok(set) => set,
            // The mounts before this one took the time. This one comes first on the next page.
            Err(_) if self.has_progress && Instant::now() >= self.end() => return self.end_at(position),
            Err(notice) => {
                self.add_notice_of_mount(mount, visible, notice);
                return false;
            }
        };
        position.list = set.id();
        let from = usize::try_from(position.offset).unwrap_or(usize::MAX);
        if from == 0 {
            set.notices().iter().for_each(|notice| self.add_notice_of_mount(mount, visible, notice.clone()));
        }
        let listings = mount.listings(&self.group.caller().principal);
        let slot = &listings.skills;
        let (mut bad, mut first) = (0, None::<String>);
        let mut built: HashMap<Arc<str>, BuiltSkill> = HashMap::new();
        let mut skipped = 0;
        let mut index = from;
        let is_ended = loop {
            let Some((root, files)) = set.get(index).filter(|_| index < set.listed()) else { break false };
            position.offset = index as u64;
            if self.is_over() {
                break self.end_at(position);
            }
            if skipped >= SKIPPED_PER_TURN {
                skipped = 0;
                tokio::task::yield_now().await;
            }
            if !visible.contains_all(files) {
                (index, skipped) = (index + 1, skipped + if visible.is_judged() { SKIPPED_PER_TURN } else { 1 });
                continue;
            }
            let kept = slot.kept(root, files).map(|kept| match kept {
                Ok(skill) => BuiltSkill::Skill(skill),
                Err(why) => BuiltSkill::Refused(why),
            });
            match kept.or_else(|| built.remove(root)) {
                Some(BuiltSkill::Skill(skill)) => {
                    self.bytes += skill.weight();
                    self.page.skills.push(SkillEntry { mount: mount.name.clone(), skill });
                }
                Some(BuiltSkill::Refused(why)) => {
                    bad += 1;
                    first.get_or_insert_with(|| why.to_string());
                }
                // The time of the page is over, and not the fault of this skill. It comes first on the next page.
                Some(BuiltSkill::Failed(error)) if self.has_progress && self.is_late(&error) => {
                    break self.end_at(position);
                }
                Some(BuiltSkill::Failed(error)) => {
                    let uri = skill_uri(&mount.name, root);
                    bad += 1;
                    first.get_or_insert_with(|| format!("\"{uri}\": {}", error.with_cure(Some(&mount.name))));
                }
                None if !slot.has_room() => {
                    let why =
                        format!("its skills after the first {index} have more files than belljar keeps digests of");
                    self.add_notice_of_mount(mount, visible, Notice::Cut(why));
                    break false;
                }
                None => {
                    built = self.build(mount, visible, &set, index).await;
                    if built.is_empty() {
                        let why = "other requests for its skills are running; list again soon".to_owned();
                        self.add_notice_of_mount(mount, visible, Notice::LeftOut(why));
                        break false;
                    }
                    continue;
                }
            }
            self.has_progress = true;
            (index, skipped) = (index + 1, skipped + 1);
        };
        if let Some(first) = first {
            self.add_notice_of_mount(mount, visible, Notice::Entries { count: bad, first });
        }
        if !is_ended && set.len() > set.listed() && index >= set.listed() {
            let most = set.listed();
            let why = format!("it has {} skills, and a list has {most}; the others can be read by name", set.len());
            self.add_notice_of_mount(mount, visible, Notice::Cut(why));
        }
        is_ended
    }

    /// Computes the next skills that are visible and not kept, starting at `index`.
    async fn build(
        &self,
        mount: &Arc<Mount>,
        visible: &SkillVisibility,
        set: &SkillSet,
        index: usize,
    ) -> HashMap<Arc<str>, BuiltSkill> {
        let listings = mount.listings(&self.group.caller().principal);
        let slot = &listings.skills;
        let by = self.end();
        let Ok(_turn) = timeout_at(by, slot.turn.lock()).await else { return HashMap::new() };
        let wanted = (index..set.listed()).filter_map(|index| set.get(index));
        let wanted = wanted.filter(|(_, files)| visible.contains_all(files));
        // Also those that another request computed meanwhile: the first must be among the results.
        let candidates: Vec<SkillCandidate> = wanted
            .filter(|(root, files)| slot.kept(root, files).is_none())
            .take(BATCH)
            .map(|(root, files)| (Arc::clone(root), files.into()))
            .collect();
        let mut built: HashMap<_, _> = HashMap::new();
        if let Some((root, files)) = set.get(index)
            && let Some(kept) = slot.kept(root, files)
        {
            let kept = kept.map_or_else(BuiltSkill::Refused, BuiltSkill::Skill);
            built.insert(Arc::clone(root), kept);
            return built;
        }
        let results = self.gateway.build_skills(self.group, mount, &candidates, (by, true)).await;
        built.extend(candidates.into_iter().map(|(root, _)| root).zip(results));
        built
    }

    fn end_at(&mut self, position: ListPosition) -> bool {
        self.page.next = Some(ListPosition { pages: self.pages.saturating_add(1), ..position });
        true
    }

    /// Adds notices about the mounts that are not served.
    fn add_absent(&mut self, principal: &Principal, only: Option<&MountName>) {
        for (name, notice) in self.gateway.absent_mounts(principal, self.snapshot, only) {
            self.add_notice(name, notice);
        }
    }

    /// Adds a notice about a mount's skills, as far as the principal may know it. The log has all of it.
    fn add_notice_of_mount(&mut self, mount: &Mount, visible: &SkillVisibility, notice: Notice) {
        let principal = &self.group.caller().principal;
        if visible.is_all() && self.gateway.knows_all(principal, self.snapshot) {
            return self.add_notice(&mount.name, notice);
        }
        tracing::warn!(mount = %mount.name, "in the list of skills: {notice}");
        if let Some(notice) = notice.without_details() {
            self.show_notice(&mount.name, notice);
        }
    }

    fn add_notice(&mut self, mount: &MountName, notice: Notice) {
        tracing::warn!(mount = %mount, "in the list of skills: {notice}");
        self.show_notice(mount, notice);
    }

    fn show_notice(&mut self, mount: &MountName, notice: Notice) {
        if self.page.notices.len() < MAX_NOTICES {
            self.page.notices.push((mount.clone(), notice));
        }
    }
}
