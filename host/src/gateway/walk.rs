//! One record for a walk: a list that is fetched page by page, a search, or the looks at what is watched are many calls, and
//! one line for each mount and operation, with their number and what they used together.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::audit::{Record, Sink};
use crate::catalog::Mount;
use crate::model::{Caller, Operation, ReadError, Verdict};
use crate::sandbox::MountId;

/// Gathers the records of one walk; written when it goes out of scope, however that ends.
#[derive(Clone)]
pub(super) struct Walk(Arc<Gathered>);

struct Gathered {
    audit: Sink,
    caller: Caller,
    /// One for each mount and operation.
    records: Mutex<Vec<Record>>,
    /// Revisions that were told in this walk: of resources and of templates, one call tells both.
    revisions: Mutex<HashMap<MountId, String>>,
}

impl Walk {
    /// A walk for `caller`.
    pub(super) fn new(audit: &Sink, caller: &Caller) -> Self {
        let (audit, caller) = (audit.clone(), caller.clone());
        Self(Arc::new(Gathered { audit, caller, records: Mutex::default(), revisions: Mutex::default() }))
    }

    /// Who walks.
    pub(super) fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// Where it will be recorded.
    pub(super) fn audit(&self) -> &Sink {
        &self.0.audit
    }

    fn revisions(&self) -> MutexGuard<'_, HashMap<MountId, String>> {
        self.0.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of a mount's list, where it was told in this walk.
    pub(super) fn revision(&self, mount: &Mount) -> Option<String> {
        self.revisions().get(&mount.loaded.id()).cloned()
    }

    /// Notes the revision of a mount's list.
    pub(super) fn was_told(&self, mount: &Mount, revision: &str) {
        self.revisions().insert(mount.loaded.id(), revision.to_owned());
    }

    /// Begins another round of the same walk: what was told before may not hold any more.
    pub(super) fn begin_round(&self) {
        self.revisions().clear();
    }

    fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call.
    pub(super) fn add(&self, record: Record) {
        let mut records = self.records();
        let same = |one: &&mut Record| {
            one.operation == record.operation && one.mount == record.mount && one.digest == record.digest
        };
        match records.iter_mut().find(same) {
            Some(one) => one.join(record),
            None => records.push(record),
        }
    }

    /// Notes that what `mount` answered in the walk cannot be right, although each of its calls was.
    pub(super) fn ends_in(&self, mount: &Mount, operation: &Operation, error: ReadError) {
        let mut records = self.records();
        let mut own = records.iter_mut();
        if let Some(one) = own.find(|one| one.operation == operation.name() && one.mount.as_ref() == Some(&mount.name))
        {
            one.outcome = Err(error);
        }
    }

    /// Writes what was gathered, and goes on with nothing.
    pub(super) fn write(&self) {
        self.0.write();
    }

    /// What went wrong since the last write, a hash for each operation: how it failed, and what it was refused.
    pub(super) fn wrongs(&self) -> Vec<u64> {
        let wrong = |record: &Record| {
            let error = record.outcome.as_ref().err().map(ReadError::kind);
            let refused = record.trail.decisions().iter().filter(|one| one.verdict != Verdict::Allowed);
            let refused: Vec<_> = refused.map(|one| (one.grant, &one.what)).collect();
            let mut hasher = DefaultHasher::new();
            (record.operation, error, &refused).hash(&mut hasher);
            (error.is_some() || !refused.is_empty()).then(|| hasher.finish())
        };
        self.records().iter().filter_map(wrong).collect()
    }
}

impl Gathered {
    fn write(&self) {
        let records = std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner));
        records.into_iter().for_each(|record| self.audit.record(record));
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.write();
    }
}
