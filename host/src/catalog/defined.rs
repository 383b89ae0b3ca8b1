//! The kinds of definitions that providers list: tools and prompts.

use super::definitions::DefinitionSlot;
use super::mount_cache::Listings;
use crate::interfaces::definitions::{CheckedDefinitions, Definition};
use crate::interfaces::prompts::ListPrompts;
use crate::interfaces::tools::{ListTools, ToolDefinition};
use crate::interfaces::{Exported, Interfaces};
use crate::model::Prompt;
use crate::policy::Action;

/// A kind of definitions that a provider lists: tools or prompts.
pub trait Defined: Definition + Sized {
    /// The function that lists them.
    type List: Exported<Checked = CheckedDefinitions<Self>>;

    /// What one of them is called: `tool`.
    const WHAT: &'static str;

    /// The action of who uses one.
    const ACTION: Action;

    /// A call of that function.
    fn list() -> Self::List;

    /// The slot of this kind.
    fn slot(listings: &Listings) -> &DefinitionSlot<Self>;

    /// True if a component with these interfaces has such definitions.
    fn is_exported(interfaces: Interfaces) -> bool;
}

impl Defined for ToolDefinition {
    type List = ListTools;
    const WHAT: &'static str = "tool";
    const ACTION: Action = Action::Call;

    fn list() -> ListTools {
        ListTools
    }

    fn slot(listings: &Listings) -> &DefinitionSlot<Self> {
        &listings.tools
    }

    fn is_exported(interfaces: Interfaces) -> bool {
        interfaces.tools
    }
}

impl Defined for Prompt {
    type List = ListPrompts;
    const WHAT: &'static str = "prompt";
    const ACTION: Action = Action::Prompt;

    fn list() -> ListPrompts {
        ListPrompts
    }

    fn slot(listings: &Listings) -> &DefinitionSlot<Self> {
        &listings.prompts
    }

    fn is_exported(interfaces: Interfaces) -> bool {
        interfaces.prompts
    }
}
