//! The gates of all mounts, by name: what a mount used, owes, holds and failed at is kept here, and not by the mount, so
//! that a changed configuration starts no second account beside the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::operations::Operations;
use super::{Gate, MountState};
use crate::model::{Digest, Limits, MountName};

/// Mounts that are remembered when they are gone: what they owe is still owed when they come back.
const REMEMBERED: usize = 4096;

/// See the module.
#[derive(Default)]
pub struct Gates(Mutex<HashMap<MountName, Entry>>);

struct Entry {
    mount: Arc<MountState>,
    /// Other bytes fail in other ways.
    operations: Arc<Operations>,
    digest: Digest,
    limits: Limits,
}

impl Gates {
    /// The gate of the mount of this name, with `limits` from now on: for calls that are let in through gates of before as
    /// well, as far as they are about all calls of the mount together.
    pub fn gate(&self, name: &MountName, digest: &Digest, limits: &Limits) -> Gate {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(name) {
            all.retain(|_, entry| Arc::strong_count(&entry.mount) > 1 || entry.mount.owes(Instant::now()));
        }
        let entry = all.entry(name.clone()).or_insert_with(|| Entry {
            mount: Arc::new(MountState::new(name.clone(), limits)),
            operations: Arc::default(),
            digest: *digest,
            limits: limits.clone(),
        });
        if entry.digest != *digest {
            (entry.operations, entry.digest) = (Arc::default(), *digest);
        }
        if entry.limits != *limits {
            entry.operations.forget_limits();
            entry.mount.set(limits);
            entry.limits = limits.clone();
        }
        Gate::of(Arc::clone(&entry.mount), Arc::clone(&entry.operations), limits.clone())
    }
}
