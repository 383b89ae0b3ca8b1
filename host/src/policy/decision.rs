//! What the rules that apply to some principals say about one action on one mount.

use std::sync::Arc;

use super::access::{Action, Target};
use super::area::{Area, Base};
use super::class::AccessClass;
use super::rate::QuotaRule;
use super::rule::Rule;
use super::visibility::AllowedPart;

/// A rule of a rule set.
#[derive(Debug)]
pub(super) struct NumberedRule {
    /// The place of the rule in its set.
    pub(super) at: usize,
    /// The rule.
    pub(super) rule: Rule,
    /// The rates of the rule.
    pub(super) rates: Vec<Arc<QuotaRule>>,
}

/// The decision about one action on one mount, for all principals to whom the same rules apply.
#[derive(Debug)]
pub(super) struct MountDecision {
    /// The resources on which the action is allowed.
    pub(super) part: Arc<AllowedPart>,
    /// The class of the principals.
    pub(super) class: AccessClass,
    /// Each rule that allows something, with its resources and rates. Empty if no rule of them has a rate.
    rated: Vec<(Area, Vec<Arc<QuotaRule>>)>,
}

impl MountDecision {
    /// The places of those rules of `applying` that concern `action` on the mount of `target`.
    pub(super) fn concerned<'a>(
        applying: impl IntoIterator<Item = &'a NumberedRule>,
        action: Action,
        target: Target<'_>,
    ) -> Vec<&'a NumberedRule> {
        let base = Base::new(target.base);
        let is_concerned = |one: &&NumberedRule| {
            let is_about = match action {
                // Described is what the principal may use in any way.
                Action::Describe => true,
                action => one.rule.actions.contains(action),
            };
            is_about && !Area::new([&one.rule.resources], target, &base).is_empty()
        };
        applying.into_iter().filter(is_concerned).collect()
    }

    /// The decision by the rules `concerned`: see [`MountDecision::concerned`]. `class` is the class of all principals to whom
    /// exactly these rules apply.
    pub(super) fn new(concerned: &[&NumberedRule], action: Action, target: Target<'_>, class: AccessClass) -> Self {
        let base = Base::new(target.base);
        let area = |is_denying: bool| {
            let rules = concerned.iter().map(|one| &one.rule).filter(|rule| rule.is_denying() == is_denying);
            Area::new(rules.map(|rule| &rule.resources), target, &base)
        };
        if action == Action::Describe {
            return Self { part: Arc::new(described(concerned, target, &base)), class, rated: Vec::new() };
        }
        let allowing = || concerned.iter().filter(|one| !one.rule.is_denying());
        let rates = match allowing().any(|one| one.rates.is_empty()) {
            true => Vec::new(),
            false => allowing().flat_map(|one| one.rates.iter().cloned()).collect(),
        };
        let rated = match allowing().all(|one| one.rates.is_empty()) {
            true => Vec::new(),
            false => {
                allowing().map(|one| (Area::new([&one.rule.resources], target, &base), one.rates.clone())).collect()
            }
        };
        let part = AllowedPart::new(base.clone(), area(false), area(true), rates);
        Self { part: Arc::new(part), class, rated }
    }

    /// The rates for `reference`, which is allowed: those of the rules that allow it, or none if a rule without a rate
    /// allows it.
    pub(super) fn rates(&self, reference: &str) -> Vec<Arc<QuotaRule>> {
        if self.rated.is_empty() {
            return Vec::new();
        }
        let spellings = self.part.base().spellings(reference);
        let mut rates = Vec::new();
        for (area, own) in &self.rated {
            if own.is_empty() && area.has_both(&spellings) {
                return Vec::new();
            }
            if area.has_either(&spellings) {
                rates.extend(own.iter().cloned());
            }
        }
        rates
    }
}

/// The part of the mount that may be described: all of it, or nothing if every other action is forbidden everywhere.
fn described(concerned: &[&NumberedRule], target: Target<'_>, base: &Base) -> AllowedPart {
    let is_allowed = Action::NAMED.iter().any(|action| {
        let rules: Vec<&NumberedRule> =
            concerned.iter().copied().filter(|one| one.rule.actions.contains(*action)).collect();
        !MountDecision::new(&rules, *action, target, AccessClass::EVERYONE).part.is_nothing()
    });
    let all = [super::rule::RuleResources::All];
    let allowed = Area::new(all.iter().filter(|_| is_allowed), target, base);
    AllowedPart::new(base.clone(), allowed, Area::default(), Vec::new())
}
