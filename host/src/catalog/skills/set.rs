//! The skills that a mount has: their directories and files, before any file is read.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use crate::catalog::notice::Notice;
use crate::interfaces::skills::{is_file, root_of};
use crate::model::bounds::MAX_SKILLS;
use crate::model::{SkillFiles, reference};

/// The skills of a mount at one moment, sorted by directory. Immutable.
#[derive(Debug, Default)]
pub struct SkillSet {
    id: u32,
    revision: Option<String>,
    /// The files of all skills. Nested skills share theirs with the skills around them.
    references: Vec<Arc<str>>,
    /// The directories, each with its part of `references`.
    skills: Vec<(Arc<str>, Range<usize>)>,
    /// Why skills are missing.
    notices: Vec<Notice>,
}

impl SkillSet {
    fn new(references: Vec<Arc<str>>, skills: Vec<(Arc<str>, Range<usize>)>) -> Self {
        // Random, so that a cursor of an earlier set does not match by chance.
        let id = u32::try_from(RandomState::new().hash_one(0) & u64::from(u32::MAX)).unwrap_or_default();
        Self { id, references, skills, ..Self::default() }
    }

    /// The skills among listed resources: each directory with a `SKILL.md`, with all files below it.
    pub fn of_listing(listed: Vec<String>) -> Self {
        let mut listed: Vec<String> = listed.into_iter().filter(|reference| is_file(reference)).collect();
        listed.sort_unstable();
        listed.dedup();
        let mut seen = HashSet::new();
        let roots: Vec<String> = listed
            .iter()
            .filter_map(|reference| root_of(reference))
            .filter(|root| seen.insert(reference::unescaped(root).into_owned()))
            .map(str::to_owned)
            .collect();
        let known: HashSet<&str> = roots.iter().map(String::as_str).collect();
        let is_below = |reference: &String| {
            let mut parents = reference.match_indices('/').filter_map(|(at, _)| reference.get(..at));
            known.contains("") || parents.any(|parent| known.contains(parent))
        };
        let references: Vec<Arc<str>> =
            listed.iter().filter(|one| is_below(one)).map(|one| one.as_str().into()).collect();
        let mut skills: Vec<_> = roots
            .iter()
            .map(|root| {
                let prefix = if root.is_empty() { String::new() } else { format!("{root}/") };
                let start = references.partition_point(|one| one.as_ref() < prefix.as_str());
                let below = references.iter().skip(start).take_while(|one| one.starts_with(&prefix)).count();
                (Arc::<str>::from(root.as_str()), start..start + below)
            })
            .collect();
        skills.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Self::new(references, skills)
    }

    /// The skills that a provider named, each once.
    pub fn of_provider(mut named: Vec<SkillFiles>) -> Self {
        named.sort_unstable_by(|a, b| a.root.cmp(&b.root));
        let mut seen = HashSet::new();
        let (mut references, mut skills) = (Vec::new(), Vec::new());
        for SkillFiles { root, files } in named {
            if !seen.insert(reference::unescaped(&root).into_owned()) {
                continue;
            }
            let start = references.len();
            references.extend(files.into_iter().map(Arc::<str>::from));
            skills.push((Arc::<str>::from(root), start..references.len()));
        }
        Self::new(references, skills)
    }

    /// The same at this revision of the mount's list, with notices about missing skills.
    #[must_use]
    pub fn with(self, revision: Option<String>, notices: Vec<Notice>) -> Self {
        Self { revision, notices, ..self }
    }

    /// The id, for cursors.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The revision of the mount's list.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// Why skills are missing.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The number of skills.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The number of skills that are listed.
    pub fn listed(&self) -> usize {
        self.skills.len().min(MAX_SKILLS.get())
    }

    /// The directory and the files of the skill at this index.
    pub fn get(&self, index: usize) -> Option<(&Arc<str>, &[Arc<str>])> {
        let (root, range) = self.skills.get(index)?;
        Some((root, self.references.get(range.clone())?))
    }

    /// The skill in the directory `root`.
    pub fn find(&self, root: &str) -> Option<(&Arc<str>, &[Arc<str>])> {
        let at = self.skills.binary_search_by(|(own, _)| own.as_ref().cmp(root)).ok()?;
        self.get(at)
    }
}
