//! The kinds of lists whose changes clients are told of.

use crate::policy::Action;

/// A kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    /// Resources and templates.
    Resources,
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
}

impl ListKind {
    /// Every kind.
    pub(super) const ALL: [Self; 3] = [Self::Resources, Self::Tools, Self::Prompts];

    /// The action of who may see the list.
    pub(in crate::gateway) fn action(self) -> Action {
        match self {
            Self::Resources => Action::List,
            Self::Tools => Action::Call,
            Self::Prompts => Action::Prompt,
        }
    }
}

/// The kinds of lists of which a subscriber wants to know changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedLists {
    /// Resources and templates.
    pub resources: bool,
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
}

impl WantedLists {
    /// All kinds.
    pub const ALL: Self = Self { resources: true, tools: true, prompts: true };

    /// No kind.
    pub const NONE: Self = Self { resources: false, tools: false, prompts: false };

    /// True if any kind is wanted.
    pub fn is_any(self) -> bool {
        self != Self::NONE
    }

    /// True if this kind is wanted.
    pub fn wants(self, kind: ListKind) -> bool {
        match kind {
            ListKind::Resources => self.resources,
            ListKind::Tools => self.tools,
            ListKind::Prompts => self.prompts,
        }
    }

    /// The wanted kinds.
    pub(in crate::gateway) fn kinds(self) -> impl Iterator<Item = ListKind> {
        ListKind::ALL.into_iter().filter(move |kind| self.wants(*kind))
    }
}
