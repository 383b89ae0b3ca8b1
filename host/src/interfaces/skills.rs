//! `skill-provider`, an optional interface: the skills of a provider, each a directory with its files. Providers name
//! files only. The host reads them and computes digests and frontmatter.

pub(super) mod conformance;
pub mod frontmatter;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::fields::{ENTRY_CHARGE, text_bytes};
use super::function::{Function, MountContext, Returned};
use super::generated::skill_provider as generated;
use super::redaction::mask_optional;
use crate::grants::secrets::Redactor;
use crate::model::bounds::MAX_SKILL_FILES;
use crate::model::{ReadError, SkillFiles, SkillPage, reference, text};
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "skill-provider";

/// The indices of the interface's functions in a component.
pub(super) type SkillIndices = generated::GuestIndices;

/// The file that makes a directory a skill.
pub const SKILL_MD: &str = "SKILL.md";

/// A page of a provider's list: the skills, or the reason why one is left out; and the provider's cursor of the next
/// page.
pub type CheckedSkills = (Vec<Result<SkillFiles, UnfitSkill>>, Option<String>);

/// Why a skill is left out. `root` is quoted and cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the skill {root}: {why}")]
pub struct UnfitSkill {
    /// The directory.
    pub root: String,
    /// The reason.
    pub why: String,
}

impl UnfitSkill {
    /// The reason why the skill in the directory `root` is left out.
    pub fn new(root: &str, why: impl Into<String>) -> Self {
        Self { root: text::quoted(root, 200), why: why.into() }
    }
}

/// The reference of a file below the directory `root`.
pub fn file_of(root: &str, file: &str) -> String {
    if root.is_empty() { file.to_owned() } else { [root, "/", file].concat() }
}

/// The directory of the `SKILL.md` with this reference.
pub fn root_of(reference: &str) -> Option<&str> {
    let before = reference.strip_suffix(SKILL_MD)?;
    if before.is_empty() { Some(before) } else { before.strip_suffix('/') }
}

/// The path of `reference` below the directory `root`.
pub fn path_below<'r>(root: &str, reference: &'r str) -> Option<&'r str> {
    match root.is_empty() {
        true => Some(reference),
        false => reference.strip_prefix(root)?.strip_prefix('/'),
    }
}

/// True if `reference` may be a file: it has no query, and does not end in a slash.
pub fn is_file(reference: &str) -> bool {
    !reference.is_empty() && !reference.ends_with('/') && !reference.contains('?')
}

impl From<generated::SkillInfo> for SkillFiles {
    fn from(info: generated::SkillInfo) -> Self {
        Self { root: info.root, files: info.files }
    }
}

/// The size of a skill, in bytes.
fn bytes(skill: &SkillFiles) -> usize {
    ENTRY_CHARGE + skill.root.len() + skill.files.iter().map(|file| ENTRY_CHARGE + file.len()).sum::<usize>()
}

fn redact(SkillFiles { root, files }: &mut SkillFiles, redactor: &Redactor) {
    redactor.mask(root);
    files.iter_mut().for_each(|file| redactor.mask(file));
}

/// Checks the names of a skill. Sorts its files.
fn check(mut skill: SkillFiles, names: &dyn MountContext) -> Result<SkillFiles, UnfitSkill> {
    let bad = |why: String| UnfitSkill::new(&skill.root, why);
    reference::check(&skill.root).map_err(|why| bad(why.to_string()))?;
    if skill.root.ends_with('/') || skill.root.contains('?') {
        return Err(bad("expected a directory without a slash at its end and without a query".to_owned()));
    }
    let (count, most) = (skill.files.len(), MAX_SKILL_FILES.get());
    if count > most {
        return Err(bad(format!("it has {count} files; the limit is {most}")));
    }
    let mut seen = HashSet::new();
    for file in &skill.files {
        let shown = || text::quoted(file, 200);
        reference::check(file).map_err(|why| bad(format!("the file {} {why}", shown())))?;
        if path_below(&skill.root, file).is_none() || !is_file(file) {
            return Err(bad(format!("{} is no file below its directory", shown())));
        }
        if !seen.insert(reference::unescaped(file)) {
            return Err(bad(format!("{} is named twice", shown())));
        }
        names.absolute(file).map_err(|why| bad(why.to_string()))?;
    }
    if !skill.files.contains(&file_of(&skill.root, SKILL_MD)) {
        return Err(bad(format!("its files lack \"{SKILL_MD}\"")));
    }
    skill.files.sort_unstable();
    Ok(skill)
}

/// `list-skills`, from the start or from one of the provider's cursors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSkills {
    /// The provider's own cursor, unchanged.
    pub cursor: Option<String>,
}

impl Function for ListSkills {
    type Indices = SkillIndices;
    type Reply = SkillPage;
    type Checked = CheckedSkills;
    const NAME: &'static str = "list-skills";
    const ACTION: Action = Action::List;

    fn input(&self) -> Option<Vec<&str>> {
        Some(self.cursor.iter().map(String::as_str).collect())
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &SkillIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<SkillPage> {
        let guest = indices.load(&mut *store, instance)?;
        let page = guest.call_list_skills(store, self.cursor.as_deref()).await?;
        let page = page.map(|page| SkillPage {
            skills: page.skills.into_iter().map(Into::into).collect(),
            next: page.next_cursor,
        });
        Ok(page.map_err(Into::into))
    }

    fn bytes(page: &SkillPage) -> usize {
        page.skills.iter().map(bytes).sum::<usize>() + text_bytes(page.next.as_ref())
    }

    fn redact(SkillPage { skills, next }: &mut SkillPage, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        mask_optional(next, redactor);
        skills.iter_mut().for_each(|skill| redact(skill, redactor));
    }

    /// Always measured: each name is checked and routed.
    fn effort(_: &SkillPage) -> usize {
        usize::MAX
    }

    /// Checks each skill for itself, so that a bad one does not hide the others.
    fn check(&self, page: SkillPage, names: &dyn MountContext) -> Result<CheckedSkills, ReadError> {
        Ok((page.skills.into_iter().map(|skill| check(skill, names)).collect(), page.next))
    }
}

/// `get-skill`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetSkill {
    /// The directory: a checked relative reference.
    pub root: String,
}

impl Function for GetSkill {
    type Indices = SkillIndices;
    type Reply = SkillFiles;
    type Checked = SkillFiles;
    const NAME: &'static str = "get-skill";
    const ACTION: Action = Action::List;

    fn input(&self) -> Option<Vec<&str>> {
        Some(vec![&self.root])
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.root)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &SkillIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<SkillFiles> {
        let guest = indices.load(&mut *store, instance)?;
        let skill = guest.call_get_skill(store, &self.root).await?;
        Ok(skill.map(Into::into).map_err(Into::into))
    }

    fn bytes(skill: &SkillFiles) -> usize {
        bytes(skill)
    }

    fn redact(skill: &mut SkillFiles, redactor: Option<&Redactor>) {
        if let Some(redactor) = redactor {
            redact(skill, redactor);
        }
    }

    /// Always measured: each name is checked and routed.
    fn effort(_: &SkillFiles) -> usize {
        usize::MAX
    }

    /// Checks the skill, and that it is the requested one.
    fn check(&self, skill: SkillFiles, names: &dyn MountContext) -> Result<SkillFiles, ReadError> {
        if skill.root != self.root {
            return Err(ReadError::BadOutput(format!(
                "get-skill of {} gave the skill {}; expected the requested one",
                text::quoted(&self.root, 100),
                text::quoted(&skill.root, 100)
            )));
        }
        check(skill, names).map_err(|why| ReadError::BadOutput(why.to_string()))
    }
}
