//! The record of every call: one line of JSON each, in the order in which they ended.
//!
//! Knows nothing of where lines go (`audit::sink`) nor of what a call is beyond the plain data of `model`. What a line holds
//! stands in `docs/record.md`, and a test compares the two.

pub mod lines;
pub mod sink;

use std::time::SystemTime;

use serde::Serialize;

use crate::model::{Caller, Consent, Decision, Digest, MountName, ReadError, Trail, Usage, Verdict};

pub use sink::Sink;

/// One call, as it is recorded.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it ended.
    pub at: SystemTime,
    /// Who asked.
    pub caller: Caller,
    /// Which mount, if one was found.
    pub mount: Option<MountName>,
    /// The component's digest.
    pub digest: Option<Digest>,
    /// Which export, or the request's name where none was called.
    pub operation: &'static str,
    /// The relative reference, or the whole URI where no mount was found; cut to 2 KiB.
    pub reference: Option<String>,
    /// What it was answered from, where no call was made for it: `cache`, `another read`.
    pub served_from: Option<&'static str>,
    /// Calls that it stands for: those of a walk over a list have one record.
    pub calls: u32,
    /// How it ended; the last call, of several.
    pub outcome: Result<(), ReadError>,
    /// What it used.
    pub usage: Usage,
    /// What it was allowed and refused.
    pub trail: Trail,
    /// What a person was asked after it, or before it.
    pub consent: Consented,
}

/// What a person was asked, and answered. Whoever asked for the call is who was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consented {
    /// What was asked when the call had ended.
    pub asked: Option<Consent>,
    /// What was answered before it began, and how: `once`, `always`, `deny`, `decline`, `cancel`.
    pub answered: Option<(Consent, &'static str)>,
}

/// The shape of a line, in the order in which people read it.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    caller: Who<'a>,
    mount: Option<&'a str>,
    digest: Option<String>,
    operation: &'a str,
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
    limit: Option<Reached<'a>>,
    usage: Used,
    grants: Vec<Decided<'a>>,
    denials: Vec<Decided<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<Question<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<Question<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    decisions_dropped: u32,
}

#[derive(Serialize)]
struct Who<'a> {
    transport: &'a str,
    client: Option<&'a str>,
}

#[derive(Serialize)]
struct Reached<'a> {
    name: &'a str,
    used: u64,
    cap: u64,
}

#[derive(Serialize)]
struct Used {
    fuel: u64,
    micros: u64,
    cpu_micros: u64,
    memory: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Decided<'a> {
    grant: &'a str,
    what: &'a str,
    times: u32,
}

#[derive(Serialize)]
struct Question<'a> {
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

/// The line that stands for records that were lost.
#[derive(Serialize)]
struct Lost {
    time: String,
    lost: u64,
}

/// What stands in the record where this many are missing.
fn lost_line(at: SystemTime, lost: u64) -> String {
    let line = Lost { time: humantime::format_rfc3339_millis(at).to_string(), lost };
    serde_json::to_string(&line).unwrap_or_default()
}

impl Record {
    /// About how many bytes it takes while it waits.
    fn weight(&self) -> usize {
        let decisions: usize = self.trail.decisions().iter().map(|decision| 128 + decision.what.len()).sum();
        512 + self.reference.as_ref().map_or(0, String::len) + decisions
    }

    /// Adds a later record of the same walk: its calls and what they used and were decided. Says how the later one ended.
    pub fn join(&mut self, later: Self) {
        self.at = later.at;
        self.calls = self.calls.saturating_add(later.calls);
        if self.reference != later.reference {
            // It stands for several; of a failure the reference is known.
            self.reference = later.reference.filter(|_| later.outcome.is_err());
        }
        self.outcome = later.outcome;
        self.usage.add(&later.usage);
        self.trail.join(&later.trail);
        if later.consent != Consented::default() {
            self.consent = later.consent;
        }
    }

    /// The record as one line of JSON, without the line break.
    pub fn to_line(&self) -> String {
        let error = self.outcome.as_ref().err();
        let decided = |allowed: bool| {
            let is_so = |d: &&Decision| (d.verdict == Verdict::Allowed) == allowed;
            let decisions = self.trail.decisions().iter().filter(is_so);
            decisions.map(|d| Decided { grant: d.grant, what: &d.what, times: d.times }).collect()
        };
        fn question<'a>(Consent { grant, what }: &'a Consent, answer: Option<&'a str>) -> Question<'a> {
            Question { grant, what, answer }
        }
        let line = Line {
            time: humantime::format_rfc3339_millis(self.at).to_string(),
            caller: Who { transport: self.caller.transport, client: self.caller.client.as_deref() },
            mount: self.mount.as_ref().map(MountName::as_str),
            digest: self.digest.map(|digest| digest.to_string()),
            operation: self.operation,
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
            limit: error.and_then(ReadError::limit).map(|limit| Reached {
                name: limit.bound.as_str(),
                used: limit.used,
                cap: limit.cap,
            }),
            usage: Used {
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
            decisions_dropped: self.trail.dropped,
        };
        // Strings and numbers always serialise.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
