//! The policy in force, which a change of the configuration replaces.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;

use super::access::{Access, Action, Refusal, Target};
use super::decider::Decider;
use super::principal::Principal;
use super::visibility::Visibility;

/// The policy in force: which principals may do which actions. The default has no rules: everybody may do everything.
#[derive(Debug)]
pub struct Policy {
    decider: ArcSwap<Decider>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(Decider::default())
    }
}

impl Policy {
    /// The policy of `decider`.
    pub fn new(decider: impl Into<Decider>) -> Self {
        Self { decider: ArcSwap::from_pointee(decider.into()) }
    }

    /// Puts another decider in force. The next decision is by it. Returns true if it differs from the one before: then
    /// what is open, such as a subscription, must be judged anew.
    pub fn replace(&self, decider: impl Into<Decider>) -> bool {
        let decider = decider.into();
        let is_change = **self.decider.load() != decider;
        if is_change {
            self.decider.store(Arc::new(decider));
        }
        is_change
    }

    /// True if there is any rule. Then principals may see different things, and no answer is for everybody.
    pub fn has_rules(&self) -> bool {
        !self.decider.load().is_empty()
    }

    /// True if a rule has a schedule. Then what a principal may do changes with the time.
    pub fn has_schedule(&self) -> bool {
        self.decider.load().has_schedule()
    }

    /// Authorizes `principal` for `action` on `target` at the time `at`. For the mount as a whole: allowed if
    /// [`Policy::visibility`] is not nothing.
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
        self.decider.load().authorize(principal, action, target, at)
    }

    /// The part of a mount on which `principal` may take `action` at the time `at`. `target` is the mount as a whole.
    pub fn visibility(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> Visibility {
        self.decider.load().visibility(principal, action, target, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MountName;
    use crate::policy::{Evidence, authenticate};

    #[test]
    fn an_access_names_principal_action_and_mount() {
        let mount = MountName::new("notes").unwrap();
        let local = authenticate(Evidence::OwnUser);
        let target = Target { mount: &mount, base: "belljar://notes/", reference: Some("a.md") };
        let access = Policy::default().authorize(&local, Action::Read, target, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!((access.principal(), access.action(), access.mount()), (&local, Action::Read, &mount));
    }
}
