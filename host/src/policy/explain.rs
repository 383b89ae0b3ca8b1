//! Explanations of decisions, for the operator. No decision depends on them.

use std::time::SystemTime;

use super::access::{Action, Refusal, Target};
use super::area::{Area, Base};
use super::principal::Principal;
use super::rule::{Rule, RuleOrigin};
use super::rule_set::RuleSet;

/// Why a request is allowed or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// There is no rule: everybody may do everything.
    NoRules,
    /// These rules allow it, or allow a part of the mount.
    Allowed(Vec<Rule>),
    /// These policies of `policy.cedar` permit it, or permit a part of the mount.
    Permitted(Vec<String>),
    /// These policies of `policy.cedar` forbid it.
    Forbidden(Vec<String>),
    /// These rules deny it.
    Denied(Vec<Rule>),
    /// It is the use of a tool or a prompt, and the principal is denied a part of the mount for reading. A tool sees all that
    /// its mount was granted, so no tool of such a mount may be used.
    DeniedPart {
        /// The rules that deny a part.
        rules: Vec<Rule>,
        /// The policies of `policy.cedar` that may forbid a part.
        policies: Vec<String>,
    },
    /// A key or token with these scopes would be allowed, by this rule.
    Scope {
        /// All scopes that the request needs.
        scopes: Vec<String>,
        /// The rule.
        rule: Box<Rule>,
    },
    /// No rule allows it. Holds the rules that would allow it if one of their conditions were another.
    NoRule(Vec<(Rule, Obstacle)>),
}

/// The only condition of a rule that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The rule is for other principals.
    Who,
    /// The rule is about other resources.
    What,
    /// The rule is about other actions.
    Do,
    /// The rule applies at other times.
    When,
}

impl Obstacle {
    /// The key of the condition in a rule.
    pub fn key(self) -> &'static str {
        match self {
            Self::Who => "who",
            Self::What => "what",
            Self::Do => "do",
            Self::When => "when",
        }
    }
}

impl Explanation {
    /// True if the request is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::NoRules | Self::Allowed(_) | Self::Permitted(_))
    }
}

impl RuleSet {
    /// Explains the decision of [`RuleSet::authorize`].
    pub fn explain(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> Explanation {
        if self.is_open() {
            return Explanation::NoRules;
        }
        let decided = self.authorize(principal, action, target, at);
        let obstacles = |rule: &Rule| self.obstacles(rule, principal, action, target, at);
        let met = |is_denying: bool| {
            let rules = self.rules().filter(|rule| rule.is_denying() == is_denying && obstacles(rule).is_empty());
            rules.cloned().collect::<Vec<_>>()
        };
        match decided {
            Ok(_) => Explanation::Allowed(met(false)),
            Err(Refusal::Scope(scopes)) => {
                let needs = |rule: &&Rule| {
                    let needed = rule.who.needed_scopes(principal).map(|set| set.scopes().to_vec());
                    !rule.is_denying() && needed.as_ref() == Some(&scopes) && obstacles(rule) == [Obstacle::Who]
                };
                match self.rules().find(needs) {
                    Some(rule) => Explanation::Scope { scopes, rule: Box::new(rule.clone()) },
                    None => Explanation::NoRule(Vec::new()),
                }
            }
            Err(Refusal::Hidden) => {
                let denying = met(true);
                if !denying.is_empty() {
                    return Explanation::Denied(denying);
                }
                let near =
                    self.rules().filter(|rule| !rule.is_denying()).filter_map(|rule| match obstacles(rule)[..] {
                        [only] => Some((rule.clone(), only)),
                        _ => None,
                    });
                Explanation::NoRule(near.collect())
            }
        }
    }

    /// The rules that deny `principal` some resource of a mount for reading. `whole` is the mount as a whole.
    pub(super) fn denying_reads(&self, principal: &Principal, whole: Target<'_>, at: SystemTime) -> Vec<Rule> {
        let denies =
            |rule: &&Rule| rule.is_denying() && self.obstacles(rule, principal, Action::Read, whole, at).is_empty();
        self.rules().filter(denies).cloned().collect()
    }

    /// The conditions of `rule` that a request does not meet.
    fn obstacles(
        &self,
        rule: &Rule,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        at: SystemTime,
    ) -> Vec<Obstacle> {
        let (minute, base) = (self.minute(at), Base::new(target.base));
        let area = Area::new([&rule.resources], target, &base);
        let is_about = match (target.reference, rule.is_denying()) {
            (Some(reference), true) => area.has_any(&base.spellings(reference)),
            (Some(reference), false) => area.has_either(&base.spellings(reference)),
            (None, _) => !area.is_empty(),
        };
        let conditions = [
            (rule.who.is_met_by(principal, &[]), Obstacle::Who),
            (is_about, Obstacle::What),
            (rule.actions.contains(action), Obstacle::Do),
            (rule.schedule.as_ref().is_none_or(|schedule| schedule.contains(minute)), Obstacle::When),
        ];
        conditions.into_iter().filter(|(is_met, _)| !is_met).map(|(_, obstacle)| obstacle).collect()
    }

    /// All scopes that rules name, in their order, each once.
    pub fn scopes(&self) -> Vec<&str> {
        let mut scopes = Vec::new();
        for scope in self
            .rules()
            .filter(|rule| !rule.is_denying())
            .flat_map(|rule| &rule.who.scopes)
            .flat_map(|set| set.scopes())
        {
            if !scopes.contains(&scope.as_str()) {
                scopes.push(scope);
            }
        }
        scopes
    }
}

impl RuleOrigin {
    /// The table of the rule: `allow`, `deny` or `auth.scopes`.
    pub fn table(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Deny(_) => "deny",
            Self::Scope(_) => "auth.scopes",
        }
    }
}
