//! Rules for the tests of other modules, in short: who may do what below which URI.

use super::access::Action;
use super::actions::ActionSet;
use super::rule::{Rule, RuleNumber, RuleOrigin, RuleResources};
use super::rule_set::RuleSet;
use super::who::{ScopeSet, Who};

/// One rule: `who` may do `actions` on every resource whose URI begins with `below`.
#[derive(Clone, Debug)]
pub(crate) struct TestRule {
    /// The principal, as it is displayed, or `@` and one of its groups.
    pub(crate) who: &'static str,
    /// The actions. Empty: all.
    pub(crate) actions: &'static [Action],
    /// The beginning of the URIs. Empty: all.
    pub(crate) below: &'static str,
    /// A scope that the principal must have.
    pub(crate) scope: Option<&'static str>,
    /// It denies.
    pub(crate) is_denying: bool,
    /// How often.
    pub(crate) rate: Option<&'static str>,
}

impl TestRule {
    /// All actions of `who` below a URI.
    pub(crate) fn all(who: &'static str, below: &'static str) -> Self {
        Self { who, actions: &[], below, scope: None, is_denying: false, rate: None }
    }

    /// Nothing of `who` below a URI.
    pub(crate) fn denied(who: &'static str, below: &'static str) -> Self {
        Self { is_denying: true, ..Self::all(who, below) }
    }

    fn rule(&self, number: usize) -> Rule {
        let texts = |text: &str| vec![text.to_owned()];
        let mut who = Who::default();
        match (self.who.strip_prefix('@'), self.who.strip_prefix("key:"), self.who.split_once('@')) {
            (Some(group), ..) => who.groups = texts(group),
            (_, Some(key), _) => who.keys = texts(key),
            (_, _, Some((subject, issuer))) => (who.users, who.issuers) = (texts(subject), texts(issuer)),
            _ => who.users = texts(self.who),
        }
        who.scopes.extend(self.scope.map(|scope| ScopeSet::new(scope).unwrap()));
        let resources = match self.below {
            "" => RuleResources::All,
            below => RuleResources::Patterns(vec![format!("{below}**").parse().unwrap()]),
        };
        let actions = match self.actions {
            [] => ActionSet::ALL,
            some => some.iter().copied().collect(),
        };
        let number = RuleNumber { number, line: None };
        let origin = if self.is_denying { RuleOrigin::Deny(number) } else { RuleOrigin::Allow(number) };
        let rates = self.rate.iter().map(|rate| rate.parse().unwrap()).collect();
        Rule { origin, who, resources, actions, schedule: None, rates }
    }
}

/// The set of these rules. Without any, nobody may do anything.
pub(crate) fn rule_set(rules: &[TestRule]) -> RuleSet {
    let nobody = TestRule::all("key:of nobody", "");
    RuleSet::new([&nobody].into_iter().chain(rules).zip(1..).map(|(rule, number)| rule.rule(number)).collect())
}
