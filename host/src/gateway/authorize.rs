//! What a principal may do and see. Every other file of the gateway asks here, and nothing else asks policy.
//!
//! # What a principal may not see looks like what is not there
//!
//! - The answer has the same bytes, and no call is made. A hidden mount is absent from lists, notices, suggestions, the
//!   names in errors and the instructions. A hidden resource of a known mount is answered as one that its provider does
//!   not have.
//! - The decision comes before anything that depends on the resource. Whether a hidden resource exists therefore
//!   changes nothing that a client could measure. A client can measure that a reference is refused without a call: this
//!   tells what policy says about the name, and the principal knows that from its own rules.
//! - A URI of a hidden mount waits for components that are being compiled exactly as long as a URI of no mount.
//! - One exception in time: below a mount that the principal knows, another mount may have a longer base. If that one is
//!   hidden, its URIs are answered as missing resources of the first mount, but that mount is not asked.
//! - One exception in bytes: if only a scope is missing, the error names the scopes that the request needs.

use std::time::SystemTime;

use super::pipeline::{Gateway, MountCall};
use crate::catalog::{Mount, Notice, Snapshot};
use crate::interfaces::Request;
use crate::model::{MountName, ReadError};
use crate::policy::{Access, Action, Principal, Refusal, Target, Visibility};

/// The actions that make a mount known to a principal: it may take one of them on some part of the mount.
const KNOWN_BY: [Action; 7] =
    [Action::List, Action::Read, Action::Watch, Action::Search, Action::Complete, Action::Call, Action::Prompt];

/// The error of a refused request.
pub(super) fn to_error(refusal: Refusal) -> ReadError {
    match refusal {
        Refusal::Hidden => ReadError::NotFound,
        Refusal::Scope(scopes) => ReadError::InsufficientScope { scopes },
    }
}

impl Gateway {
    /// True if there is any rule. Then no answer may be cached for everybody.
    pub fn has_rules(&self) -> bool {
        self.policy.has_rules()
    }

    /// Authorizes the principal of a call.
    ///
    /// # Errors
    /// When policy denies the request.
    pub(super) fn authorize(&self, call: MountCall<'_>, request: &Request) -> Result<Access, ReadError> {
        let (principal, reference) = (&call.caller().principal, request.reference());
        self.decide(principal, request.action(), call.mount(), reference).map_err(to_error)
    }

    /// Decides whether `principal` may take `action` on a resource of `mount`, or on the mount as a whole.
    pub(super) fn decide(
        &self,
        principal: &Principal,
        action: Action,
        mount: &Mount,
        reference: Option<&str>,
    ) -> Result<Access, Refusal> {
        let target = Target { mount: &mount.name, base: &mount.base, reference };
        self.policy.authorize(principal, action, target, SystemTime::now())
    }

    /// The part of `mount` on which `principal` may take `action`.
    pub(super) fn visibility(&self, principal: &Principal, action: Action, mount: &Mount) -> Visibility {
        self.visibility_of(principal, action, &mount.name, &mount.base)
    }

    fn visibility_of(&self, principal: &Principal, action: Action, mount: &MountName, base: &str) -> Visibility {
        let target = Target { mount, base, reference: None };
        self.policy.visibility(principal, action, target, SystemTime::now())
    }

    /// True if `principal` may do anything with any part of the mount. Otherwise the mount does not exist for it.
    pub(super) fn knows(&self, principal: &Principal, mount: &MountName, base: &str) -> bool {
        !self.has_rules()
            || KNOWN_BY.iter().any(|action| !self.visibility_of(principal, *action, mount, base).is_nothing())
    }

    /// The mounts that are not served, as far as `principal` knows them, with the notices for a list. Only one of them, if
    /// `only` names it.
    pub(super) fn absent_mounts<'s>(
        &self,
        principal: &Principal,
        snapshot: &'s Snapshot,
        only: Option<&MountName>,
    ) -> impl Iterator<Item = (&'s MountName, Notice)> {
        let is_known = move |(name, base, _): &(&MountName, &str, Notice)| {
            only.is_none_or(|only| *name == only) && self.knows(principal, name, base)
        };
        snapshot.absent().filter(is_known).map(|(name, _, notice)| (name, notice))
    }

    /// True if `principal` knows every mount of `snapshot`. Then no text about one of them can name a hidden one.
    pub(super) fn knows_all(&self, principal: &Principal, snapshot: &Snapshot) -> bool {
        !self.has_rules() || snapshot.all_bases().all(|(name, base)| self.knows(principal, name, base))
    }
}
