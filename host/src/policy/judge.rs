//! Asks the policies of `policy.cedar` about each spelling of a resource.

use std::sync::Arc;

use super::access::{Action, Target};
use super::area::Base;
use super::cedar::{CedarOpinion, CedarPolicies};
use super::principal::Principal;
use super::schedule::Minute;

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

    /// What the policies say about one resource. As for rules: a resource is permitted in both of its spellings, and
    /// forbidden in any of them.
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
        let spellings = base.spellings(reference);
        let written = ask(reference);
        let mut others = Vec::new();
        if *spellings.plain != *spellings.written {
            others.push(ask(&String::from_utf8_lossy(&spellings.plain)));
        }
        let forbidden = |opinion: &CedarOpinion| matches!(opinion, CedarOpinion::Forbidden(_));
        if let Some(bare) = &spellings.bare {
            let bare = ask(&String::from_utf8_lossy(bare));
            if forbidden(&bare) {
                return bare;
            }
        }
        if forbidden(&written) {
            return written;
        }
        match others.into_iter().find(|other| !matches!(other, CedarOpinion::Permitted(_))) {
            Some(forbidden @ CedarOpinion::Forbidden(_)) => forbidden,
            Some(other) => other,
            None => written,
        }
    }
}
