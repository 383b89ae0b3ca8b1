//! Lists of definitions: the tools of a provider, or its prompts. A list is one reply, sorted by name.

use std::sync::Arc;

use crate::model::bounds::{MAX_DEFINITION_BYTES, MAX_DEFINITIONS};
use crate::model::{Guard, ReadError, text};

/// The longest name of a tool or a prompt in its provider.
pub const MAX_TOOL_NAME: usize = 48;

/// The most reasons that one list keeps for what was left out.
const MAX_REASONS: usize = 16;

/// The definition of a tool or a prompt.
pub trait Definition: Send + Sync + 'static {
    /// Its name in its provider.
    fn name(&self) -> &str;
}

/// The checked definitions of one provider.
#[derive(Debug)]
pub struct CheckedDefinitions<D> {
    /// The definitions, sorted by name, each name once.
    pub all: Vec<Arc<D>>,
    /// Why others were left out; sanitised.
    pub left_out: Vec<String>,
    /// The bytes of all definitions.
    pub bytes: usize,
}

impl<D> Default for CheckedDefinitions<D> {
    fn default() -> Self {
        Self { all: Vec::new(), left_out: Vec::new(), bytes: 0 }
    }
}

impl<D: Definition> CheckedDefinitions<D> {
    /// The definition with this name.
    pub fn find(&self, name: &str) -> Option<&Arc<D>> {
        let at = self.all.binary_search_by(|one| one.name().cmp(name)).ok()?;
        self.all.get(at)
    }
}

/// Why a definition is left out.
pub(super) struct DefinitionError(pub(super) String);

impl From<String> for DefinitionError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// True unless a test switched the checks of names off.
pub fn are_names_checked() -> bool {
    Guard::ToolName.is_on()
}

/// The rule for names of tools, prompts and arguments, for errors.
pub(super) fn name_rule() -> String {
    format!("a name has 1 to {MAX_TOOL_NAME} letters, digits, \"_\" and \"-\"")
}

/// True if a tool, a prompt or an argument may have this name.
pub(super) fn is_name(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !are_names_checked() || ((1..=MAX_TOOL_NAME).contains(&name.len()) && name.bytes().all(is_letter))
}

/// Checks the reply of `function`: a list of things, each called `what`. Leaves out those that break a rule.
///
/// # Errors
/// If there are too many.
pub(super) fn check_definitions<G, D: Definition>(
    given: Vec<G>,
    function: &str,
    what: &str,
    bytes_of: impl Fn(&G) -> usize,
    name_of: impl Fn(&G) -> &str,
    define: impl Fn(G) -> Result<D, DefinitionError>,
) -> Result<CheckedDefinitions<D>, ReadError> {
    let (count, most) = (given.len(), MAX_DEFINITIONS.get());
    if count > most {
        return Err(ReadError::BadOutput(format!("{function} gave {count} {what}s; the limit is {most}")));
    }
    let mut list = CheckedDefinitions::default();
    for one in given {
        let shown = text::quoted(name_of(&one), 80);
        let bytes = bytes_of(&one);
        let why = match define(one) {
            Ok(_) if list.bytes.saturating_add(bytes) > MAX_DEFINITION_BYTES.get() => {
                format!("all {what}s together have more than {} bytes", MAX_DEFINITION_BYTES.get())
            }
            Ok(definition) => {
                list.bytes = list.bytes.saturating_add(bytes);
                list.all.push(Arc::new(definition));
                continue;
            }
            Err(DefinitionError(why)) => why,
        };
        if list.left_out.len() < MAX_REASONS {
            list.left_out.push(format!("the {what} {shown} is left out: {why}"));
        }
    }
    list.all.sort_by(|one, other| one.name().cmp(other.name()));
    if are_names_checked() {
        let mut twice = Vec::new();
        list.all.dedup_by(|later, first| {
            let is_same = later.name() == first.name();
            if is_same {
                twice.push(format!(
                    "the {what} {} is listed twice; the first one is served",
                    text::quoted(first.name(), 80)
                ));
            }
            is_same
        });
        list.left_out.extend(twice);
        list.left_out.truncate(MAX_REASONS);
    }
    Ok(list)
}
