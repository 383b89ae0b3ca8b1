//! Which resources of a mount a principal may see in a list.

use std::sync::Arc;

use super::access::{Action, Target};
use super::area::{Area, Base};
use super::cedar::CedarOpinion;
use super::class::AccessClass;
use super::judge::Judge;
use super::principal::Principal;
use super::rate::QuotaRule;
use super::schedule::Minute;
use crate::model::MountName;

/// The part of one mount on which a principal may take an action, and the class of principals with the same part.
#[derive(Clone, Debug)]
pub struct Visibility {
    part: VisiblePart,
    class: AccessClass,
}

/// The resources of a mount on which an action may be taken.
#[derive(Clone, Debug)]
enum VisiblePart {
    /// Every resource, and the mount itself.
    All,
    /// The resources that rules allow.
    Allowed(Arc<AllowedPart>),
    /// The resources that rules or policies allow.
    Judged(Arc<JudgedPart>),
}

/// The resources that rules and policies together allow.
#[derive(Debug)]
struct JudgedPart {
    by_rules: Arc<AllowedPart>,
    judge: Arc<Judge>,
    principal: Principal,
    action: Action,
    mount: MountName,
    minute: Minute,
    /// True if a policy forbids the base of the mount, and so the mount as a whole.
    is_forbidden: bool,
}

impl JudgedPart {
    fn target<'a>(&'a self, reference: Option<&'a str>) -> Target<'a> {
        Target { mount: &self.mount, base: self.by_rules.base.as_str(), reference }
    }

    fn contains(&self, reference: &str) -> bool {
        if self.is_forbidden {
            return false;
        }
        let target = self.target(Some(reference));
        match self.judge.opinion(&self.principal, self.action, target, &self.by_rules.base, self.minute) {
            CedarOpinion::Forbidden(_) => false,
            CedarOpinion::Silent => self.by_rules.contains(reference),
            CedarOpinion::Permitted(_) => !self.by_rules.denies(reference),
        }
    }

    fn may_forbid(&self) -> bool {
        self.judge.policies().forbidding(&self.principal, self.action, self.target(None)).next().is_some()
    }

    fn contains_below(&self, prefix: &str) -> bool {
        let target = self.target(None);
        if self.judge.policies().forbids_all_below(&self.principal, self.action, target, prefix) {
            return false;
        }
        let may_permit =
            || self.judge.policies().permitting(&self.principal, self.action, target, prefix).next().is_some();
        !self.is_forbidden && (self.by_rules.contains_below(prefix) || may_permit())
    }
}

/// The resources that the rules for some principals allow.
#[derive(Debug)]
pub(super) struct AllowedPart {
    base: Base,
    allowed: Area,
    denied: Area,
    is_all: bool,
    is_nothing: bool,
    /// The rates for an action on the mount as a whole.
    rates: Vec<Arc<QuotaRule>>,
}

impl AllowedPart {
    /// The resources in `allowed` that are not in `denied`.
    pub(super) fn new(base: Base, allowed: Area, denied: Area, rates: Vec<Arc<QuotaRule>>) -> Self {
        let is_all = allowed.is_all() && denied.is_empty();
        let is_nothing = !allowed.may_have_below("", &denied, &base);
        Self { base, allowed, denied, is_all, is_nothing, rates }
    }

    /// The base of the mount.
    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// True if no resource is allowed.
    pub(super) fn is_nothing(&self) -> bool {
        self.is_nothing
    }

    /// The rates for an action on the mount as a whole.
    pub(super) fn rates(&self) -> &[Arc<QuotaRule>] {
        &self.rates
    }

    /// True if the resource with this reference is allowed.
    pub(super) fn contains(&self, reference: &str) -> bool {
        if self.is_all || self.is_nothing {
            return self.is_all;
        }
        let spellings = self.base.spellings(reference);
        self.allowed.has_both(&spellings) && !self.denied.has_any(&spellings)
    }

    /// True if a rule denies the resource with this reference.
    pub(super) fn denies(&self, reference: &str) -> bool {
        self.denied.has_any(&self.base.spellings(reference))
    }

    /// True if a rule denies some resource of the mount.
    fn has_denied(&self) -> bool {
        !self.denied.is_empty()
    }

    fn contains_below(&self, prefix: &str) -> bool {
        match self.is_all || self.is_nothing {
            true => self.is_all,
            false => self.allowed.may_have_below(prefix, &self.denied, &self.base),
        }
    }
}

impl Visibility {
    /// Everything, for everybody.
    pub(super) const ALL: Self = Self { part: VisiblePart::All, class: AccessClass::EVERYONE };

    /// The part that rules allow.
    pub(super) fn new(part: Arc<AllowedPart>, class: AccessClass) -> Self {
        Self { part: VisiblePart::Allowed(part), class }
    }

    /// The same part, as the policies of `judge` extend and narrow it for one principal. `is_forbidden`: a policy forbids
    /// the base of the mount.
    pub(super) fn judged(
        self,
        judge: Arc<Judge>,
        (principal, action, target, minute): (&Principal, Action, Target<'_>, Minute),
        class: AccessClass,
        is_forbidden: bool,
    ) -> Self {
        let VisiblePart::Allowed(by_rules) = self.part else { return self };
        let (principal, mount) = (principal.clone(), target.mount.clone());
        let part = JudgedPart { by_rules, judge, principal, action, mount, minute, is_forbidden };
        Self { part: VisiblePart::Judged(Arc::new(part)), class }
    }

    /// True if a policy forbids the mount as a whole.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(&self.part, VisiblePart::Judged(part) if part.is_forbidden)
    }

    /// True if each resource of the mount may be seen. Then no entry needs to be asked for.
    pub fn is_all(&self) -> bool {
        match &self.part {
            VisiblePart::All => true,
            VisiblePart::Allowed(part) => part.is_all,
            VisiblePart::Judged(_) => false,
        }
    }

    /// True if a rule denies some resource of the mount, or a policy may forbid one. A condition of a policy counts as met,
    /// because nobody knows which resources the mount has.
    pub fn has_denied(&self) -> bool {
        match &self.part {
            VisiblePart::All => false,
            VisiblePart::Allowed(part) => part.has_denied(),
            VisiblePart::Judged(part) => part.is_forbidden || part.by_rules.has_denied() || part.may_forbid(),
        }
    }

    /// True if a policy is asked about each resource, which takes long.
    pub fn is_judged(&self) -> bool {
        matches!(&self.part, VisiblePart::Judged(_))
    }

    /// True if no resource of the mount may be seen. Then the mount looks as if it were not there.
    pub fn is_nothing(&self) -> bool {
        match &self.part {
            VisiblePart::All => false,
            VisiblePart::Allowed(part) => part.is_nothing,
            VisiblePart::Judged(part) => !part.contains_below(""),
        }
    }

    /// True if the resource with this reference may be seen.
    pub fn contains(&self, reference: &str) -> bool {
        match &self.part {
            VisiblePart::All => true,
            VisiblePart::Allowed(part) => part.contains(reference),
            VisiblePart::Judged(part) => part.contains(reference),
        }
    }

    /// True if some resource whose reference begins with `prefix` may be seen. For templates, and for folders. It may be
    /// true although there is none, and never false although there is one.
    pub fn contains_below(&self, prefix: &str) -> bool {
        match &self.part {
            VisiblePart::All => true,
            VisiblePart::Allowed(part) => part.contains_below(prefix),
            VisiblePart::Judged(part) => part.contains_below(prefix),
        }
    }

    /// The rates of the rules that gave the part, each once. None if the part is empty: a used-up rate would tell that there
    /// is more.
    pub fn rates(&self) -> &[Arc<QuotaRule>] {
        match &self.part {
            VisiblePart::All => &[],
            VisiblePart::Allowed(part) if part.is_nothing => &[],
            VisiblePart::Allowed(part) => &part.rates,
            VisiblePart::Judged(part) => &part.by_rules.rates,
        }
    }

    /// The class of principals who see the same part.
    pub fn class(&self) -> AccessClass {
        self.class
    }
}
