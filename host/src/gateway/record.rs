//! One record for each call, and for each request that never became one.

use std::sync::Arc;
use std::time::SystemTime;

use super::walk::Walk;
use crate::audit::{Consented, Record, Sink};
use crate::catalog::Mount;
use crate::model::{Caller, Digest, MountName, Operation, ReadError, Trail, Usage, reference, text};

/// Records a call when it goes out of scope: how it ended, or that it was withdrawn.
pub(super) struct Recorder<'a> {
    audit: &'a Sink,
    pub(super) caller: &'a Caller,
    pub(super) mount: &'a Arc<Mount>,
    pub(super) operation: &'a Operation,
    /// The walk that the call is a part of.
    walk: Option<&'a Walk>,
    /// How it ended, once it has.
    pub(super) ended: Option<(Result<(), ReadError>, Usage, Trail)>,
    /// What a person was asked and answered.
    pub(super) consent: Consented,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(audit: &'a Sink, caller: &'a Caller, mount: &'a Arc<Mount>, operation: &'a Operation) -> Self {
        Self { audit, caller, mount, operation, walk: None, ended: None, consent: Consented::default() }
    }

    /// Of a call that is recorded with the walk that it is a part of.
    pub(super) fn in_walk(walk: &'a Walk, mount: &'a Arc<Mount>, operation: &'a Operation) -> Self {
        let mut own = Self::new(walk.audit(), walk.caller(), mount, operation);
        own.walk = Some(walk);
        own
    }

    fn keep(&self, record: Record) {
        match self.walk {
            Some(walk) => walk.add(record),
            None => self.audit.record(record),
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if !self.audit.is_on() {
            return;
        }
        let (outcome, usage, trail) =
            self.ended.take().unwrap_or_else(|| (Err(ReadError::Cancelled), Usage::default(), Trail::default()));
        let consent = std::mem::take(&mut self.consent);
        self.keep(Record {
            at: SystemTime::now(),
            caller: self.caller.clone(),
            mount: Some(self.mount.name.clone()),
            digest: Some(self.mount.digest),
            operation: self.operation.name(),
            reference: self.operation.reference().map(str::to_owned),
            served_from: None,
            calls: 1,
            outcome,
            usage,
            trail,
            consent,
        });
    }
}

/// Records a read that was answered without a call of its own: from what was kept, or by the call of another.
pub(super) fn served(
    audit: &Sink,
    caller: &Caller,
    mount: &Mount,
    reference: String,
    from: &'static str,
    outcome: &Result<(), &ReadError>,
) {
    if !audit.is_on() {
        return;
    }
    audit.record(Record {
        at: SystemTime::now(),
        caller: caller.clone(),
        mount: Some(mount.name.clone()),
        digest: Some(mount.digest),
        operation: "read",
        reference: Some(reference),
        served_from: Some(from),
        calls: 1,
        outcome: outcome.map_err(Clone::clone),
        usage: Usage::default(),
        trail: Trail::default(),
        consent: Consented::default(),
    });
}

/// Records a read that no call was made for: no mount was found, or its answer to a question does not count.
pub(super) fn refused(
    audit: &Sink,
    caller: &Caller,
    uri: &str,
    (mount, digest): (Option<MountName>, Option<Digest>),
    error: &ReadError,
) {
    audit.record(Record {
        at: SystemTime::now(),
        caller: caller.clone(),
        mount,
        digest,
        operation: "read",
        reference: Some(text::excerpt(uri, reference::MAX_URI)),
        served_from: None,
        calls: 1,
        outcome: Err(error.clone()),
        usage: Usage::default(),
        trail: Trail::default(),
        consent: Consented::default(),
    });
}
