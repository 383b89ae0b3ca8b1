//! Computes entries of skills: reads every file as it is served, in one pass.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::Instant;

use super::entry::is_passing;
use crate::catalog::Mount;
use crate::catalog::skills::{KeptSkill, RevisionHash, Skill, SkillFile, digest};
use crate::gateway::call_group::CallGroup;
use crate::gateway::pipeline::{Gateway, MountCall};
use crate::interfaces::resources;
use crate::interfaces::skills::frontmatter::Frontmatter;
use crate::interfaces::skills::{SKILL_MD, UnfitSkill, file_of};
use crate::model::bounds::{MAX_SKILL_BYTES, MAX_SKILL_FILES};
use crate::model::error::show_bytes;
use crate::model::{Body, ReadError, text};

/// Files of one skill that are read at once.
const CONCURRENT_READS: usize = 4;

/// Skills that are computed at once.
const CONCURRENT_SKILLS: usize = 2;

/// A skill that is to be computed: its directory and its files.
pub(super) type SkillCandidate = (Arc<str>, Arc<[Arc<str>]>);

/// A skill that was computed.
#[derive(Clone, Debug)]
pub(super) enum BuiltSkill {
    /// The skill.
    Skill(Arc<Skill>),
    /// The directory is no valid skill.
    Refused(UnfitSkill),
    /// A file could not be read now.
    Failed(ReadError),
}

/// Why a skill was not computed.
enum BuildError {
    Refused(String),
    Failed(ReadError),
}

/// A file that was read.
struct ReadFile {
    file: SkillFile,
    body: Body,
    fresh_for: Option<Duration>,
}

impl Gateway {
    /// Computes these skills, and keeps them if `keeps`. The results are in order.
    pub(super) async fn build_skills(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        candidates: &[SkillCandidate],
        (by, keeps): (Instant, bool),
    ) -> Vec<BuiltSkill> {
        // Before the files are read: a file that changes meanwhile has another revision afterwards.
        let is_small = |(_, files): &&SkillCandidate| files.len() <= MAX_SKILL_FILES.get();
        let files = candidates.iter().filter(is_small).flat_map(|(_, files)| files.iter().cloned()).collect();
        let revisions = self.file_revisions(group, mount, files).await;
        let mut rest = revisions.as_slice();
        let mut jobs: Vec<(SkillCandidate, Option<Arc<[RevisionHash]>>)> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let own = if is_small(&candidate) { candidate.1.len() } else { 0 };
            let (own, others) = rest.split_at_checked(own).unwrap_or_default();
            rest = others;
            let known: Option<Arc<[RevisionHash]>> = own.iter().copied().collect();
            jobs.push((candidate.clone(), known.filter(|_| !own.is_empty())));
        }
        let options = (by, keeps);
        let jobs = jobs.into_iter().map(|(candidate, known)| self.build_kept(group, mount, candidate, known, options));
        let built: Vec<BuiltSkill> = stream::iter(jobs).buffered(CONCURRENT_SKILLS).collect().await;
        self.catalog.caches().evict();
        built
    }

    /// Computes one skill, and keeps it if `keeps`. `revisions`: those of its files, before it is computed.
    async fn build_kept(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        candidate: SkillCandidate,
        revisions: Option<Arc<[RevisionHash]>>,
        (by, keeps): (Instant, bool),
    ) -> BuiltSkill {
        let (built, fresh_for) = match self.build_skill(group, mount, &candidate, by).await {
            Ok((skill, fresh_for)) => (BuiltSkill::Skill(Arc::new(skill)), fresh_for),
            Err(BuildError::Refused(why)) => (BuiltSkill::Refused(UnfitSkill::new(&candidate.0, why)), None),
            Err(BuildError::Failed(error)) => (BuiltSkill::Failed(error), None),
        };
        let result = match &built {
            BuiltSkill::Skill(skill) => Ok(Arc::clone(skill)),
            BuiltSkill::Refused(why) => Err(why.clone()),
            BuiltSkill::Failed(_) => return built,
        };
        let listings = mount.listings(&group.caller().principal);
        if keeps && listings.skills.has_room() {
            let fresh_until = fresh_for.map(|time| Instant::now() + time);
            let (root, files) = candidate;
            let kept = KeptSkill { files, revisions, fresh_until, result };
            listings.skills.keep(self.catalog.caches().memory(), &root, kept);
        }
        built
    }

    /// Computes one skill. Returns it, and the time for which all of its files may be served again.
    async fn build_skill(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        (root, files): &SkillCandidate,
        by: Instant,
    ) -> Result<(Skill, Option<Duration>), BuildError> {
        let (count, most) = (files.len(), MAX_SKILL_FILES.get());
        if count > most {
            return Err(BuildError::Refused(format!("it has {count} files; the limit is {most}")));
        }
        let skill_md = file_of(root, SKILL_MD);
        // First, because most bad skills end here.
        let first = self.read_for_skill(group, mount, skill_md.as_str().into(), by).await?;
        let Body::Text(file) = &first.body else {
            return Err(BuildError::Refused(format!("its {SKILL_MD} is not text")));
        };
        let refused = |why| BuildError::Refused(format!("its {SKILL_MD}, {why}"));
        let frontmatter = Frontmatter::parse(file).map_err(refused)?;
        let expected = if root.is_empty() { mount.name.as_str() } else { root.rsplit('/').next().unwrap_or_default() };
        if frontmatter.name != expected {
            let (name, expected) = (text::quoted(&frontmatter.name, 100), text::quoted(expected, 100));
            return Err(BuildError::Refused(format!(
                "its {SKILL_MD} has the name {name}; expected {expected}, as its directory"
            )));
        }
        let mut fresh_for = first.fresh_for;
        let mut total = first.file.size;
        let mut all = vec![first.file];
        let others: Vec<Arc<str>> = files.iter().filter(|file| file.as_ref() != skill_md).cloned().collect();
        let reads = others.into_iter().map(|file: Arc<str>| self.read_for_skill(group, mount, file, by));
        let mut reads = stream::iter(reads).buffered(CONCURRENT_READS);
        while let Some(read) = reads.next().await {
            let ReadFile { file, body: _, fresh_for: own } = read?;
            fresh_for = fresh_for.zip(own).map(|(a, b)| a.min(b));
            total += file.size;
            if total > MAX_SKILL_BYTES.get() {
                let most = show_bytes(MAX_SKILL_BYTES.get());
                return Err(BuildError::Refused(format!("its files have more than {most}")));
            }
            all.push(file);
        }
        all.sort_unstable_by(|a, b| a.reference.cmp(&b.reference));
        Ok((Skill { root: Arc::clone(root), frontmatter, files: all }, fresh_for))
    }

    /// Reads one file, as a client would get it.
    async fn read_for_skill(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        reference: Arc<str>,
        by: Instant,
    ) -> Result<ReadFile, BuildError> {
        let shown = || text::quoted(&reference, 200);
        let call = MountCall::in_group(group, mount).with_deadline(by);
        let (reading, mut cost) = self.call(call, resources::Read { reference: reference.to_string() }).await;
        let mut reading = reading.map_err(|error| match is_passing(&error) {
            true => BuildError::Failed(error),
            false => BuildError::Refused(format!("the file {}: {}", shown(), error.with_cure(Some(&mount.name)))),
        })?;
        let is_itself = |given: &str| given.strip_prefix(&mount.base) == Some(&*reference);
        match (reading.contents.pop(), reading.contents.as_slice()) {
            (Some(contents), []) if is_itself(&contents.reference) => {
                let size = contents.body.len();
                let digest = cost.charge(size, || digest(&contents.body));
                let (reference, mime_type) = (Arc::clone(&reference), contents.mime_type);
                let file = SkillFile { reference, digest, size: size as u64, mime_type };
                Ok(ReadFile { file, body: contents.body, fresh_for: reading.fresh_for })
            }
            _ => Err(BuildError::Refused(format!("{} reads as several resources; expected one file", shown()))),
        }
    }
}
