//! Permissions of principals, and refusals.

use std::sync::Arc;

use super::class::AccessClass;
use super::principal::Principal;
use super::rate::QuotaRule;
use crate::model::MountName;

/// An action on a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Read one resource.
    Read,
    /// List resources or templates.
    List,
    /// Search the contents of resources.
    Search,
    /// Complete a variable of a template.
    Complete,
    /// Ask for the provider's description. Whoever may do anything else with the mount may do this.
    Describe,
    /// Ask for changes.
    Watch,
    /// Call a tool. The target is the name of the tool below the base of its mount.
    Call,
    /// Get a prompt, and complete its arguments. The target is the name of the prompt below the base of its mount.
    Prompt,
}

/// The target of a request: a mount, and one resource of it if the action is about one.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The name of the mount.
    pub mount: &'a MountName,
    /// The base URI of the mount.
    pub base: &'a str,
    /// The resource, as a reference below the base; for a tool or a prompt, its name. `None`: the mount as a whole. An action on the whole is allowed if it
    /// may be allowed on a part of it.
    pub reference: Option<&'a str>,
}

/// The permission of a principal for one action on one mount. Only [`super::Policy::authorize`] creates one; admission
/// requires it for a permit.
#[derive(Clone, Debug)]
pub struct Access {
    principal: Principal,
    action: Action,
    mount: MountName,
    class: AccessClass,
    rates: Vec<Arc<QuotaRule>>,
}

/// Why policy does not allow a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The target must look as if it were not there.
    Hidden,
    /// A key or token with these scopes would be allowed. Names all scopes that the request needs, each once.
    Scope(Vec<String>),
}

impl Access {
    /// The permission of `principal` for `action` on the mount of `target`.
    pub(super) fn new(
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        class: AccessClass,
        rates: Vec<Arc<QuotaRule>>,
    ) -> Self {
        Self { principal: principal.clone(), action, mount: target.mount.clone(), class, rates }
    }

    /// The same permission of another class.
    pub(super) fn with_class(self, class: AccessClass) -> Self {
        Self { class, ..self }
    }

    /// The principal.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The permitted action.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The mount.
    pub fn mount(&self) -> &MountName {
        &self.mount
    }

    /// The class of principals who may share an answer with this one.
    pub fn class(&self) -> AccessClass {
        self.class
    }

    /// The rates of the rules that allowed the request, each once. All of them hold. Empty if a rule without a rate
    /// allowed it too: that rule would have been enough.
    pub fn rates(&self) -> &[Arc<QuotaRule>] {
        &self.rates
    }
}
