//! Traces, made from the events and from nothing else: a span for each request, and spans below it for its calls, their
//! time in the queue and in the sandbox, and the requests to upstream servers.
//!
//! Names and attributes follow the conventions for MCP of OpenTelemetry (`semantic-conventions-genai`, `mcp.md`). No name
//! of a span has a URI.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::event::{Event, EventError};
use super::observer::EventObserver;
use crate::model::{RemoteSpan, TraceContext, UpstreamSpan};

/// The most spans that wait to be sent.
const MAX_WAITING: usize = 4096;

/// The flag of a sampled span (W3C Trace Context, 3.2.2.5), and those that say whether a parent is remote.
const SAMPLED: u32 = 1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// Decides which requests are traced, and collects their spans.
pub struct Tracer {
    /// How many of a thousand requests without a parent are traced.
    per_mille: u64,
    requests: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spans: Vec<Span>,
    dropped: u64,
}

impl Tracer {
    /// A tracer of `per_mille` of a thousand requests that have no parent.
    pub fn new(per_mille: u64) -> Self {
        Self { per_mille, requests: AtomicU64::new(0), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The span of a new request. `None`: it is not traced. A request with a parent is traced if the parent is.
    pub fn begin(
        &self,
        parent: Option<RemoteSpan>,
        link: Option<RemoteSpan>,
        request_id: impl FnOnce() -> String,
    ) -> Option<TraceContext> {
        let is_traced = match parent {
            Some(parent) => parent.is_sampled,
            None => {
                // The share is exact, and costs no random number.
                let number = self.requests.fetch_add(1, Ordering::Relaxed);
                let share = |count: u64| count.saturating_mul(self.per_mille) / 1000;
                share(number + 1) > share(number)
            }
        };
        if !is_traced {
            return None;
        }
        let trace = parent.map(|parent| parent.trace).or_else(random)?;
        let (span, parent) = (random()?, parent.map(|parent| parent.span));
        Some(TraceContext { trace, span, parent, link, request_id: request_id() })
    }

    /// Takes the spans, and the number of those that found no place.
    pub fn take(&self) -> (Vec<Span>, u64) {
        let mut state = self.lock();
        (std::mem::take(&mut state.spans), std::mem::take(&mut state.dropped))
    }

    fn add(&self, spans: Vec<Span>) {
        let mut state = self.lock();
        if state.spans.len() + spans.len() > MAX_WAITING {
            state.dropped += spans.len() as u64;
            return;
        }
        state.spans.extend(spans);
    }
}

/// Random bytes for an id.
pub fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}

impl EventObserver for Tracer {
    fn observe(&self, event: &Event) {
        let Some(trace) = event.caller.request.as_ref().and_then(|request| request.trace.as_ref()) else { return };
        self.add(spans(event, trace));
    }
}

/// The spans of an event.
fn spans(event: &Event, trace: &TraceContext) -> Vec<Span> {
    let mut all = Vec::new();
    let own = match &event.request {
        Some(request) => {
            let end = event.ended_at;
            let mut span = span(trace, trace.span, trace.parent, (end.checked_sub(event.took).unwrap_or(end), end));
            span.flags |= if trace.parent.is_some() { IS_REMOTE } else { 0 };
            span.kind = SpanKind::Server.into();
            let target = request.name();
            span.name =
                target.map_or_else(|| request.method.to_owned(), |target| format!("{} {target}", request.method));
            span.attributes = request_attributes(event, trace, target);
            span.links.extend(trace.link.as_ref().map(link));
            set_outcome(&mut span, event);
            all.push(span);
            trace.span
        }
        // The calls for one list share this event. The request has another one.
        None => {
            let Some(id) = random() else { return all };
            let times = (event.called_at.unwrap_or(event.ended_at), event.ended_at);
            let mut span = span(trace, id, Some(trace.span), times);
            span.name = format!("call {}", event.operation);
            span.attributes = call_attributes(event);
            set_outcome(&mut span, event);
            all.push(span);
            id
        }
    };
    if let Some(called_at) = event.called_at.filter(|_| event.calls == 1 && event.usage.time > Duration::ZERO) {
        let began = called_at + event.usage.queue;
        for (name, times) in [("queue", (called_at, began)), ("sandbox", (began, began + event.usage.time))] {
            let Some(id) = random() else { return all };
            let mut span = span(trace, id, Some(own), times);
            span.name = name.to_owned();
            all.push(span);
        }
    }
    all.extend(event.decision_log.upstreams().iter().map(|upstream| upstream_span(trace, own, upstream)));
    all
}

/// A span inside this program.
fn span(trace: &TraceContext, id: [u8; 8], parent: Option<[u8; 8]>, (start, end): (SystemTime, SystemTime)) -> Span {
    Span {
        trace_id: trace.trace.to_vec(),
        span_id: id.to_vec(),
        parent_span_id: parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        flags: SAMPLED | HAS_IS_REMOTE,
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(end),
        ..Span::default()
    }
}

/// The span of a request to an upstream server.
fn upstream_span(trace: &TraceContext, parent: [u8; 8], upstream: &UpstreamSpan) -> Span {
    let UpstreamSpan { span: id, method, host, port, started_at, took, status, error } = upstream;
    let mut span = span(trace, *id, Some(parent), (*started_at, *started_at + *took));
    span.kind = SpanKind::Client.into();
    span.name.clone_from(method);
    span.attributes = vec![
        text("http.request.method", method.clone()),
        text("server.address", host.clone()),
        number("server.port", i64::from(*port)),
    ];
    span.attributes.extend(status.map(|status| number("http.response.status_code", i64::from(status))));
    let failure = error.clone().or_else(|| status.filter(|status| *status >= 400).map(|status| status.to_string()));
    if let Some(error) = failure {
        span.attributes.push(text("error.type", error));
        span.status = Some(Status { message: String::new(), code: StatusCode::Error.into() });
    }
    span
}

fn request_attributes(event: &Event, trace: &TraceContext, target: Option<&str>) -> Vec<KeyValue> {
    let Some(request) = &event.request else { return Vec::new() };
    let is_http = event.caller.transport == "http";
    let mut all = vec![
        text("mcp.method.name", request.method),
        text("jsonrpc.request.id", trace.request_id.clone()),
        text("network.transport", if is_http { "tcp" } else { "pipe" }),
    ];
    if is_http {
        all.push(text("network.protocol.name", "http"));
    }
    all.extend(request.revision.map(|revision| text("mcp.protocol.version", revision)));
    all.extend(event.uri.as_ref().map(|uri| text("mcp.resource.uri", uri.clone())));
    match (request.method, target) {
        ("tools/call", Some(tool)) => {
            all.push(text("gen_ai.operation.name", "execute_tool"));
            all.push(text("gen_ai.tool.name", tool));
        }
        ("prompts/get", Some(prompt)) => all.push(text("gen_ai.prompt.name", prompt)),
        _ => {}
    }
    all.extend(call_attributes(event));
    all
}

/// What belljar knows of a call.
fn call_attributes(event: &Event) -> Vec<KeyValue> {
    let mut all = Vec::new();
    all.extend(event.mount.as_ref().map(|mount| text("belljar.mount", mount.to_string())));
    all.extend(event.digest.map(|digest| text("belljar.digest", digest.to_string())));
    all.extend(event.served_from.map(|from| text("belljar.served_from", from)));
    if event.usage.time > Duration::ZERO {
        let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        all.push(number("belljar.fuel", count(event.usage.fuel)));
        all.push(number("belljar.memory", count(event.usage.memory)));
        all.push(number("belljar.answer.bytes", count(event.usage.bytes)));
        all.push(number("belljar.calls", i64::from(event.calls)));
    }
    all
}

/// Adds how the request or the call ended.
fn set_outcome(span: &mut Span, event: &Event) {
    let Err(error) = &event.outcome else { return };
    // A client gets the failure of a tool as a result, and not as an error.
    let is_tool = event.request.as_ref().is_some_and(|request| request.method == "tools/call");
    let kind = if is_tool { "tool_error" } else { error.kind() };
    span.attributes.push(text("error.type", kind));
    if is_tool {
        span.attributes.push(text("belljar.outcome", error.kind()));
    }
    // belljar's own words only: those of a provider stay out.
    let message = match error {
        EventError::Call(error) => error.summary(),
        EventError::Answer { message, .. } => message.clone(),
    };
    span.status = Some(Status { message, code: StatusCode::Error.into() });
}

fn link(remote: &RemoteSpan) -> Link {
    Link { trace_id: remote.trace.to_vec(), span_id: remote.span.to_vec(), ..Link::default() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// An attribute with a text.
pub fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{MountName, ReadError, RequestInfo, Usage};
    use crate::policy::{Caller, Evidence, authenticate};

    fn id() -> String {
        "7".to_owned()
    }

    #[test]
    fn the_share_of_traced_requests_is_exact() {
        for (per_mille, expected) in [(0, 0), (1, 10), (100, 1000), (333, 3330), (1000, 10_000)] {
            let tracer = Tracer::new(per_mille);
            let traced = (0..10_000).filter(|_| tracer.begin(None, None, id).is_some()).count();
            assert_eq!(traced, expected, "{per_mille}");
        }
    }

    #[test]
    fn a_parent_decides_for_its_requests() {
        let parent = |is_sampled| Some(RemoteSpan { trace: [3; 16], span: [4; 8], is_sampled });
        let traced = Tracer::new(0).begin(parent(true), None, id).unwrap();
        assert_eq!((traced.trace, traced.parent), ([3; 16], Some([4; 8])));
        assert!(Tracer::new(1000).begin(parent(false), None, id).is_none());
    }

    #[test]
    fn a_request_has_spans_for_its_parts_and_no_name_has_a_uri() {
        let tracer = Tracer::new(1000);
        let trace = tracer.begin(None, None, id).unwrap();
        let info = RequestInfo::new("resources/read", Some("2026-07-28"), None).traced(Some(trace.clone()));
        let caller = Caller { request: Some(Arc::new(info)), ..Caller::new(authenticate(Evidence::OwnUser), "stdio") };
        let mut event = Event {
            mount: MountName::new("notes").ok(),
            reference: Some("secret-plan.md".to_owned()),
            uri: Some("belljar://notes/secret-plan.md".to_owned()),
            called_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(9)),
            usage: Usage { queue: Duration::from_secs(1), time: Duration::from_secs(2), ..Usage::default() },
            ..Event::new(caller, "read", Err(ReadError::NotFound.into()))
        };
        event.decision_log.add_upstream(UpstreamSpan {
            span: [9; 8],
            method: "GET".to_owned(),
            host: "api.example".to_owned(),
            port: 443,
            started_at: SystemTime::UNIX_EPOCH,
            took: Duration::from_secs(1),
            status: Some(503),
            error: None,
        });
        tracer.observe(&event);
        let (spans, dropped) = tracer.take();
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!((names, dropped), (vec!["resources/read", "queue", "sandbox", "GET"], 0));
        assert!(spans.iter().all(|span| span.trace_id == trace.trace));
        assert!(spans[1..].iter().all(|span| span.parent_span_id == trace.span));
        assert_eq!(spans[2].start_time_unix_nano, 10_000_000_000);
        assert_eq!(spans[3].span_id, [9; 8]);
        let has = |span: &Span, key: &str| span.attributes.iter().any(|attribute| attribute.key == key);
        for key in ["mcp.method.name", "mcp.protocol.version", "network.transport", "mcp.resource.uri", "error.type"] {
            assert!(has(&spans[0], key), "{key}");
        }
        assert!(has(&spans[3], "error.type"));
        let status = spans[0].status.as_ref().unwrap();
        assert_eq!(status.code(), StatusCode::Error);
    }

    #[test]
    fn spans_that_nobody_takes_are_dropped_and_counted() {
        let tracer = Tracer::new(1000);
        for _ in 0..MAX_WAITING + 5 {
            let trace = tracer.begin(None, None, id);
            let info = RequestInfo::new("ping", None, None).traced(trace);
            let own = Caller::new(authenticate(Evidence::OwnUser), "stdio");
            tracer.observe(&Event::new(Caller { request: Some(Arc::new(info)), ..own }, "ping", Ok(())));
        }
        let (spans, dropped) = tracer.take();
        assert_eq!((spans.len(), dropped), (MAX_WAITING, 5));
    }
}
