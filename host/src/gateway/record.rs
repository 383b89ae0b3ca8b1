//! One event for each call, and for each request that never became a call.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use super::call_group::CallGroup;
use super::response_cost::ResponseCost;
use crate::catalog::Mount;
use crate::grants::CallRecord;
use crate::interfaces::Request;
use crate::limits::Operation;
use crate::model::reference::MAX_URI;
use crate::model::{DecisionKind, DecisionLog, MountName, ReadError, RequestInfo, Usage, text};
use crate::policy::Caller;
use crate::telemetry::{ConsentRecord, Event, EventError, Sink};

/// Records a call when it is dropped: its result, or that it was cancelled, and its usage until then.
///
/// If the host still works on the answer, [`Recorder::into_cost`] hands the event over to the [`ResponseCost`].
pub(super) struct Recorder<'a> {
    audit: &'a Sink,
    caller: &'a Caller,
    mount: &'a Arc<Mount>,
    request: &'a Request,
    /// The group that the call belongs to.
    group: Option<&'a CallGroup>,
    /// The decisions and the usage of the running call.
    pub(super) decisions: CallRecord,
    /// The result of the call, once it has ended.
    pub(super) ended: Option<(Result<(), ReadError>, Usage, DecisionLog)>,
    /// The question that a person was asked, and the answer.
    pub(super) consent: ConsentRecord,
    /// Time until the call had its turn.
    pub(super) queue: Duration,
    /// When the call was asked for. `None` before.
    pub(super) called_at: Option<SystemTime>,
    /// The client's request, unless another call of it has an event already.
    info: Option<Arc<RequestInfo>>,
    is_handed_over: bool,
}

impl<'a> Recorder<'a> {
    /// `group`: the group that the call belongs to, if several calls are recorded as one.
    pub(super) fn new(
        audit: &'a Sink,
        caller: &'a Caller,
        mount: &'a Arc<Mount>,
        request: &'a Request,
        group: Option<&'a CallGroup>,
    ) -> Self {
        let (decisions, consent) = (CallRecord::default(), ConsentRecord::default());
        // The request has an event of its own if it makes a group of calls.
        let info = caller.request.as_ref().filter(|_| group.is_none() && audit.is_on()).and_then(RequestInfo::claim);
        let (queue, called_at, ended, is_handed_over) = (Duration::ZERO, None, None, false);
        if let Some(info) = caller.request.as_ref().filter(|info| info.trace.is_some()) {
            decisions.set_trace(info);
        }
        Self { audit, caller, mount, request, group, decisions, ended, consent, queue, called_at, info, is_handed_over }
    }

    /// The cost record of the answer, which contains the event.
    pub(super) fn into_cost(mut self) -> ResponseCost {
        self.is_handed_over = true;
        let event = self.audit.is_on().then(|| self.event());
        match self.group {
            Some(group) => ResponseCost::in_group(group, self.mount, event),
            None => ResponseCost::new(self.audit, self.mount, event),
        }
    }

    /// The event with the result of the call. Without one it is the event of a withdrawn call, and has its usage so far.
    fn event(&mut self) -> Event {
        let withdrawn = || {
            let usage = Usage { queue: self.queue, ..self.decisions.usage() };
            (Err(ReadError::Cancelled), usage, self.decisions.take_decisions())
        };
        let (outcome, usage, decisions) = self.ended.take().unwrap_or_else(withdrawn);
        Event {
            ended_at: SystemTime::now(),
            caller: self.caller.clone(),
            request: self.info.take(),
            took: Duration::ZERO,
            mount: Some(self.mount.name.clone()),
            digest: Some(self.mount.digest),
            // A read of a part is a read.
            operation: if self.request.is_read() { "read" } else { self.request.name() },
            reference: self.request.reference().map(str::to_owned),
            uri: traced_uri(self.caller, self.mount, self.request.reference()),
            called_at: self.called_at,
            served_from: None,
            calls: 1,
            outcome: outcome.map_err(EventError::from),
            usage,
            decision_log: decisions,
            consent: std::mem::take(&mut self.consent),
            credential: None,
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if !self.audit.is_on() || self.is_handed_over {
            return;
        }
        if let Some(group) = self.group {
            return group.add(self.event());
        }
        if self.ended.is_some() {
            return self.audit.record(self.event());
        }
        self.ended = Some((Err(ReadError::Cancelled), Usage::default(), DecisionLog::default()));
        let (audit, event) = (self.audit.clone(), self.event());
        let queue = self.queue;
        self.decisions.when_ended(move |usage, decision_log| {
            let usage = Usage { queue, ..usage };
            audit.record(Event { usage, decision_log, ..event });
        });
    }
}

/// The absolute URI of a reference, if the request is traced.
fn traced_uri(caller: &Caller, mount: &Mount, reference: Option<&str>) -> Option<String> {
    let _trace = caller.request.as_ref()?.trace.as_ref()?;
    Some([mount.base.as_str(), reference?].concat())
}

/// The cost record, with its event, of a read without its own call. Such a read is answered from the cache, or by the
/// call of another request.
pub(super) fn served_cost(
    audit: &Sink,
    caller: &Caller,
    mount: &Arc<Mount>,
    reference: &str,
    from: &'static str,
    outcome: &Result<(), &ReadError>,
) -> ResponseCost {
    let event = || Event {
        mount: Some(mount.name.clone()),
        digest: Some(mount.digest),
        reference: Some(reference.to_owned()),
        uri: traced_uri(caller, mount, Some(reference)),
        served_from: Some(from),
        ..Event::new(caller.clone(), "read", outcome.map_err(|error| error.clone().into()))
    };
    ResponseCost::new(audit, mount, audit.is_on().then(event))
}

/// Records a read that leads to no resource. `refused` is the mount for which policy refused it: the record names it,
/// and the answer does not.
pub(super) fn record_unrouted(
    audit: &Sink,
    caller: &Caller,
    uri: &str,
    (mount, refused): (Option<&MountName>, Option<&Mount>),
    error: &ReadError,
) {
    let mut decision_log = DecisionLog::default();
    if refused.is_some() {
        decision_log.add("policy", uri, DecisionKind::Denied, || None);
    }
    audit.record(Event {
        mount: refused.map(|refused| &refused.name).or(mount).cloned(),
        digest: refused.map(|refused| refused.digest),
        reference: Some(text::excerpt(uri, MAX_URI)),
        decision_log,
        ..Event::new(caller.clone(), "read", Err(error.clone().into()))
    });
}

/// Records a request for which no call was made, because its parameters or the answer to a question were invalid.
/// `reference`: the URI, or the name of the tool or prompt.
pub(super) fn record_refusal(
    audit: &Sink,
    caller: &Caller,
    operation: &'static str,
    reference: &str,
    mount: Option<&Mount>,
    error: &ReadError,
) {
    audit.record(Event {
        mount: mount.map(|mount| mount.name.clone()),
        digest: mount.map(|mount| mount.digest),
        reference: Some(text::excerpt(reference, MAX_URI)),
        ..Event::new(caller.clone(), operation, Err(error.clone().into()))
    });
}

/// Records a request when it is dropped, unless one of its calls has its event. A request that is dropped before
/// [`RequestRecord::set_outcome`] was withdrawn.
pub struct RequestRecord {
    audit: Sink,
    caller: Caller,
    reference: OnceLock<String>,
    outcome: OnceLock<Result<(), EventError>>,
}

impl RequestRecord {
    /// The record of the request of `caller`.
    pub(super) fn new(audit: &Sink, caller: &Caller) -> Self {
        let (reference, outcome) = (OnceLock::new(), OnceLock::new());
        Self { audit: audit.clone(), caller: caller.clone(), reference, outcome }
    }

    /// Stores the URI or the name that the request is about. At most 2 KiB of it are kept.
    pub fn set_reference(&self, reference: &str) {
        let _ = self.reference.set(text::excerpt(reference, MAX_URI));
    }

    /// Stores the outcome. The first one counts: it is closest to the cause.
    pub fn set_outcome(&self, outcome: Result<(), EventError>) {
        let _ = self.outcome.set(outcome);
    }

    /// True if the outcome is not needed, because an event has the request already or nobody takes events.
    pub fn is_done(&self) -> bool {
        !self.audit.is_on() || self.caller.request.as_ref().is_none_or(|request| request.is_recorded())
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let Some(method) = self.caller.request.as_ref().map(|request| request.method).filter(|_| !self.is_done())
        else {
            return;
        };
        let outcome = self.outcome.take().unwrap_or_else(|| Err(ReadError::Cancelled.into()));
        let event = Event::new(self.caller.clone(), method, outcome);
        self.audit.record(Event { calls: 0, reference: self.reference.take(), ..event });
    }
}
