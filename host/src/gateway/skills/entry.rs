//! A skill for callers of the gateway, its names, and who may see it.

use std::sync::Arc;

use crate::catalog::Mount;
use crate::catalog::skills::Skill;
use crate::gateway::pipeline::Gateway;
use crate::interfaces::skills::{SKILL_MD, file_of, root_of};
use crate::model::error::LimitKind;
use crate::model::{Fault, MountName, ReadError, Resource, text};
use crate::policy::{Action, Principal, Visibility};

/// The scheme of the second names of a mount's files.
pub const SCHEME: &str = "skill://";

/// The media type of a `SKILL.md`.
pub const MARKDOWN: &str = "text/markdown";

/// The longest description of a resource, in characters.
pub(super) const MAX_DESCRIPTION: usize = 4096;

/// The URI of a file of a skill.
pub fn skill_uri(mount: &MountName, reference: &str) -> String {
    [SCHEME, mount.as_str(), "/", reference].concat()
}

/// A skill and its mount.
#[derive(Clone, Debug)]
pub struct SkillEntry {
    /// The mount.
    pub mount: MountName,
    /// The skill.
    pub skill: Arc<Skill>,
}

impl SkillEntry {
    /// The URI of its `SKILL.md`.
    pub fn uri(&self) -> String {
        skill_uri(&self.mount, &file_of(&self.skill.root, SKILL_MD))
    }
}

/// Why there is no skill or directory.
#[derive(Clone, Debug)]
pub enum SkillLookupError {
    /// There is none of this name, or it is hidden.
    Unknown,
    /// The directory is no valid skill. Says why.
    Invalid(String),
    /// The mount failed.
    Failed(Fault),
}

/// The part of a mount whose files a principal may both list and read.
pub(super) struct SkillVisibility {
    list: Visibility,
    read: Visibility,
}

impl SkillVisibility {
    pub(super) fn is_nothing(&self) -> bool {
        self.list.is_nothing() || self.read.is_nothing()
    }

    pub(super) fn is_all(&self) -> bool {
        self.list.is_all() && self.read.is_all()
    }

    pub(super) fn is_judged(&self) -> bool {
        self.list.is_judged() || self.read.is_judged()
    }

    pub(super) fn contains(&self, reference: &str) -> bool {
        self.list.contains(reference) && self.read.contains(reference)
    }

    pub(super) fn contains_all(&self, files: &[Arc<str>]) -> bool {
        self.is_all() || files.iter().all(|file| self.contains(file))
    }
}

impl Gateway {
    /// True if a mount has skills, or may have some later because components are still being loaded, or may change while belljar runs.
    pub fn may_have_skills(&self) -> bool {
        self.subscriptions.settings.reload
            || !self.catalog.is_loaded()
            || self.catalog.snapshot().mounts().iter().any(|mount| mount.has_skills())
    }

    pub(super) fn skill_visibility(&self, principal: &Principal, mount: &Mount) -> SkillVisibility {
        let of = |action| self.visibility(principal, action, mount);
        SkillVisibility { list: of(Action::List), read: of(Action::Read) }
    }

    /// Gives the listed `SKILL.md` of each kept skill the name and the description of its frontmatter. Makes no call.
    pub fn name_skills<'r>(
        &self,
        principal: &Principal,
        listed: impl Iterator<Item = (&'r mut Resource, &'r MountName)>,
    ) {
        let snapshot = self.catalog.snapshot();
        for (resource, mount) in listed.filter(|(resource, _)| resource.reference.ends_with(SKILL_MD)) {
            let Some(mount) = snapshot.find(mount).filter(|mount| mount.has_skills()) else { continue };
            let reference = resource.reference.strip_prefix(&mount.base);
            let Some(root) = reference.and_then(root_of) else { continue };
            let Some(skill) = mount.listings(principal).skills.kept_at(root) else { continue };
            let visible = self.skill_visibility(principal, mount);
            if visible.is_all() || skill.files.iter().all(|file| visible.contains(&file.reference)) {
                resource.name.clone_from(&skill.frontmatter.name);
                resource.description = Some(text::excerpt(&skill.frontmatter.description, MAX_DESCRIPTION));
                resource.mime_type = Some(MARKDOWN.to_owned());
            }
        }
    }
}

/// True if the same call may succeed a moment later, so that the result must not be kept.
pub(super) fn is_passing(error: &ReadError) -> bool {
    match error {
        ReadError::NotFound
        | ReadError::NotFoundWithHint { .. }
        | ReadError::BadUri(_)
        | ReadError::Invalid(_)
        | ReadError::Denied { .. }
        | ReadError::ProviderFailed(_)
        | ReadError::Trapped(_)
        | ReadError::BadOutput(_) => false,
        ReadError::Exhausted(limit) => limit.kind != LimitKind::Result,
        _ => true,
    }
}
