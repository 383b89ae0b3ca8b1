//! The event of one call, and its line in the audit record.

use std::net::IpAddr;
use std::time::SystemTime;

use serde::Serialize;

use crate::model::{Consent, Decision, DecisionKind, DecisionLog, Digest, MountName, ReadError, Usage, text};
use crate::policy::Caller;

/// Characters of a principal that a line shows.
const MAX_IDENTITY: usize = 500;

/// The event of one call, or of several calls that were made for one list.
#[derive(Clone, Debug)]
pub struct Event {
    /// The end of the call.
    pub ended_at: SystemTime,
    /// The caller.
    pub caller: Caller,
    /// The mount, if the request names one.
    pub mount: Option<MountName>,
    /// The component's digest.
    pub digest: Option<Digest>,
    /// The export that was called, or the name of the request if no export was called.
    pub operation: &'static str,
    /// The relative reference, or the whole URI if no mount was found. At most 2 KiB.
    pub reference: Option<String>,
    /// The source of an answer without a call: `cache` or `another read`. `None` if a call was made.
    pub served_from: Option<&'static str>,
    /// Number of calls. The calls for one list share an event.
    pub calls: u32,
    /// The outcome of the call, or of the last one of several.
    pub outcome: Result<(), ReadError>,
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

/// The fields of a line, in the order in which people read them.
#[derive(Serialize)]
struct EventLine<'a> {
    time: String,
    caller: CallerField<'a>,
    mount: Option<&'a str>,
    digest: Option<String>,
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<&'a str>,
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    served_from: Option<&'a str>,
    #[serde(skip_serializing_if = "is_one")]
    calls: u32,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LimitField<'a>>,
    usage: UsageField,
    grants: Vec<DecisionField<'a>>,
    denials: Vec<DecisionField<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<QuestionField<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<QuestionField<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    decisions_dropped: u32,
}

#[derive(Serialize)]
struct CallerField<'a> {
    transport: &'a str,
    principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a str>,
}

impl<'a> CallerField<'a> {
    fn of(caller: &'a Caller) -> Self {
        let Caller { principal, transport, client, address, peer: _, trace } = caller;
        Self {
            transport,
            // The subject and the issuer of a token come from outside.
            principal: text::excerpt(&principal.to_string(), MAX_IDENTITY),
            issuer: principal.issuer(),
            client_id: principal.client(),
            address: *address,
            client: client.as_deref(),
            trace: trace.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct LimitField<'a> {
    name: &'a str,
    used: u64,
    cap: u64,
}

#[derive(Serialize)]
struct UsageField {
    fuel: u64,
    micros: u64,
    cpu_micros: u64,
    memory: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct DecisionField<'a> {
    grant: &'a str,
    what: &'a str,
    times: u32,
}

#[derive(Serialize)]
struct QuestionField<'a> {
    grant: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u32) -> bool {
    *n <= 1
}

/// The line that replaces lost records.
#[derive(Serialize)]
struct LostLine {
    time: String,
    lost: u64,
}

/// The line that replaces `lost` records.
pub(super) fn lost_line(at: SystemTime, lost: u64) -> String {
    let line = LostLine { time: humantime::format_rfc3339_millis(at).to_string(), lost };
    serde_json::to_string(&line).unwrap_or_default()
}

impl Event {
    /// The event of a request of `caller` that ended now with `outcome`, without a call.
    pub fn new(caller: Caller, operation: &'static str, outcome: Result<(), ReadError>) -> Self {
        Self {
            ended_at: SystemTime::now(),
            caller,
            mount: None,
            digest: None,
            operation,
            reference: None,
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

    /// The event as one line of JSON, without a line break.
    pub fn to_line(&self) -> String {
        let error = self.outcome.as_ref().err();
        let decided = |allowed: bool| {
            let has_kind = |d: &&Decision| (d.verdict == DecisionKind::Allowed) == allowed;
            let decisions = self.decision_log.decisions().iter().filter(has_kind);
            decisions.map(|d| DecisionField { grant: &d.grant, what: &d.target, times: d.times }).collect()
        };
        fn question<'a>(Consent { grant, target: what }: &'a Consent, answer: Option<&'a str>) -> QuestionField<'a> {
            QuestionField { grant, what, answer }
        }
        let line = EventLine {
            time: humantime::format_rfc3339_millis(self.ended_at).to_string(),
            caller: CallerField::of(&self.caller),
            mount: self.mount.as_ref().map(MountName::as_str),
            digest: self.digest.map(|digest| digest.to_string()),
            operation: self.operation,
            credential: self.credential.as_deref(),
            reference: self.reference.as_deref(),
            served_from: self.served_from,
            calls: self.calls,
            outcome: error.map_or("ok", ReadError::kind),
            blame: error.map(|error| error.blame().as_str()),
            error: error.map(ToString::to_string),
            details: match error {
                Some(ReadError::Internal(details)) => Some(details),
                _ => None,
            },
            limit: error.and_then(ReadError::limit).map(|limit| LimitField {
                name: limit.kind.as_str(),
                used: limit.used,
                cap: limit.cap,
            }),
            usage: UsageField {
                fuel: self.usage.fuel,
                micros: u64::try_from(self.usage.time.as_micros()).unwrap_or(u64::MAX),
                cpu_micros: u64::try_from(self.usage.cpu.as_micros()).unwrap_or(u64::MAX),
                memory: self.usage.memory,
                bytes: self.usage.bytes,
            },
            grants: decided(true),
            denials: decided(false),
            asked: self.consent.asked.as_ref().map(|asked| question(asked, None)),
            answered: self.consent.answered.as_ref().map(|(asked, answer)| question(asked, Some(answer))),
            decisions_dropped: self.decision_log.dropped,
        };
        // A struct of strings and numbers always serializes.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
