//! All that decides: the rules of the configuration, and the policies of `policy.cedar`.
//!
//! The rules decide alone if there is no `policy.cedar`. Otherwise a request needs a rule or a policy that allows it, and
//! none of either kind that forbids it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use super::access::{Access, Action, Refusal, Target};
use super::area::Base;
use super::cedar::{CedarOpinion, CedarPolicies};
use super::class::AccessClass;
use super::explain::Explanation;
use super::judge::Judge;
use super::principal::Principal;
use super::rule_set::RuleSet;
use super::schedule::Minute;
use super::visibility::Visibility;

/// Opinions of the policies that are remembered. One takes about 300 bytes.
const MAX_OPINIONS: usize = 16_384;

/// Classes of principals that are remembered.
const MAX_CLASSES: usize = 8192;

/// All that decides. Without any rule and without policies, everybody may do everything.
#[derive(Debug, Default)]
pub struct Decider {
    rules: RuleSet,
    judge: Option<Arc<Judge>>,
    memo: RwLock<Memo>,
}

/// Remembered decisions. Each part is dropped whole when it is full.
#[derive(Debug, Default)]
struct Memo {
    /// The minute of the opinions.
    minute: Minute,
    opinions: HashMap<(Principal, Action, Box<str>), CedarOpinion>,
    /// A policy may decide by anything about a principal, so each principal is a class of its own.
    classes: HashMap<(AccessClass, Principal), AccessClass>,
}

impl PartialEq for Decider {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules && self.judge == other.judge
    }
}

impl From<RuleSet> for Decider {
    fn from(rules: RuleSet) -> Self {
        Self { rules, ..Self::default() }
    }
}

impl Decider {
    /// Decides by `rules` and `policies`.
    pub fn new(rules: RuleSet, policies: Option<Arc<CedarPolicies>>) -> Self {
        match policies {
            None => rules.into(),
            Some(policies) => {
                let (rules, judge) = (rules.closed(), Some(Arc::new(Judge::new(policies))));
                Self { rules, judge, memo: RwLock::default() }
            }
        }
    }

    /// True if there are no rules and no policies: everybody may do everything.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.judge.is_none()
    }

    /// True if a rule has a schedule. Then what a principal may do changes with the time.
    pub fn has_schedule(&self) -> bool {
        self.rules.has_schedule()
    }

    /// Authorizes `principal` for `action` on `target` at the time `at`.
    ///
    /// # Errors
    /// The reason why nothing allows it, or why something forbids it.
    pub fn authorize(
        &self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        at: SystemTime,
    ) -> Result<Access, Refusal> {
        let by_rules = self.rules.authorize(principal, action, target, at);
        let Some(judge) = self.judge_of(principal) else {
            return by_rules;
        };
        let whole = Target { reference: None, ..target };
        let visible = self.visibility(principal, action, whole, at);
        if visible.is_forbidden() {
            return Err(Refusal::Hidden);
        }
        let is_permitted = match target.reference {
            None => !visible.is_nothing(),
            Some(_) => match self.opinion(judge, principal, action, target, Minute::of(at)) {
                CedarOpinion::Forbidden(_) => return Err(Refusal::Hidden),
                CedarOpinion::Silent => false,
                CedarOpinion::Permitted(_) => !self.rules.denies(principal, action, target, at),
            },
        };
        match by_rules {
            Ok(access) => Ok(access.with_class(visible.class())),
            Err(_) if is_permitted => Ok(Access::new(principal, action, target, visible.class(), Vec::new())),
            Err(refusal) => Err(refusal),
        }
    }

    /// The part of a mount on which `principal` may take `action` at the time `at`. `target` is the mount as a whole.
    pub fn visibility(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> Visibility {
        let by_rules = self.rules.visibility(principal, action, target, at);
        let Some(judge) = self.judge_of(principal) else {
            return by_rules;
        };
        let minute = Minute::of(at);
        let class = self.class(by_rules.class(), principal);
        let base = self.opinion(judge, principal, action, Target { reference: Some(""), ..target }, minute);
        let is_forbidden = matches!(base, CedarOpinion::Forbidden(_));
        by_rules.judged(Arc::clone(judge), (principal, action, target, minute), class, is_forbidden)
    }

    /// Explains the decision of [`Decider::authorize`]. For a tool or a prompt, also whether a part of its mount is denied.
    pub fn explain(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> Explanation {
        let explanation = self.explain_decision(principal, action, target, at);
        let whole = Target { reference: None, ..target };
        let is_use = matches!(action, Action::Call | Action::Prompt) && explanation.is_allowed();
        if !is_use || !self.visibility(principal, Action::Read, whole, at).has_denied() {
            return explanation;
        }
        let judge = self.judge_of(principal);
        let policies = judge.map(|judge| judge.policies().forbidding(principal, Action::Read, whole).collect());
        Explanation::DeniedPart {
            rules: self.rules.denying_reads(principal, whole, at),
            policies: policies.unwrap_or_default(),
        }
    }

    fn explain_decision(
        &self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        at: SystemTime,
    ) -> Explanation {
        let by_rules = || self.rules.explain(principal, action, target, at);
        let Some(judge) = self.judge_of(principal) else {
            return by_rules();
        };
        let opinion = |reference: &str| {
            self.opinion(judge, principal, action, Target { reference: Some(reference), ..target }, Minute::of(at))
        };
        let decided = self.authorize(principal, action, target, at);
        match (opinion(""), opinion(target.reference.unwrap_or_default()), decided) {
            (CedarOpinion::Forbidden(ids), ..) | (_, CedarOpinion::Forbidden(ids), _) => Explanation::Forbidden(ids),
            (_, CedarOpinion::Permitted(ids), Ok(_)) => Explanation::Permitted(ids),
            (_, _, Ok(_)) if !by_rules().is_allowed() => {
                Explanation::Permitted(judge.policies().permitting(principal, action, target, "").collect())
            }
            _ => by_rules(),
        }
    }

    /// What asks the policies about `principal`. `None` without policies, and for belljar itself.
    fn judge_of(&self, principal: &Principal) -> Option<&Arc<Judge>> {
        self.judge.as_ref().filter(|_| !RuleSet::is_exempt(principal))
    }

    fn opinion(
        &self,
        judge: &Judge,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        minute: Minute,
    ) -> CedarOpinion {
        let reference = target.reference.unwrap_or_default();
        let key = (principal.clone(), action, [target.base, reference].concat().into_boxed_str());
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        if memo.minute == minute
            && let Some(opinion) = memo.opinions.get(&key)
        {
            return opinion.clone();
        }
        drop(memo);
        let opinion = judge.opinion(principal, action, target, &Base::new(target.base), minute);
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        if memo.minute != minute || memo.opinions.len() >= MAX_OPINIONS {
            memo.opinions.clear();
            memo.minute = minute;
        }
        memo.opinions.insert(key, opinion.clone());
        opinion
    }

    /// The class of `principal` among those whom the rules put into one class.
    fn class(&self, by_rules: AccessClass, principal: &Principal) -> AccessClass {
        let key = (by_rules, principal.clone());
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(class) = memo.classes.get(&key) {
            return *class;
        }
        drop(memo);
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        if memo.classes.len() >= MAX_CLASSES {
            memo.classes.clear();
        }
        *memo.classes.entry(key).or_insert_with(AccessClass::new)
    }
}
