//! What the caller of a search may find: names by the action `search`, contents by the action `read` too.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::pipeline::Gateway;
use crate::catalog::{Mount, Snapshot};
use crate::model::MountName;
use crate::policy::{Action, Caller, Visibility};

/// The names that a caller may search, by mount.
pub(super) struct SearchableNames(HashMap<MountName, SearchableMount>);

struct SearchableMount {
    base: String,
    /// The operator allows searches in contents.
    has_contents: bool,
    search: Visibility,
    read: Visibility,
}

impl SearchableNames {
    pub(super) fn new(gateway: &Gateway, caller: &Caller, snapshot: &Snapshot) -> Self {
        let of = |mount: &Arc<Mount>| {
            let [search, read] =
                [Action::Search, Action::Read].map(|action| gateway.visibility(&caller.principal, action, mount));
            let searchable = SearchableMount { base: mount.base.clone(), has_contents: mount.search, search, read };
            (mount.name.clone(), searchable)
        };
        Self(snapshot.mounts().iter().map(of).collect())
    }

    fn is_visible(mount: &SearchableMount, uri: &str, visible: &Visibility) -> bool {
        visible.is_all() || uri.strip_prefix(&mount.base).is_some_and(|reference| visible.contains(reference))
    }

    /// True if the caller may find the resource.
    pub(super) fn contains(&self, mount: &MountName, uri: &str) -> bool {
        self.0.get(mount).is_some_and(|mount| Self::is_visible(mount, uri, &mount.search))
    }

    /// True if the caller may find the resource by its contents.
    pub(super) fn is_open(&self, mount: &MountName, uri: &str) -> bool {
        self.0.get(mount).is_some_and(|mount| mount.has_contents && Self::is_visible(mount, uri, &mount.read))
    }

    /// True if the caller may find any resource of the mount.
    pub(super) fn has_any(&self, mount: &MountName) -> bool {
        self.0.get(mount).is_some_and(|mount| !mount.search.is_nothing())
    }

    /// True if a result may name the mount as one that was not searched.
    pub(super) fn may_name(&self, mount: &MountName) -> bool {
        self.0.get(mount).is_none_or(|mount| !mount.search.is_nothing())
    }
}
