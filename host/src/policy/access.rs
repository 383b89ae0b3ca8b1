//! Permissions of principals.

use super::principal::Principal;
use crate::model::{MountName, ReadError};

/// An action on a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read one resource.
    Read,
    /// List resources or templates.
    List,
    /// Complete a variable of a template.
    Complete,
    /// Ask for the provider's description.
    Describe,
    /// Ask for changes.
    Watch,
}

/// The permission of a principal for one action on one mount. Only [`Policy::authorize`] creates one; admission
/// requires it for a permit.
#[derive(Clone, Debug)]
pub struct Access {
    principal: Principal,
    action: Action,
    mount: MountName,
}

impl Access {
    /// The principal.
    pub fn principal(&self) -> Principal {
        self.principal
    }

    /// The permitted action.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The mount.
    pub fn mount(&self) -> &MountName {
        &self.mount
    }
}

/// The policy: which principals may do which actions. At present every principal may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy;

impl Policy {
    /// Authorizes `principal` for `action` on `mount`, and on `reference` if the action is about one resource.
    ///
    /// # Errors
    /// None at present: every principal may do everything.
    pub fn authorize(
        &self,
        principal: Principal,
        action: Action,
        mount: &MountName,
        _reference: Option<&str>,
    ) -> Result<Access, ReadError> {
        Ok(Access { principal, action, mount: mount.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Evidence, authenticate};

    #[test]
    fn an_access_names_principal_action_and_mount() {
        let mount = MountName::new("notes").unwrap();
        let access = Policy.authorize(authenticate(Evidence::OwnUser), Action::Read, &mount, Some("a.md")).unwrap();
        assert_eq!((access.principal().as_str(), access.action(), access.mount()), ("local", Action::Read, &mount));
    }
}
