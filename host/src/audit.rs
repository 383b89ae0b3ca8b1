//! The record of every call: one line of JSON each, in the order in which they ended.
//!
//! Knows nothing of where lines go (`audit::sink`) nor of what a call is beyond the plain data of `model`.

pub mod sink;

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::model::{Caller, Digest, Limit, MountName, ReadError, Trail, Usage};

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
    /// How it ended.
    pub outcome: Result<(), ReadError>,
    /// What it used.
    pub usage: Usage,
    /// What it was allowed and refused.
    pub trail: Trail,
}

impl Record {
    /// The record as one line of JSON, without the line break.
    pub fn to_line(&self) -> String {
        let decision = |allowed: bool| -> Vec<Value> {
            self.trail
                .decisions()
                .iter()
                .filter(|d| d.allowed == allowed)
                .map(|d| json!({"grant": d.grant, "what": d.what, "times": d.times}))
                .collect()
        };
        let mut line = json!({
            "time": humantime::format_rfc3339_millis(self.at).to_string(),
            "caller": {"transport": self.caller.transport, "client": self.caller.client.as_deref()},
            "mount": self.mount.as_ref().map(MountName::as_str),
            "digest": self.digest.map(|d| d.to_string()),
            "operation": self.operation,
            "reference": self.reference,
            "outcome": self.outcome.as_ref().map_or_else(ReadError::kind, |()| "ok"),
            "usage": {
                "fuel": self.usage.fuel,
                "micros": u64::try_from(self.usage.time.as_micros()).unwrap_or(u64::MAX),
                "memory": self.usage.memory,
                "bytes": self.usage.bytes,
            },
            "grants": decision(true),
            "denials": decision(false),
        });
        if let (Some(object), Err(error)) = (line.as_object_mut(), &self.outcome) {
            object.insert("blame".to_owned(), error.blame().as_str().into());
            object.insert("error".to_owned(), error.to_string().into());
            if let ReadError::Internal(details) = error {
                object.insert("details".to_owned(), details.clone().into());
            }
            if let ReadError::Exhausted(Limit { bound, used, cap }) = error {
                object.insert("limit".to_owned(), json!({"name": bound.as_str(), "used": used, "cap": cap}));
            }
        }
        if let (Some(object), 1..) = (line.as_object_mut(), self.trail.dropped) {
            object.insert("decisions_dropped".to_owned(), self.trail.dropped.into());
        }
        line.to_string()
    }
}
