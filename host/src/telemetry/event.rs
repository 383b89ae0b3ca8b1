//! The event of one request or call, and its line in the audit record.

mod error;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use error::EventError;

use crate::model::{Consent, DecisionLog, Digest, MountName, RequestInfo, Usage};
use crate::policy::Caller;

/// The operations of requests that were refused before belljar knew what they ask for.
pub const REFUSED_AT_THE_DOOR: [&str; 2] = ["authenticate", "receive"];

/// The event of one request, with the call that it made. The calls that belljar makes for a list share an event of their
/// own.
#[derive(Clone, Debug)]
pub struct Event {
    /// The end of the call.
    pub ended_at: SystemTime,
    /// The caller.
    pub caller: Caller,
    /// The client's request. Each request of a client is in exactly one event.
    pub request: Option<Arc<RequestInfo>>,
    /// The time from the arrival of the request until its event was recorded.
    pub took: Duration,
    /// The mount, if the request names one.
    pub mount: Option<MountName>,
    /// The component's digest.
    pub digest: Option<Digest>,
    /// The export that was called, or the name of the request if no export was called.
    pub operation: &'static str,
    /// The relative reference, or the whole URI if no mount was found. At most 2 KiB.
    pub reference: Option<String>,
    /// The absolute URI, if the request is traced.
    pub uri: Option<String>,
    /// The begin of the call, with its time in the queue. `None` without a call.
    pub called_at: Option<SystemTime>,
    /// The source of an answer without a call: `cache`, `another read` or `replica`. `None` if a call was made.
    pub served_from: Option<&'static str>,
    /// Number of calls. The calls for one list share an event. 0 if the request made none that has this event.
    pub calls: u32,
    /// The outcome of the call, or of the last one of several; without a call, that of the request.
    pub outcome: Result<(), EventError>,
    /// The resources that the calls used.
    pub usage: Usage,
    /// The decisions of grants: allowed and denied uses.
    pub decision_log: DecisionLog,
    /// The consent question that belongs to the call.
    pub consent: ConsentRecord,
    /// The first digits of the SHA-256 of a refused credential. Nothing else of it is kept.
    pub credential: Option<String>,
}

/// A consent question to the caller, and the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsentRecord {
    /// The question that was asked after the call had ended.
    pub asked: Option<Consent>,
    /// The question that was answered before the call began, and its answer: `once`, `always`, `deny`, `decline` or
    /// `cancel`.
    pub answered: Option<(Consent, &'static str)>,
}

impl Event {
    /// The event of a request of `caller` that ended now with `outcome`, without a call.
    pub fn new(caller: Caller, operation: &'static str, outcome: Result<(), EventError>) -> Self {
        Self {
            ended_at: SystemTime::now(),
            request: caller.request.as_ref().and_then(RequestInfo::claim),
            took: Duration::ZERO,
            caller,
            mount: None,
            digest: None,
            operation,
            reference: None,
            uri: None,
            called_at: None,
            served_from: None,
            calls: 1,
            outcome,
            usage: Usage::default(),
            decision_log: DecisionLog::default(),
            consent: ConsentRecord::default(),
            credential: None,
        }
    }

    /// An estimate of the bytes that it takes in the queue.
    pub(super) fn estimated_bytes(&self) -> usize {
        let decisions: usize = self.decision_log.decisions().iter().map(|decision| 128 + decision.target.len()).sum();
        512 + self.reference.as_ref().map_or(0, String::len) + decisions
    }

    /// Adds a later event for the same list: its calls, usage and decisions. The outcome becomes that of the later one.
    pub fn join(&mut self, later: Self) {
        self.ended_at = later.ended_at;
        self.calls = self.calls.saturating_add(later.calls);
        if self.reference != later.reference {
            // The event is for several references now. Only the reference of a failure is kept.
            self.reference = later.reference.filter(|_| later.outcome.is_err());
        }
        self.outcome = later.outcome;
        self.usage.add(&later.usage);
        self.decision_log.merge(&later.decision_log);
        if later.consent != ConsentRecord::default() {
            self.consent = later.consent;
        }
    }
}
