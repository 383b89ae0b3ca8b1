//! The actions that a rule names.

use std::fmt;
use std::str::FromStr;

use super::access::Action;
use crate::model::text;

/// The word for each action in a rule.
const WORDS: [(&str, Action); 7] = [
    ("list", Action::List),
    ("read", Action::Read),
    ("search", Action::Search),
    ("complete", Action::Complete),
    ("subscribe", Action::Watch),
    ("call", Action::Call),
    ("prompt", Action::Prompt),
];

/// The word names no action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\" is not an action; the actions are {}", words())]
pub struct UnknownAction {
    /// The word, safe to print.
    word: String,
}

/// `"list", "read", ...`
fn words() -> String {
    WORDS.map(|(word, _)| format!("\"{word}\"")).join(", ")
}

impl Action {
    /// The actions that rules name.
    pub const NAMED: [Self; 7] =
        [Self::List, Self::Read, Self::Search, Self::Complete, Self::Watch, Self::Call, Self::Prompt];

    /// The word for the action in a rule. `None` for [`Action::Describe`], which no rule names.
    pub fn word(self) -> Option<&'static str> {
        WORDS.iter().find(|(_, action)| *action == self).map(|(word, _)| *word)
    }
}

impl FromStr for Action {
    type Err = UnknownAction;

    fn from_str(word: &str) -> Result<Self, UnknownAction> {
        let found = WORDS.iter().find(|(known, _)| *known == word).map(|(_, action)| *action);
        found.ok_or_else(|| UnknownAction { word: text::excerpt(word, 80) })
    }
}

/// Some of the actions that rules name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ActionSet(u8);

impl ActionSet {
    /// Every action.
    pub const ALL: Self = Self(0b111_1111);

    fn bit(action: Action) -> u8 {
        Action::NAMED.iter().position(|named| *named == action).map_or(0, |at| 1 << at)
    }

    /// True if the set has `action`.
    pub fn contains(self, action: Action) -> bool {
        self.0 & Self::bit(action) != 0
    }
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        Self(actions.into_iter().fold(0, |bits, action| bits | Self::bit(action)))
    }
}

impl fmt::Display for ActionSet {
    /// `["list", "read"]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = WORDS.iter().filter(|(_, action)| self.contains(*action));
        f.debug_list().entries(words.map(|(word, _)| word)).finish()
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_words() {
        for (word, action) in WORDS {
            assert_eq!((word.parse(), action.word()), (Ok(action), Some(word)));
            assert!(ActionSet::ALL.contains(action));
        }
        let set: ActionSet = [Action::Read, Action::Watch].into_iter().collect();
        assert_eq!(set.to_string(), "[\"read\", \"subscribe\"]");
        assert!(set.contains(Action::Read) && !set.contains(Action::List) && !set.contains(Action::Describe));
        assert_eq!(Action::Describe.word(), None);
        assert_eq!(
            "write".parse::<Action>().unwrap_err().to_string(),
            "\"write\" is not an action; the actions are \"list\", \"read\", \"search\", \"complete\", \"subscribe\", \"call\", \"prompt\""
        );
    }
}
