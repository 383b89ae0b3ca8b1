//! Why a frontmatter is refused: the line, and the rule with its cure.

use crate::model::bounds::{MAX_FRONTMATTER, MAX_FRONTMATTER_DEPTH, MAX_FRONTMATTER_NODES};
use crate::model::error::show_bytes;

/// The longest name of a skill, in characters.
pub(super) const MAX_NAME: usize = 64;

/// Why a frontmatter is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct FrontmatterError {
    /// The line in the file, from 1.
    pub line: usize,
    /// The rule that it breaks.
    pub problem: FrontmatterProblem,
}

/// The rule that a frontmatter breaks.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FrontmatterProblem {
    /// It does not begin.
    #[error("expected \"---\" and nothing else, which begins the frontmatter")]
    NoBegin,
    /// It does not end.
    #[error("the frontmatter has no end; expected a line \"---\"")]
    NoEnd,
    /// It is too long.
    #[error("the frontmatter is longer than {}", show_bytes(MAX_FRONTMATTER.get() as u64))]
    TooLong,
    /// It contains a character that is invisible, or that only some parsers take for a line break.
    #[error("U+{0:04X} is invisible or controls the text; remove it")]
    Character(u32),
    /// It is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// It has an anchor or an alias.
    #[error("anchors and aliases (\"&\", \"*\") are not allowed; write the value again, or quote it")]
    Anchor,
    /// It has a tag.
    #[error("tags (\"!\") are not allowed; quote the value")]
    Tag,
    /// It has a directive, or several documents.
    #[error("expected one YAML document, without directives (\"%\") and markers (\"...\")")]
    Documents,
    /// It is nested too deeply.
    #[error("nested more than {} levels deep", MAX_FRONTMATTER_DEPTH.get())]
    Depth,
    /// It has too many values.
    #[error("more than {} values", MAX_FRONTMATTER_NODES.get())]
    Nodes,
    /// It is no mapping.
    #[error("expected keys and values, such as \"name: my-skill\"")]
    NoMapping,
    /// A key is no text.
    #[error("a key is not text; quote it")]
    Key,
    /// A key is a merge key of YAML 1.1.
    #[error("\"<<\" merges mappings in some parsers only; write the keys themselves, or quote it")]
    Merge,
    /// A key stands twice in a mapping.
    #[error("the key {0} stands there twice")]
    Duplicate(String),
    /// A number has no exact form in JSON.
    #[error("{0} has no exact form in JSON; quote it")]
    Number(String),
    /// A number has another value in other versions of YAML.
    #[error("{0} is read in different ways by parsers; quote it")]
    Ambiguous(String),
    /// Parsers differ on the line breaks of a block.
    #[error("{0}; parsers differ here: write the text on one line in quotes, or as a block \"|\"")]
    Block(&'static str),
    /// A required key is missing.
    #[error("the key \"{0}\" is missing")]
    Missing(&'static str),
    /// The value of a key is no text, or empty.
    #[error("the value of \"{0}\" must be text, and not empty")]
    NoText(&'static str),
    /// The name breaks the rules for names.
    #[error(
        "the name {0} is not valid; expected 1 to {MAX_NAME} characters of a-z, 0-9 and \"-\", without \"-\" at an edge and without \"--\""
    )]
    Name(String),
}
