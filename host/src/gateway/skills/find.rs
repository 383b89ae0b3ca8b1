//! Finds the skills of a mount, and says which kept entries are still current.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use crate::catalog::skills::{KeptSkill, RevisionHash, SkillSet};
use crate::catalog::watch::WatchError;
use crate::catalog::{EntryVerdict, Mount, Notice, ServedMount};
use crate::gateway::call_group::CallGroup;
use crate::gateway::pipeline::{Gateway, MountCall};
use crate::gateway::poll::POLL_CALLER;
use crate::interfaces::paging::Paging;
use crate::interfaces::revisions::ResourceRevisions;
use crate::interfaces::skills::ListSkills;
use crate::limits::cpu_timer::{CPU_CLOCK_MIN, measure};
use crate::model::bounds::MAX_SKILLS_MEMORY;
use crate::model::{ReadError, Resource, SkillFiles};
use crate::policy::Action;

/// The kinds of grants that the watch on directories covers. A mount with others may answer otherwise although no file
/// changed.
const WATCHED_KINDS: [&str; 2] = ["fs", "env"];

/// References in one call of `resource-revisions`.
const REVISIONS_PER_CALL: usize = 512;

impl Gateway {
    /// The skills of `mount`. Kept entries that may be outdated are removed first.
    ///
    /// # Errors
    /// A notice with the reason why there are none.
    pub(super) async fn skill_set(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        by: Instant,
    ) -> Result<Arc<SkillSet>, Notice> {
        let listings = mount.listings(&group.caller().principal);
        let slot = &listings.skills;
        slot.mark_used(self.catalog.caches().memory());
        let generation = mount.cached.generation();
        if let Some(set) = slot.confirmed(generation) {
            return Ok(set);
        }
        let Ok(_turn) = timeout_at(by, slot.turn.lock()).await else {
            return Err(Notice::LeftOut("other requests for its skills are running; list again soon".to_owned()));
        };
        if let Some(set) = slot.confirmed(generation) {
            return Ok(set);
        }
        if slot.needs_watch() {
            slot.set_watch(self.watch_skills(mount).await);
        }
        let began = Instant::now();
        slot.begin_check();
        let revision = self.list_revision(group, mount, by).await;
        let known = slot.set().filter(|set| revision.is_some() && set.revision() == revision.as_deref());
        let set = match known {
            Some(set) => set,
            None if mount.interfaces.skills => Arc::new(self.named_skills(group, mount, revision, by).await?),
            None => Arc::new(self.listed_skills(group, mount, revision, by).await?),
        };
        self.remove_outdated(group, mount, &set).await;
        slot.confirm(Arc::clone(&set), began, generation);
        Ok(set)
    }

    /// Watches the directories of a mount, if nothing but them can change its answers.
    async fn watch_skills(&self, mount: &Arc<Mount>) -> Vec<crate::catalog::watch::DirectoryWatch> {
        let is_covered = mount.granted_kinds.iter().all(|kind| WATCHED_KINDS.contains(kind));
        let watcher = self.subscriptions.watcher.clone();
        let Some(watcher) = watcher.filter(|_| is_covered && mount.has_directories() && !mount.is_per_principal())
        else {
            return Vec::new();
        };
        let own = Arc::clone(mount);
        // Walking all directories takes time and blocks.
        let watched = tokio::task::spawn_blocking(move || own.watch(&watcher)).await;
        watched.unwrap_or(Err(WatchError::Panicked)).unwrap_or_else(|why| {
            tracing::info!(mount = %mount.name, "its skills are checked at each request, because {why}");
            Vec::new()
        })
    }

    /// The skills that a provider names.
    async fn named_skills(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        revision: Option<String>,
        by: Instant,
    ) -> Result<SkillSet, Notice> {
        let (mut skills, mut paging, mut notices): (Vec<SkillFiles>, _, _) =
            (Vec::new(), Paging::default(), Vec::new());
        let (mut bad, mut first, mut bytes) = (0, None, 0);
        loop {
            let function = ListSkills { cursor: paging.cursor().map(str::to_owned) };
            let (page, cost) = self.call(MountCall::in_group(group, mount).with_deadline(by), function).await;
            drop(cost);
            let (page, next) = page.map_err(|error| Notice::LeftOut(error.with_cure(Some(&mount.name)).to_string()))?;
            let before = skills.len();
            for skill in page {
                match skill {
                    Ok(skill) => {
                        bytes += skill.root.len() + skill.files.iter().map(|file| file.len() + 64).sum::<usize>();
                        skills.push(skill);
                    }
                    Err(why) => {
                        bad += 1;
                        first.get_or_insert_with(|| why.to_string());
                    }
                }
            }
            if bytes > MAX_SKILLS_MEMORY.get() {
                notices.push(Notice::Cut("it names more files of skills than belljar keeps".to_owned()));
                break;
            }
            match paging.count_page(skills.len() - before, next) {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => {
                    let why = why.to_string().replace("list-resources", "list-skills");
                    group.mark_failed(mount, "list-skills", ReadError::BadOutput(why.clone()));
                    notices.push(Notice::Cut(format!(
                        "{why}; to see what its author has to fix, run: belljar check --conformance {}",
                        mount.file
                    )));
                    break;
                }
            }
        }
        notices.extend(first.map(|first| Notice::Entries { count: bad, first }));
        Ok(SkillSet::of_provider(skills).with(revision, notices))
    }

    /// The skills among the listed resources.
    async fn listed_skills(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        revision: Option<String>,
        by: Instant,
    ) -> Result<SkillSet, Notice> {
        // A check wants the list of now. A list of a moment ago could be kept with the revision of the present one.
        let listings = mount.listings(&group.caller().principal);
        listings.resources.current().iter().for_each(|listing| listing.mark_outdated());
        let listing = self.listing::<Resource>(group, mount, None, by).await;
        if !self.fill(group, mount, &listing, usize::MAX, by).await {
            return Err(Notice::LeftOut("its list of resources was not complete in time; list again soon".to_owned()));
        }
        let snapshot = self.catalog.snapshot();
        let served = ServedMount { mount, snapshot: &snapshot };
        let (found, effort) = measure(CPU_CLOCK_MIN, || {
            let mut references = Vec::with_capacity(listing.len());
            let take = |name: &str| {
                references.push(name.to_owned());
                EntryVerdict::Skip
            };
            listing.visit(served, 0, Some(take), |_: Resource| true, |_| {});
            references.retain(|reference| snapshot.absolute_name(mount, reference).is_ok());
            SkillSet::of_listing(references)
        });
        mount.gate.charge_cpu(effort);
        // Notices about single entries belong to the list of resources.
        let is_about_list = |notice: &Notice| !matches!(notice, Notice::Entries { .. });
        let notices = listing.notices(0, listing.len()).into_iter().filter(is_about_list).collect();
        Ok(found.with(revision, notices))
    }

    /// Removes each kept entry that may be outdated.
    async fn remove_outdated(&self, group: &CallGroup, mount: &Arc<Mount>, set: &SkillSet) {
        let listings = mount.listings(&group.caller().principal);
        let slot = &listings.skills;
        let now = Instant::now();
        let mut unsure: Vec<(Arc<str>, KeptSkill)> = Vec::new();
        for (root, kept) in slot.all_kept() {
            match set.find(&root) {
                Some((_, files)) if *files == *kept.files => match (&kept.revisions, kept.fresh_until) {
                    (Some(_), _) => unsure.push((root, kept)),
                    (None, Some(until)) if until > now => {}
                    (None, _) => slot.remove(&root),
                },
                _ => slot.remove(&root),
            }
        }
        let files = unsure.iter().flat_map(|(_, kept)| kept.files.iter().cloned()).collect();
        let current = self.file_revisions(group, mount, files).await;
        let mut rest = current.as_slice();
        for (root, kept) in unsure {
            let (own, others) = rest.split_at_checked(kept.files.len()).unwrap_or_default();
            rest = others;
            let known = kept.revisions.iter().flat_map(|all| all.iter().copied().map(Some));
            if !own.iter().copied().eq(known) {
                slot.remove(&root);
            }
        }
    }

    /// The revisions of these files, in order. `None` for each that is not known.
    pub(super) async fn file_revisions(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        files: Vec<Arc<str>>,
    ) -> Vec<Option<RevisionHash>> {
        if !mount.interfaces.revisions {
            return vec![None; files.len()];
        }
        // The host asks for itself, whether what it keeps is current. A principal without the right to watch may list.
        let own = CallGroup::new(&self.audit, &POLL_CALLER);
        let principal = &group.caller().principal;
        let may_watch = mount.is_per_principal() || self.decide(principal, Action::Watch, mount, None).is_ok();
        let group = if may_watch { group } else { &own };
        let mut all = Vec::with_capacity(files.len());
        for some in files.chunks(REVISIONS_PER_CALL) {
            let references = some.iter().map(|file| file.to_string()).collect();
            let call = MountCall::in_group(group, mount);
            match self.call(call, ResourceRevisions { references }).await.0 {
                Ok(given) => all.extend(given.iter().map(|one| one.as_deref().ok().map(RevisionHash::of))),
                Err(error) => {
                    tracing::debug!(mount = %mount.name, "the revisions of its skills are not known: {error}");
                    all.extend(some.iter().map(|_| None));
                }
            }
        }
        all
    }
}
