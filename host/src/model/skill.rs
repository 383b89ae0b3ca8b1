//! Skills as a provider names them: directories and their files.

use serde::{Deserialize, Serialize};

/// A skill: its directory, and its files. Relative references.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFiles {
    /// The directory, without a slash at its end.
    pub root: String,
    /// Every file below the directory, with `SKILL.md`.
    pub files: Vec<String>,
}

/// One page of a provider's list of skills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillPage {
    /// The skills.
    pub skills: Vec<SkillFiles>,
    /// The provider's cursor for the next page; `None` on the last page.
    pub next: Option<String>,
}
