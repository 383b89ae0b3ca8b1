//! Several calls that make up one operation: a list that is fetched page by page, a search, or the polls of watched
//! resources. They are recorded as one event for each mount and operation, with their number and their total usage.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::catalog::Mount;
use crate::model::{DecisionKind, ReadError};
use crate::policy::Caller;
use crate::sandbox::MountId;
use crate::telemetry::{Event, EventError, Sink};

/// Collects the events of a group's calls, and writes them when it is dropped.
#[derive(Clone)]
pub(super) struct CallGroup(Arc<CallGroupState>);

struct CallGroupState {
    audit: Sink,
    caller: Caller,
    /// One for each mount and operation.
    records: Mutex<Vec<Event>>,
    /// The list revisions that providers gave during this group. One call gives the revision of both resources and
    /// templates.
    revisions: Mutex<HashMap<MountId, String>>,
}

impl CallGroup {
    /// A group of calls for `caller`.
    pub(super) fn new(audit: &Sink, caller: &Caller) -> Self {
        let (audit, caller) = (audit.clone(), caller.clone());
        Self(Arc::new(CallGroupState { audit, caller, records: Mutex::default(), revisions: Mutex::default() }))
    }

    /// The caller of all calls.
    pub(super) fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The audit sink.
    pub(super) fn audit(&self) -> &Sink {
        &self.0.audit
    }

    fn revisions(&self) -> MutexGuard<'_, HashMap<MountId, String>> {
        self.0.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of a mount's list, if the provider gave it during this group.
    pub(super) fn revision(&self, mount: &Mount) -> Option<String> {
        self.revisions().get(&mount.loaded.id()).cloned()
    }

    /// Stores the revision of a mount's list.
    pub(super) fn set_revision(&self, mount: &Mount, revision: &str) {
        self.revisions().insert(mount.loaded.id(), revision.to_owned());
    }

    /// Forgets all revisions. Called before the next poll of the same group, because they may have changed.
    pub(super) fn clear_revisions(&self) {
        self.revisions().clear();
    }

    fn records(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the event of one call.
    pub(super) fn add(&self, record: Event) {
        let mut records = self.records();
        let same = |one: &&mut Event| {
            one.operation == record.operation && one.mount == record.mount && one.digest == record.digest
        };
        match records.iter_mut().find(same) {
            Some(one) => one.join(record),
            None => records.push(record),
        }
    }

    /// Marks the calls of `function` as failed: each reply was valid, but together they cannot be right.
    pub(super) fn mark_failed(&self, mount: &Mount, function: &str, error: ReadError) {
        let mut records = self.records();
        let mut own = records.iter_mut();
        if let Some(one) = own.find(|one| one.operation == function && one.mount.as_ref() == Some(&mount.name)) {
            one.outcome = Err(error.into());
        }
    }

    /// Writes the collected events, and continues with none.
    pub(super) fn write(&self) {
        self.0.write();
    }

    /// One hash for each operation that failed or was refused something since the last write: of its error and its
    /// refusals.
    pub(super) fn problems(&self) -> Vec<u64> {
        let problem = |record: &Event| {
            let error = record.outcome.as_ref().err().map(EventError::kind);
            let refused = record.decision_log.decisions().iter().filter(|one| one.verdict != DecisionKind::Allowed);
            let refused: Vec<_> = refused.map(|one| (&one.grant, &one.target)).collect();
            let mut hasher = DefaultHasher::new();
            (record.operation, error, &refused).hash(&mut hasher);
            (error.is_some() || !refused.is_empty()).then(|| hasher.finish())
        };
        self.records().iter().filter_map(problem).collect()
    }
}

impl CallGroupState {
    fn write(&self) {
        let records = std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner));
        records.into_iter().for_each(|record| self.audit.record(record));
    }
}

impl Drop for CallGroupState {
    fn drop(&mut self) {
        self.write();
    }
}
