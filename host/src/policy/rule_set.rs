//! All rules of a configuration, and their decisions.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use super::access::{Access, Action, Refusal, Target};
use super::area::{Area, Base};
use super::class::AccessClass;
use super::decision::{MountDecision, NumberedRule};
use super::principal::{Principal, PrincipalKind};
use super::rate::QuotaRule;
use super::rule::{Rule, RuleOrigin};
use super::schedule::Minute;
use super::visibility::Visibility;
use crate::model::{Digest, Guard, MountName};

/// Principals whose rules are remembered. A principal costs about 200 bytes.
const MAX_PRINCIPALS: usize = 8192;

/// Decisions and classes that are remembered. There is one decision for each mount, each action, and each set of rules
/// that applies to some principal.
const MAX_DECISIONS: usize = 4096;

/// All rules. Decides for a principal, an action, a target and a time; reads no clock.
///
/// Without any rule everybody may do everything. With one rule, a request needs a rule that allows it. A rule that denies
/// wins over all that allow.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<NumberedRule>,
    /// True if some rule has a schedule. Otherwise decisions do not depend on the time.
    has_schedule: bool,
    /// True if nobody may do anything without a rule that allows it, although there is no rule.
    is_closed: bool,
    memo: RwLock<Memo>,
}

/// Remembered decisions. Dropped whole when it is full: everything in it can be made again.
#[derive(Debug, Default)]
struct Memo {
    /// The rules that apply to a principal in a minute.
    principals: HashMap<Principal, (Minute, Arc<ApplyingRules>)>,
    /// Sets of rules, by the places of the rules.
    applying: HashMap<Vec<usize>, Arc<ApplyingRules>>,
    /// The class of each set of rules. The key is the set itself, not a hash of it: two sets never share a class.
    classes: HashMap<Vec<usize>, AccessClass>,
    /// The number of all decisions in `applying`.
    decisions: usize,
}

/// The rules that apply to some principals, and the decisions by these rules.
#[derive(Debug)]
struct ApplyingRules {
    places: Vec<usize>,
    decisions: RwLock<MountDecisions>,
}

/// Decisions by their mounts and actions.
type MountDecisions = HashMap<MountName, Vec<(Action, Arc<MountDecision>)>>;

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        let rules = |set: &Self| set.rules.iter().map(|one| one.rule.clone()).collect::<Vec<_>>();
        rules(self) == rules(other)
    }
}

impl RuleSet {
    /// The set of `rules`, in the order of the configuration.
    pub fn new(rules: Vec<Rule>) -> Self {
        let has_schedule = rules.iter().any(|rule| rule.schedule.is_some());
        let mut known: HashMap<String, u64> = HashMap::new();
        let numbered = rules.into_iter().enumerate().map(|(at, rule)| {
            let rates = rule.rates.iter().map(|rate| {
                // The rule's own text, and not its place: the count goes on when another rule is added in front of it.
                let text = format!("{} {rule} {rate}", matches!(rule.origin, RuleOrigin::Scope(_)));
                let times = known.entry(text.clone()).or_default();
                *times += 1;
                Arc::new(rate.quota(identity(&format!("{times} {text}"))))
            });
            let rates: Vec<Arc<QuotaRule>> = rates.collect();
            NumberedRule { at, rule, rates }
        });
        let rules = numbered.collect();
        Self { rules, has_schedule, is_closed: false, memo: RwLock::default() }
    }

    /// The same rules. Without any, nobody may do anything.
    #[must_use]
    pub(super) fn closed(self) -> Self {
        Self { is_closed: true, ..self }
    }

    /// True if there is no rule: everybody may do everything.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules, in the order of the configuration.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|one| &one.rule)
    }

    /// The rules that are about no resource of these mounts, each given by its name and base.
    pub fn about_nothing<'a>(&'a self, mounts: &'a [(&'a MountName, &'a str)]) -> impl Iterator<Item = &'a Rule> {
        let is_about = |rule: &Rule, (mount, base): &(&MountName, &str)| {
            let target = Target { mount, base, reference: None };
            !Area::new([&rule.resources], target, &Base::new(base)).is_empty()
        };
        self.rules().filter(move |rule| !mounts.iter().any(|mount| is_about(rule, mount)))
    }

    /// True if some rule has a schedule. Then a decision may change with the time.
    pub fn has_schedule(&self) -> bool {
        self.has_schedule
    }

    /// Authorizes `principal` for `action` on `target` at the time `at`.
    ///
    /// # Errors
    /// The reason why no rule allows it, or why a rule denies it.
    pub fn authorize(
        &self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        at: SystemTime,
    ) -> Result<Access, Refusal> {
        if self.is_open_to(principal) {
            return Ok(Access::new(principal, action, target, AccessClass::EVERYONE, Vec::new()));
        }
        let minute = self.minute(at);
        let decision = self.decision(principal, action, target, minute);
        let rates = match target.reference {
            Some(reference) if decision.part.contains(reference) => decision.rates(reference),
            None if !decision.part.is_nothing() => decision.part.rates().to_vec(),
            _ => return Err(self.refusal(principal, action, target, minute)),
        };
        Ok(Access::new(principal, action, target, decision.class, rates))
    }

    /// The part of a mount on which `principal` may take `action` at the time `at`. `target` is the mount as a whole.
    pub fn visibility(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> Visibility {
        if self.is_open_to(principal) {
            return Visibility::ALL;
        }
        let decision = self.decision(principal, action, target, self.minute(at));
        Visibility::new(Arc::clone(&decision.part), decision.class)
    }

    /// True if a rule denies `action` of `principal` on the resource of `target`.
    pub(super) fn denies(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> bool {
        let decision = self.decision(principal, action, target, self.minute(at));
        target.reference.is_some_and(|reference| decision.part.denies(reference))
    }

    /// True if no rule is asked for `principal`.
    fn is_open_to(&self, principal: &Principal) -> bool {
        self.is_open() || Self::is_exempt(principal)
    }

    /// True if everybody may do everything.
    pub(super) fn is_open(&self) -> bool {
        self.rules.is_empty() && !self.is_closed
    }

    /// True if nothing is decided about `principal`: it is belljar itself.
    pub(super) fn is_exempt(principal: &Principal) -> bool {
        principal.kind() == PrincipalKind::Belljar || !Guard::Policy.is_on()
    }

    /// The minute for which is decided. Always the same one if no rule has a schedule.
    pub(super) fn minute(&self, at: SystemTime) -> Minute {
        if self.has_schedule { Minute::of(at) } else { Minute::default() }
    }

    /// The rules that apply to `principal` in `minute`, if it also had the scopes `more`.
    pub(super) fn applying<'a>(
        &'a self,
        principal: &'a Principal,
        minute: Minute,
        more: &'a [String],
    ) -> impl Iterator<Item = &'a NumberedRule> {
        self.rules.iter().filter(move |one| {
            one.rule.schedule.as_ref().is_none_or(|schedule| schedule.contains(minute))
                && one.rule.who.is_met_by(principal, more)
        })
    }

    fn decision(
        &self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        minute: Minute,
    ) -> Arc<MountDecision> {
        let applying = self.applying_to(principal, minute);
        let known = |decisions: &MountDecisions| {
            let of_mount = decisions.get(target.mount)?;
            let is_same =
                |one: &&(Action, Arc<MountDecision>)| one.0 == action && one.1.part.base().as_str() == target.base;
            of_mount.iter().find(is_same).map(|(_, decision)| Arc::clone(decision))
        };
        if let Some(decision) = known(&applying.decisions.read().unwrap_or_else(PoisonError::into_inner)) {
            return decision;
        }
        let rules = applying.places.iter().filter_map(|at| self.rules.get(*at));
        let concerned = MountDecision::concerned(rules, action, target);
        let class = self.class(concerned.iter().map(|one| one.at).collect());
        let decision = Arc::new(MountDecision::new(&concerned, action, target, class));
        let mut decisions = applying.decisions.write().unwrap_or_else(PoisonError::into_inner);
        let of_mount = decisions.entry(target.mount.clone()).or_default();
        // The base of the mount may have changed.
        of_mount.retain(|(other, _)| *other != action);
        of_mount.push((action, Arc::clone(&decision)));
        decision
    }

    /// The rules that apply to `principal` in `minute`, with the decisions by these rules.
    fn applying_to(&self, principal: &Principal, minute: Minute) -> Arc<ApplyingRules> {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, applying)) = memo.principals.get(principal)
            && *of == minute
        {
            return Arc::clone(applying);
        }
        drop(memo);
        let places: Vec<usize> = self.applying(principal, minute, &[]).map(|one| one.at).collect();
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        let applying = match memo.applying.get(&places) {
            Some(applying) => Arc::clone(applying),
            None => {
                let decisions = RwLock::default();
                let applying = Arc::new(ApplyingRules { places: places.clone(), decisions });
                memo.applying.insert(places, Arc::clone(&applying));
                applying
            }
        };
        if memo.principals.len() >= MAX_PRINCIPALS && !memo.principals.contains_key(principal) {
            memo.principals.clear();
        }
        memo.principals.insert(principal.clone(), (minute, Arc::clone(&applying)));
        applying
    }

    /// The class of all principals to whom exactly the rules at `places` apply. Called once for each new decision.
    fn class(&self, places: Vec<usize>) -> AccessClass {
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        memo.decisions += 1;
        if memo.decisions > MAX_DECISIONS {
            *memo = Memo { decisions: 1, ..Memo::default() };
        }
        let class = |places: &Vec<usize>| AccessClass::of_rules(places);
        *memo.classes.entry(places).or_insert_with_key(class)
    }

    /// The numbers of remembered principals and decisions, for tests.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize) {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        (memo.principals.len(), memo.decisions)
    }

    /// Why `principal` is refused: for lack of a scope if a rule would allow the request to a holder of it, in the order
    /// of the configuration.
    fn refusal(&self, principal: &Principal, action: Action, target: Target<'_>, minute: Minute) -> Refusal {
        let base = Base::new(target.base);
        let scopes = self.rules.iter().find_map(|one| {
            let NumberedRule { rule, .. } = one;
            let is_now = rule.schedule.as_ref().is_none_or(|schedule| schedule.contains(minute));
            if rule.is_denying() || !is_now || !is_about(rule, action) {
                return None;
            }
            let needed = rule.who.needed_scopes(principal)?.scopes();
            let area = Area::new([&rule.resources], target, &base);
            // A rule that denies may apply to the holders of the scope.
            let denying = self.applying(principal, minute, needed).map(|one| &one.rule);
            let denying = denying.filter(|rule| rule.is_denying() && rule.actions.contains(action));
            let denied = Area::new(denying.map(|rule| &rule.resources), target, &base);
            let is_allowed = match target.reference {
                Some(reference) => {
                    let spellings = base.spellings(reference);
                    area.has_both(&spellings) && !denied.has_any(&spellings)
                }
                None => area.may_have_below("", &denied, &base),
            };
            is_allowed.then(|| needed.to_vec())
        });
        scopes.map_or(Refusal::Hidden, Refusal::Scope)
    }
}

/// True if the rule is about `action`.
fn is_about(rule: &Rule, action: Action) -> bool {
    action == Action::Describe || rule.actions.contains(action)
}

/// The identity of a rate: a hash of its text.
fn identity(text: &str) -> u64 {
    let digest = Digest::of(text.as_bytes()).to_string();
    let hex = digest.rsplit(':').next().and_then(|hex| hex.get(..16)).unwrap_or_default();
    u64::from_str_radix(hex, 16).unwrap_or_default()
}
