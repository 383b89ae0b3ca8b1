//! The skills of a mount, as they are kept between requests. Makes no calls: the gateway finds skills and computes
//! entries.
//!
//! An entry holds digests of the bytes that were served when it was computed. It is kept while the mount's revisions, the
//! watch on its directories, or the time that its provider allowed say that nothing changed. A read with another digest
//! removes it at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::listing_memory::ListingMemory;
use super::watch::{DirectoryWatch, any_changed};
use crate::interfaces::skills::frontmatter::Frontmatter;
use crate::interfaces::skills::{UnfitSkill, path_below};
use crate::limits::memory_budget::Reservation;
use crate::model::bounds::{MAX_SKILLS_BYTES, MAX_SKILLS_MEMORY};
use crate::model::{Body, Digest};

mod set;

pub use set::SkillSet;

/// Skills are served for this time without asking the provider whether they are current, as lists are.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The same while all directories of the mount are watched. Other things than files may change an answer.
const RECHECK_WATCHED_AFTER: Duration = Duration::from_secs(30);

/// The memory of one file beside its name, in bytes.
const FILE_OVERHEAD: usize = 128;

/// One file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// The reference below the mount's base.
    pub reference: Arc<str>,
    /// The SHA-256 of the bytes that clients get.
    pub digest: Digest,
    /// The number of these bytes.
    pub size: u64,
    /// The media type.
    pub mime_type: Option<String>,
}

/// A computed skill.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// The directory.
    pub root: Arc<str>,
    /// The frontmatter of its `SKILL.md`.
    pub frontmatter: Frontmatter,
    /// Its files, sorted by reference.
    pub files: Vec<SkillFile>,
}

impl Skill {
    /// The file with this reference.
    pub fn file(&self, reference: &str) -> Option<&SkillFile> {
        let at = self.files.binary_search_by(|file| file.reference.as_ref().cmp(reference)).ok()?;
        self.files.get(at)
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The bytes of the entry, about as a client gets it.
    pub fn weight(&self) -> usize {
        let fields = self.frontmatter.description.len() + self.frontmatter.yaml_bytes;
        fields + self.files.iter().map(|file| FILE_OVERHEAD + file.reference.len()).sum::<usize>()
    }
}

/// A hash of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionHash(u64, u64);

impl RevisionHash {
    /// The hash of `revision`.
    pub fn of(revision: &str) -> Self {
        let hash = blake3::hash(revision.as_bytes());
        let half = |from: usize| {
            let bytes = hash.as_bytes().get(from..from + 8).and_then(|half| half.try_into().ok());
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        Self(half(0), half(8))
    }
}

/// What is known of a skill: the skill, or the reason why it is left out.
pub type SkillResult = Result<Arc<Skill>, UnfitSkill>;

/// A kept skill.
#[derive(Clone)]
pub struct KeptSkill {
    /// Its files when it was computed.
    pub files: Arc<[Arc<str>]>,
    /// One revision for each file. `None` if they are not known.
    pub revisions: Option<Arc<[RevisionHash]>>,
    /// The time until which the provider allowed to serve all of its files again.
    pub fresh_until: Option<Instant>,
    /// The result.
    pub result: SkillResult,
}

impl KeptSkill {
    fn weight(&self) -> usize {
        let names = self.files.iter().map(|file| FILE_OVERHEAD + file.len()).sum::<usize>();
        names + self.result.as_ref().map_or_else(|unfit| unfit.why.len(), |skill| skill.weight())
    }

    fn bytes(&self) -> u64 {
        self.result.as_ref().map_or(0, |skill| skill.bytes())
    }
}

/// The memory of kept skills, counted against that of all listings.
struct Charge {
    memory: Arc<ListingMemory>,
    reservation: Reservation,
    bytes: u64,
}

impl Charge {
    fn grow(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        self.bytes += bytes;
        self.memory.grow(bytes);
        self.reservation.add(bytes);
    }

    fn shrink(&mut self, bytes: usize) {
        let bytes = (bytes as u64).min(self.bytes);
        self.bytes -= bytes;
        self.memory.shrink(bytes);
        self.reservation.release(bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes);
    }
}

/// The kept skills of a mount.
#[derive(Default)]
pub struct SkillSlot {
    /// Held by the one request that asks the provider: whether something changed, or for the bytes of files.
    pub turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    set: Option<Arc<SkillSet>>,
    kept: HashMap<Arc<str>, KeptSkill>,
    /// When everything was known to be current, and the generation of the mount's answers then.
    confirmed: Option<(Instant, u64)>,
    /// The watches on all directories of the mount.
    directories: Option<Vec<DirectoryWatch>>,
    last_used: u64,
    charge: Option<Charge>,
    /// Bytes of the files of all kept skills.
    bytes: u64,
}

impl State {
    fn remove(&mut self, root: &str) {
        if let Some(kept) = self.kept.remove(root) {
            self.bytes = self.bytes.saturating_sub(kept.bytes());
            self.charge.iter_mut().for_each(|charge| charge.shrink(kept.weight()));
        }
    }

    /// True if something changed in a watched directory since the last call.
    fn has_changed(&self) -> bool {
        self.directories.as_ref().is_some_and(|all| any_changed(all).now_or_never().is_some())
    }

    fn is_watched(&self) -> bool {
        self.directories.as_ref().is_some_and(|all| !all.is_empty() && all.iter().all(DirectoryWatch::is_complete))
    }
}

impl SkillSlot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The skills, if nothing changed since they were confirmed. `generation` is that of the mount's answers.
    pub fn confirmed(&self, generation: u64) -> Option<Arc<SkillSet>> {
        let mut state = self.state();
        if state.has_changed() {
            state.confirmed = None;
        }
        let (at, confirmed) = state.confirmed?;
        let most = if state.is_watched() { RECHECK_WATCHED_AFTER } else { RECHECK_AFTER };
        (confirmed == generation && at.elapsed() < most).then(|| state.set.clone()).flatten()
    }

    /// The skills when they were last confirmed.
    pub fn set(&self) -> Option<Arc<SkillSet>> {
        self.state().set.clone()
    }

    /// True if the directories of the mount have no watch yet.
    pub fn needs_watch(&self) -> bool {
        self.state().directories.is_none()
    }

    /// Stores the watches on all directories of the mount. Empty if there are none.
    pub fn set_watch(&self, directories: Vec<DirectoryWatch>) {
        self.state().directories = Some(directories);
    }

    /// Begins a check: changes before now are covered by it.
    pub fn begin_check(&self) {
        let mut state = self.state();
        state.has_changed();
        state.confirmed = None;
    }

    /// Ends a check: these are the skills, and every kept entry is current. `at`: when the check began.
    pub fn confirm(&self, set: Arc<SkillSet>, at: Instant, generation: u64) {
        let mut state = self.state();
        state.set = Some(set);
        state.confirmed = Some((at, generation));
    }

    /// The kept skills.
    pub fn all_kept(&self) -> Vec<(Arc<str>, KeptSkill)> {
        self.state().kept.iter().map(|(root, kept)| (Arc::clone(root), kept.clone())).collect()
    }

    /// What is kept of the skill in the directory `root`, if it has these files.
    pub fn kept(&self, root: &str, files: &[Arc<str>]) -> Option<SkillResult> {
        let state = self.state();
        state.kept.get(root).filter(|kept| *kept.files == *files).map(|kept| kept.result.clone())
    }

    /// The kept skill in the directory `root`, whatever its files are.
    pub fn kept_at(&self, root: &str) -> Option<Arc<Skill>> {
        self.state().kept.get(root)?.result.clone().ok()
    }

    /// Removes what is kept of one skill.
    pub fn remove(&self, root: &str) {
        self.state().remove(root);
    }

    /// True if there is room for one more skill.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        let weight = state.charge.as_ref().map_or(0, |charge| charge.bytes);
        state.bytes < MAX_SKILLS_BYTES.get() && weight < MAX_SKILLS_MEMORY.get() as u64
    }

    /// Keeps a skill.
    pub fn keep(&self, memory: &Arc<ListingMemory>, root: &Arc<str>, skill: KeptSkill) {
        let mut state = self.state();
        state.remove(root);
        let new = || Charge { memory: Arc::clone(memory), reservation: memory.reserve(), bytes: 0 };
        state.charge.get_or_insert_with(new).grow(skill.weight());
        state.bytes += skill.bytes();
        state.last_used = memory.tick();
        state.kept.insert(Arc::clone(root), skill);
    }

    /// Marks the skills as used now.
    pub fn mark_used(&self, memory: &ListingMemory) {
        self.state().last_used = memory.tick();
    }

    /// Compares contents that were just read with the kept digests. Removes each entry that has other ones.
    pub fn observe(&self, reference: &str, body: &Body) {
        let mut state = self.state();
        let roots = reference.match_indices('/').filter_map(|(at, _)| reference.get(..at)).chain([""]);
        let is_outdated = |root: &&str| {
            let kept = state.kept.get(*root).and_then(|kept| kept.result.as_ref().ok());
            let file = kept.filter(|_| path_below(root, reference).is_some()).and_then(|skill| skill.file(reference));
            file.is_some_and(|file| file.size != body.len() as u64 || file.digest != digest(body))
        };
        let outdated: Vec<_> = roots.filter(is_outdated).collect();
        for root in &outdated {
            state.remove(root);
            state.confirmed = None;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        *self.state() = State::default();
    }

    /// The last use, by [`ListingMemory::tick`]. `None` if nothing is kept.
    pub(super) fn oldest(&self) -> Option<u64> {
        let state = self.state();
        (!state.kept.is_empty()).then_some(state.last_used)
    }
}

/// The digest of a body, as clients get it.
pub fn digest(body: &Body) -> Digest {
    match body {
        Body::Text(text) => Digest::of(text.as_bytes()),
        Body::Blob(bytes) => Digest::of(bytes),
    }
}

#[cfg(test)]
mod tests;
