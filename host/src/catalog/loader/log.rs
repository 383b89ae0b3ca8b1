//! Log messages about changes of the served mounts.

use std::sync::Arc;

use crate::catalog::snapshot::Snapshot;
use crate::model::{Digest, MountName};

/// Logs the differences between `old` and `new`. `is_first_load_done`: the first load is complete, so new mounts are logged
/// too.
pub(super) fn log_changes(old: &Snapshot, new: &Snapshot, is_first_load_done: bool) {
    let find =
        |snapshot: &Snapshot, name: &MountName| -> Option<Digest> { snapshot.find(name).map(|mount| mount.digest) };
    if is_first_load_done {
        for mount in new.mounts() {
            match find(old, &mount.name) {
                None => tracing::info!(mount = %mount.name, "served now ({})", mount.digest),
                Some(before) if before != mount.digest => {
                    tracing::info!(mount = %mount.name, "exchanged: {before} before, {} now", mount.digest);
                }
                Some(_) if !old.find(&mount.name).is_some_and(|before| Arc::ptr_eq(before, mount)) => {
                    tracing::info!(mount = %mount.name, "served as the configuration says now");
                }
                Some(_) => {}
            }
        }
        for mount in old.mounts().iter().filter(|mount| find(new, &mount.name).is_none()) {
            tracing::info!(mount = %mount.name, "no longer served");
        }
    }
    for one in new.quarantined().iter().filter(|one| !old.quarantined().contains(one)) {
        tracing::error!(mount = %one.name, "in quarantine: {}", one.reason());
    }
    for refused in new.refused().iter().filter(|refused| old.refused().binary_search(refused).is_err()) {
        let is_served = new.mounts().iter().any(|mount| mount.name.as_str() == refused.name);
        let outcome = if is_served { "is not updated" } else { "is not served" };
        tracing::warn!("\"{}\" {outcome}: {}", refused.name, refused.reason);
    }
}
