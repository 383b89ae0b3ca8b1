//! The rules of a configuration.

use std::fmt;

use super::actions::ActionSet;
use super::pattern::UriPattern;
use super::rate_text::RateRule;
use super::schedule::Schedule;
use super::who::Who;
use crate::model::MountName;

/// One rule: who may or may not do what, where and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The place in the configuration.
    pub origin: RuleOrigin,
    /// The principals that it is for.
    pub who: Who,
    /// The resources that it is about.
    pub resources: RuleResources,
    /// The actions that it is about.
    pub actions: ActionSet,
    /// The times at which it applies. `None`: always.
    pub schedule: Option<Schedule>,
    /// How often, for each principal. Empty for rules that deny.
    pub rates: Vec<RateRule>,
}

/// The place of a rule in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOrigin {
    /// `[[allow]]`.
    Allow(RuleNumber),
    /// `[[deny]]`.
    Deny(RuleNumber),
    /// An entry of `[auth.scopes]`: the scope.
    Scope(String),
}

/// The number of a rule among those of its kind, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleNumber {
    /// Counts from 1.
    pub number: usize,
    /// The line in the configuration. `None` if that is not known.
    pub line: Option<u32>,
}

/// The resources that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleResources {
    /// Every resource.
    All,
    /// Those whose URI matches one of the patterns.
    Patterns(Vec<UriPattern>),
    /// Those of these mounts.
    Mounts(Vec<MountName>),
}

impl Rule {
    /// True if the rule forbids.
    pub fn is_denying(&self) -> bool {
        matches!(self.origin, RuleOrigin::Deny(_))
    }
}

impl fmt::Display for RuleNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{} (line {line})", self.number),
            None => self.number.fmt(f),
        }
    }
}

impl fmt::Display for RuleOrigin {
    /// `[[allow]] 2 (line 14)`, or the key of a scope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(number) => write!(f, "[[allow]] {number}"),
            Self::Deny(number) => write!(f, "[[deny]] {number}"),
            Self::Scope(scope) => write!(f, "[auth.scopes] {scope:?}"),
        }
    }
}

impl fmt::Display for RuleResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |texts: Vec<String>| match texts.as_slice() {
            [only] => format!("{only:?}"),
            texts => format!("{texts:?}"),
        };
        match self {
            Self::All => f.write_str("everything"),
            Self::Patterns(patterns) => f.write_str(&quoted(patterns.iter().map(ToString::to_string).collect())),
            Self::Mounts(mounts) => write!(f, "{mounts:?}"),
        }
    }
}

impl fmt::Display for Rule {
    /// The keys of the rule, as in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys = Vec::new();
        if !matches!(self.origin, RuleOrigin::Scope(_)) {
            keys.push(format!("who = {}", self.who));
        }
        match &self.resources {
            RuleResources::All => {}
            patterns @ RuleResources::Patterns(_) => keys.push(format!("what = {patterns}")),
            mounts @ RuleResources::Mounts(_) => keys.push(format!("mounts = {mounts}")),
        }
        if self.actions != ActionSet::ALL {
            keys.push(format!("do = {}", self.actions));
        }
        keys.extend(self.schedule.iter().map(|schedule| format!("when = \"{schedule}\"")));
        let rates: Vec<String> = self.rates.iter().map(ToString::to_string).collect();
        match rates.as_slice() {
            [] => {}
            [only] => keys.push(format!("rate = {only:?}")),
            rates => keys.push(format!("rate = {rates:?}")),
        }
        f.write_str(&keys.join(", "))
    }
}
