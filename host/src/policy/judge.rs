//! Asks the policies of `policy.cedar` about each spelling of a resource.

use std::sync::Arc;

use super::access::{Action, Target};
use super::area::Base;
use super::cedar::{CedarOpinion, CedarPolicies};
use super::principal::Principal;
use super::schedule::Minute;
use super::spelling::canonical_reference;

/// Asks policies. Remembers nothing.
#[derive(Debug, PartialEq)]
pub(super) struct Judge {
    policies: Arc<CedarPolicies>,
}

impl Judge {
    pub(super) fn new(policies: Arc<CedarPolicies>) -> Self {
        Self { policies }
    }

    /// The policies.
    pub(super) fn policies(&self) -> &CedarPolicies {
        &self.policies
    }

    /// What the policies say about one resource. As for rules: a resource is permitted in both of its spellings, the written
    /// and the canonical one. It is forbidden in any of them, without its query, and with or without a slash at its end.
    pub(super) fn opinion(
        &self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        base: &Base,
        minute: Minute,
    ) -> CedarOpinion {
        let reference = target.reference.unwrap_or_default();
        let at = minute.start();
        let ask = |reference: &str| {
            let target = Target { reference: Some(reference), ..target };
            self.policies.decide(principal, action, target, at)
        };
        let is_forbidden = |opinion: &CedarOpinion| matches!(opinion, CedarOpinion::Forbidden(_));
        let written = ask(reference);
        if is_forbidden(&written) {
            return written;
        }
        let (canonical, bare) = canonical_reference(reference, base.is_folder());
        let opinion = match (canonical == reference, &written) {
            (true, _) => written,
            (false, CedarOpinion::Permitted(_)) => ask(&canonical),
            (false, _) => match ask(&canonical) {
                forbidden @ CedarOpinion::Forbidden(_) => forbidden,
                _ => written,
            },
        };
        if is_forbidden(&opinion) || !self.policies.has_forbids() {
            return opinion;
        }
        let folder = format!("{bare}/");
        let is_base = bare.is_empty() && base.is_folder();
        let others = [Some(bare).filter(|_| !is_base), Some(folder).filter(|_| !is_base)];
        let others = others.into_iter().flatten().filter(|other| *other != canonical && *other != reference);
        let forbidden = others.map(|other| ask(&other)).find(is_forbidden);
        forbidden.unwrap_or(opinion)
    }
}
