//! The line of an event in the record. `docs/reference/record.schema.json` is made from these types.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use humantime::Rfc3339Timestamp;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::event::{Event, EventError};
use crate::model::{Consent, Decision, DecisionKind, Digest, MountName, ReadError, RequestInfo, TraceContext, text};
use crate::policy::Caller;

/// Characters of a principal that a line shows.
const MAX_IDENTITY: usize = 500;

/// The JSON schema of a line, as JSON text with a line break at its end.
pub fn schema_text() -> String {
    let of = |schema: schemars::Schema| {
        let mut schema = Value::from(schema);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            let digits = |count: usize| json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{count}}}$") });
            properties.insert("chain".to_owned(), digits(16));
            properties.insert("number".to_owned(), json!({ "type": "integer", "minimum": 1 }));
            properties.insert("hash".to_owned(), digits(64));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.extend(["chain", "number", "hash"].map(Value::from));
        }
        schema
    };
    let settings = || {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        settings.with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
    };
    let event = of(settings().into_generator().into_root_schema_for::<EventLine<'_>>());
    let lost = of(settings().into_generator().into_root_schema_for::<LostLine>());
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of belljar's record",
        "anyOf": [event, lost],
    });
    format!("{schema:#}\n")
}

/// The fields of a line, in the order in which people read them.
#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct EventLine<'a> {
    time: Shown<Rfc3339Timestamp>,
    caller: CallerField<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestField>,
    mount: Option<&'a str>,
    digest: Option<Shown<Digest>>,
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

#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
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
        let Caller { principal, transport, client, address, peer: _, trace, request: _ } = caller;
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

/// A string: what the value shows.
struct Shown<T>(T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T> JsonSchema for Shown<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// The client's request.
#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct RequestField {
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    micros: u64,
}

impl RequestField {
    fn of(request: &RequestInfo, took: Duration) -> Self {
        let RequestInfo { method, revision, bytes, trace, .. } = request;
        let trace_id = trace.as_ref().map(TraceContext::trace_id);
        let name = request.name().map(str::to_owned);
        Self { method, name, revision: *revision, bytes: *bytes, trace_id, micros: micros(took) }
    }
}

#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct LimitField<'a> {
    name: &'a str,
    used: u64,
    cap: u64,
}

#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct UsageField {
    queue_micros: u64,
    fuel: u64,
    micros: u64,
    cpu_micros: u64,
    memory: u64,
    bytes: u64,
}

#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct DecisionField<'a> {
    grant: &'a str,
    what: &'a str,
    times: u32,
}

#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct QuestionField<'a> {
    grant: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
}

/// Whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
}

/// The line that replaces lost records.
#[derive(JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
struct LostLine {
    time: Shown<Rfc3339Timestamp>,
    lost: u64,
}

/// The line that replaces `lost` records.
pub(super) fn lost_line(at: SystemTime, lost: u64) -> String {
    let line = LostLine { time: Shown(humantime::format_rfc3339_millis(at)), lost };
    serde_json::to_string(&line).unwrap_or_default()
}

impl Event {
    /// Adds the event to `out` as one line of JSON, without a line break.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        let error = self.outcome.as_ref().err();
        let of_call = error.and_then(EventError::of_call);
        let decided = |allowed: bool| {
            let has_kind = |d: &&Decision| (d.verdict == DecisionKind::Allowed) == allowed;
            let decisions = self.decision_log.decisions().iter().filter(has_kind);
            decisions.map(|d| DecisionField { grant: &d.grant, what: &d.target, times: d.times }).collect()
        };
        fn question<'a>(Consent { grant, target: what }: &'a Consent, answer: Option<&'a str>) -> QuestionField<'a> {
            QuestionField { grant, what, answer }
        }
        let line = EventLine {
            time: Shown(humantime::format_rfc3339_millis(self.ended_at)),
            caller: CallerField::of(&self.caller),
            request: self.request.as_ref().map(|request| RequestField::of(request, self.took)),
            mount: self.mount.as_ref().map(MountName::as_str),
            digest: self.digest.map(Shown),
            operation: self.operation,
            credential: self.credential.as_deref(),
            reference: self.reference.as_deref(),
            served_from: self.served_from,
            calls: self.calls,
            outcome: error.map_or("ok", EventError::kind),
            blame: error.map(|error| error.blame().as_str()),
            error: error.map(ToString::to_string),
            details: match of_call {
                Some(ReadError::Internal(details)) => Some(details),
                _ => None,
            },
            limit: of_call.and_then(ReadError::limit).map(|limit| LimitField {
                name: limit.kind.as_str(),
                used: limit.used,
                cap: limit.cap,
            }),
            usage: UsageField {
                queue_micros: micros(self.usage.queue),
                fuel: self.usage.fuel,
                micros: micros(self.usage.time),
                cpu_micros: micros(self.usage.cpu),
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
        let _ = serde_json::to_writer(out, &line);
    }
}

#[cfg(test)]
mod tests;
