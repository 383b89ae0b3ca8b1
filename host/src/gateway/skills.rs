//! Skills (SEP-2640): directories with a `SKILL.md`, listed with the digests of their files.
//!
//! A provider names files, or the operator says that each listed directory with a `SKILL.md` is a skill. The host reads
//! the files as it serves them, and computes the entries. A principal sees a skill if it may list and read every file of
//! it; otherwise the skill looks as if it were not there.

mod build;
mod directory;
mod entry;
mod find;
mod list;
mod name;

pub use directory::DirectoryChild;
pub use entry::{MARKDOWN, SCHEME, SkillEntry, SkillLookupError, skill_uri};
pub use list::SkillList;

#[cfg(test)]
mod tests;
