//! `resources/directory/read`: the direct children of a directory of a skill. They come from the entry of the skill, so
//! that every skill's directories can be listed.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::entry::{MARKDOWN, MAX_DESCRIPTION, SkillEntry, SkillLookupError, skill_uri};
use super::name::SkillName;
use crate::gateway::call_group::CallGroup;
use crate::gateway::pipeline::Gateway;
use crate::interfaces::skills::{SKILL_MD, file_of, path_below};
use crate::model::{ReadError, text};
use crate::policy::{Action, Caller};

/// The most directories around the requested one that may be the skill. Each may cost a call of its provider.
const MAX_PARENTS: usize = 8;

/// The longest name of a child, in characters.
const MAX_NAME: usize = 256;

/// A child of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryChild {
    /// Its URI. That of a directory has no slash at its end.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The description of the skill, if it is a `SKILL.md`.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes. `None` for a directory.
    pub size: Option<u64>,
    /// True for a directory.
    pub is_directory: bool,
}

impl Gateway {
    /// The direct children of the directory of a skill.
    ///
    /// # Errors
    /// [`SkillLookupError::Unknown`] if the URI is no directory of a skill.
    pub async fn skill_directory(&self, caller: &Caller, uri: &str) -> Result<Vec<DirectoryChild>, SkillLookupError> {
        let named = self.skill_name(&caller.principal, uri).await;
        // A skill in the directory of the mount itself has a URI without a slash at its end.
        let with_slash = format!("{uri}/");
        let named = match named {
            Some(named) => Some(named),
            None => self.skill_name(&caller.principal, &with_slash).await.filter(|named| named.reference.is_empty()),
        };
        let SkillName { mount, reference } = named.ok_or(SkillLookupError::Unknown)?;
        let is_directory = !reference.ends_with('/') && !reference.contains('?');
        let visible = self.skill_visibility(&caller.principal, &mount);
        if !is_directory || visible.is_nothing() {
            return Err(SkillLookupError::Unknown);
        }
        let counted = self.count_action(caller, Action::List, Some(&mount.name)).await;
        let quota = counted.map_err(SkillLookupError::Failed)?;
        let group = CallGroup::new(&self.audit, caller);
        let parents = reference.rmatch_indices('/').filter_map(|(at, _)| reference.get(..at));
        let mut roots: Vec<&str> = std::iter::once(reference).chain(parents).take(MAX_PARENTS).collect();
        if !reference.is_empty() {
            roots.push("");
        }
        let mut failed = None;
        for root in roots {
            match self.find_skill(&group, &mount, &visible, root).await {
                Ok(skill) => {
                    let children = children(&skill, reference);
                    if !children.is_empty() {
                        quota.charge(children.iter().map(|child| child.uri.len() + child.name.len()).sum()).await;
                        return Ok(children);
                    }
                }
                // A directory inside may be another skill that is valid, or this one inside of a valid one.
                Err(SkillLookupError::Unknown | SkillLookupError::Invalid(_)) => {}
                Err(SkillLookupError::Failed(fault)) if fault.error == ReadError::NotFound => {}
                Err(error @ SkillLookupError::Failed(_)) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or(SkillLookupError::Unknown))
    }
}

/// The children of the directory `below` of a skill. Empty if it is none.
fn children(SkillEntry { mount, skill }: &SkillEntry, below: &str) -> Vec<DirectoryChild> {
    let mut all = BTreeMap::new();
    for file in &skill.files {
        let Some(path) = path_below(below, &file.reference) else { continue };
        let (segment, is_directory) = match path.split_once('/') {
            Some((directory, _)) => (directory, true),
            None => (path, false),
        };
        let uri = skill_uri(mount, &file_of(below, segment));
        let decoded = percent_decode_str(segment).decode_utf8_lossy();
        let mut child = DirectoryChild {
            uri,
            name: text::excerpt(&decoded, MAX_NAME),
            description: None,
            mime_type: if is_directory { None } else { file.mime_type.clone() },
            size: (!is_directory).then_some(file.size),
            is_directory,
        };
        if file.reference.as_ref() == file_of(&skill.root, SKILL_MD) && !is_directory {
            child.name.clone_from(&skill.frontmatter.name);
            child.description = Some(text::excerpt(&skill.frontmatter.description, MAX_DESCRIPTION));
        }
        if segment == SKILL_MD && !is_directory {
            child.mime_type = Some(MARKDOWN.to_owned());
        }
        all.insert((segment, is_directory), child);
    }
    all.into_values().collect()
}
