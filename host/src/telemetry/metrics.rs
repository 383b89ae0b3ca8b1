//! Metrics, made from the events and from nothing else.
//!
//! No label has a URI, a principal or a name that a client or a provider chose. So the number of series is bounded by the
//! number of mounts.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::event::{Event, EventError, REFUSED_AT_THE_DOOR};
use super::observer::EventObserver;
use crate::model::{DecisionKind, MountName, ReadError};
use crate::policy::PrincipalKind;

/// The most mounts that have series of their own. Further ones share the label [`MORE`].
const MAX_MOUNTS: usize = 2000;

/// The most kinds of events whose series are remembered. Further ones are looked up for each event.
const MAX_KINDS: usize = 20_000;

/// The label of the mounts beyond [`MAX_MOUNTS`]. No mount can have this name.
const MORE: &str = "(more)";

/// The kinds of grants that lead to other servers.
pub(super) const UPSTREAM: [&str; 3] = ["http", "tcp", "postgres"];

/// The buckets that the convention of OpenTelemetry gives for `mcp.server.operation.duration`, in seconds.
const CONVENTION_BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Buckets from 50 microseconds to 13 seconds, in seconds. Most reads take less than the first bucket of the convention.
const FINE_BUCKETS: [f64; 19] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_6, 0.003_2, 0.006_4, 0.012_8, 0.025_6, 0.051_2, 0.102_4,
    0.204_8, 0.409_6, 0.819_2, 1.638_4, 3.276_8, 6.553_6, 13.107_2,
];

/// The label of a mount.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum MountLabel {
    Named(MountName),
    More,
}

impl EncodeLabelValue for MountLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => EncodeLabelValue::encode(&name.as_str(), encoder),
            Self::More => EncodeLabelValue::encode(&MORE, encoder),
        }
    }
}

/// The labels that the convention names. An empty label is the same as none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    mcp_method_name: &'static str,
    error_type: &'static str,
    network_transport: &'static str,
    mcp_protocol_version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    transport: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusedLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    mount: MountLabel,
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServedLabels {
    mount: MountLabel,
    from: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MountLabels {
    mount: MountLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GrantLabels {
    mount: MountLabel,
    grant: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    mount: MountLabel,
    limit: &'static str,
}

/// A counter of seconds.
type Seconds = Counter<f64, std::sync::atomic::AtomicU64>;

/// What decides which series an event is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EventKind {
    method: Option<&'static str>,
    transport: &'static str,
    revision: &'static str,
    mount: Option<MountName>,
    operation: &'static str,
    served_from: Option<&'static str>,
    outcome: &'static str,
}

/// The series of a client's request.
struct RequestSeries {
    count: Counter,
    duration: Histogram,
    operation: Histogram,
}

/// The series of an event of a mount.
struct MountSeries {
    /// `None` if the event stands for no call and no reading.
    calls: Option<Counter>,
    served: Option<Counter>,
    cpu: Seconds,
    bytes: Counter,
}

/// The series of all events of one kind. Looking up each one for each event would cost more than counting.
#[derive(Default)]
struct EventSeries {
    request: Option<RequestSeries>,
    mount: Option<MountSeries>,
}

/// The metrics of all events since the start.
pub struct Metrics {
    kinds: RwLock<HashMap<EventKind, Arc<EventSeries>>>,
    mounts: RwLock<HashSet<MountName>>,
    operations: Family<OperationLabels, Histogram, fn() -> Histogram>,
    durations: Family<MethodLabels, Histogram, fn() -> Histogram>,
    queue: Histogram,
    sandbox: Histogram,
    requests: Family<RequestLabels, Counter>,
    refused: Family<RefusedLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    served: Family<ServedLabels, Counter>,
    cpu: Family<MountLabels, Seconds>,
    bytes: Family<MountLabels, Counter>,
    denials: Family<GrantLabels, Counter>,
    upstreams: Family<GrantLabels, Counter>,
    polls: Family<MountLabels, Counter>,
    limits: Family<LimitLabels, Counter>,
}

fn convention() -> Histogram {
    Histogram::new(CONVENTION_BUCKETS)
}

fn fine() -> Histogram {
    Histogram::new(FINE_BUCKETS)
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            kinds: RwLock::default(),
            mounts: RwLock::default(),
            operations: Family::new_with_constructor(convention),
            durations: Family::new_with_constructor(fine),
            queue: fine(),
            sandbox: fine(),
            requests: Family::default(),
            refused: Family::default(),
            calls: Family::default(),
            served: Family::default(),
            cpu: Family::default(),
            bytes: Family::default(),
            denials: Family::default(),
            upstreams: Family::default(),
            polls: Family::default(),
            limits: Family::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let duration = "Time from the arrival of a request to its answer";
        registry.register_with_unit("mcp_server_operation_duration", duration, Unit::Seconds, self.operations.clone());
        let own = registry.sub_registry_with_prefix("belljar");
        let fine = "Time from the arrival of a request to its answer, in finer buckets";
        own.register_with_unit("request_duration", fine, Unit::Seconds, self.durations.clone());
        own.register_with_unit("call_queue", "Time until a call had its turn", Unit::Seconds, self.queue.clone());
        own.register_with_unit("call_sandbox", "Time of a call in its sandbox", Unit::Seconds, self.sandbox.clone());
        own.register("requests", "Requests of clients", self.requests.clone());
        own.register("refused_requests", "Requests that were refused at the front door", self.refused.clone());
        own.register("calls", "Calls of providers", self.calls.clone());
        own.register("served_reads", "Reads that were answered without a call of their own", self.served.clone());
        let cpu = "Processor time of calls, with the work of belljar for them";
        own.register_with_unit("call_cpu", cpu, Unit::Seconds, self.cpu.clone());
        own.register_with_unit("answer", "Contents that providers answered with", Unit::Bytes, self.bytes.clone());
        own.register(
            "denials",
            "Uses that a provider was refused, by the grant that would allow them",
            self.denials.clone(),
        );
        own.register(
            "upstream_requests",
            "Uses of other servers, by the grant that allows them",
            self.upstreams.clone(),
        );
        own.register("polls", "Calls of belljar itself, for clients that watch", self.polls.clone());
        own.register("limits_met", "Calls that a limit stopped", self.limits.clone());
    }

    /// The label of a mount.
    fn label(&self, mount: &MountName) -> MountLabel {
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        if mounts.contains(mount) {
            return MountLabel::Named(mount.clone());
        }
        let is_full = mounts.len() >= MAX_MOUNTS;
        drop(mounts);
        if is_full {
            return MountLabel::More;
        }
        self.mounts.write().unwrap_or_else(PoisonError::into_inner).insert(mount.clone());
        MountLabel::Named(mount.clone())
    }

    /// The series of events of this kind.
    fn series(&self, kind: EventKind) -> Arc<EventSeries> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kinds.get(&kind) {
            return Arc::clone(known);
        }
        drop(kinds);
        let series = Arc::new(self.new_series(&kind));
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() < MAX_KINDS {
            kinds.insert(kind, Arc::clone(&series));
        }
        series
    }

    fn new_series(&self, kind: &EventKind) -> EventSeries {
        let EventKind { method, transport, revision, ref mount, operation, served_from, outcome } = *kind;
        let request = method.map(|method| {
            let labels = OperationLabels {
                mcp_method_name: method,
                error_type: if outcome == "ok" { "" } else { outcome },
                network_transport: if transport == "http" { "tcp" } else { "pipe" },
                mcp_protocol_version: revision,
            };
            RequestSeries {
                count: self.requests.get_or_create_owned(&RequestLabels { method, transport, outcome }),
                duration: self.durations.get_or_create_owned(&MethodLabels { method }),
                operation: self.operations.get_or_create_owned(&labels),
            }
        });
        let mount = mount.as_ref().map(|mount| {
            let mount = self.label(mount);
            let calls = CallLabels { mount: mount.clone(), operation, outcome };
            let served = served_from.map(|from| ServedLabels { mount: mount.clone(), from });
            let labels = MountLabels { mount };
            MountSeries {
                calls: served.is_none().then(|| self.calls.get_or_create_owned(&calls)),
                served: served.map(|served| self.served.get_or_create_owned(&served)),
                cpu: self.cpu.get_or_create_owned(&labels),
                bytes: self.bytes.get_or_create_owned(&labels),
            }
        });
        EventSeries { request, mount }
    }

    fn observe_mount(&self, event: &Event, mount: &MountName, series: &MountSeries) {
        if let Some(served) = &series.served {
            served.inc();
        }
        if let Some(calls) = series.calls.as_ref().filter(|_| event.calls > 0) {
            calls.inc_by(u64::from(event.calls));
            if event.usage.time > Duration::ZERO {
                self.queue.observe(event.usage.queue.as_secs_f64() / f64::from(event.calls));
                self.sandbox.observe(event.usage.time.as_secs_f64() / f64::from(event.calls));
            }
        }
        series.cpu.inc_by(event.usage.cpu.as_secs_f64());
        series.bytes.inc_by(event.usage.bytes);
        // Rare, so these are looked up.
        for decision in event.decision_log.decisions() {
            let counted = match decision.verdict {
                DecisionKind::Denied => &self.denials,
                DecisionKind::Allowed if UPSTREAM.contains(&&*decision.grant) => &self.upstreams,
                DecisionKind::Allowed | DecisionKind::Unavailable => continue,
            };
            let labels = GrantLabels { mount: self.label(mount), grant: decision.grant.to_string() };
            counted.get_or_create(&labels).inc_by(u64::from(decision.times));
        }
        if event.caller.principal.kind() == PrincipalKind::Belljar {
            let labels = MountLabels { mount: self.label(mount) };
            self.polls.get_or_create(&labels).inc_by(u64::from(event.calls));
        }
        let error = event.outcome.as_ref().err().and_then(EventError::of_call);
        if let Some(limit) = error.and_then(ReadError::limit) {
            let labels = LimitLabels { mount: self.label(mount), limit: limit.kind.as_str() };
            self.limits.get_or_create(&labels).inc();
        }
    }
}

impl EventObserver for Metrics {
    fn observe(&self, event: &Event) {
        let request = event.request.as_ref();
        let kind = EventKind {
            method: request.map(|request| request.method),
            transport: event.caller.transport,
            revision: request.and_then(|request| request.revision).unwrap_or_default(),
            mount: event.mount.clone(),
            operation: event.operation,
            served_from: event.served_from,
            outcome: event.outcome.as_ref().err().map_or("ok", EventError::kind),
        };
        let series = self.series(kind);
        if let Some(of_request) = &series.request {
            let seconds = event.took.as_secs_f64();
            of_request.count.inc();
            of_request.duration.observe(seconds);
            of_request.operation.observe(seconds);
        }
        match (&event.mount, &series.mount) {
            (Some(mount), Some(series)) => self.observe_mount(event, mount, series),
            _ if request.is_none() && REFUSED_AT_THE_DOOR.contains(&event.operation) => {
                let labels = RefusedLabels { reason: event.operation };
                self.refused.get_or_create(&labels).inc_by(u64::from(event.calls));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;

    use super::*;
    use crate::model::{RequestInfo, Usage};
    use crate::policy::{Caller, Evidence, KeyIdentity, authenticate};

    fn event(mount: &str, reference: &str, key: &str) -> Event {
        let identity = KeyIdentity { name: key.to_owned(), ..KeyIdentity::default() };
        let request = Arc::new(RequestInfo::new("resources/read", Some("2026-07-28"), Some(100)));
        let caller = Caller { request: Some(request), ..Caller::new(authenticate(Evidence::Key(identity)), "http") };
        Event {
            mount: MountName::new(mount).ok(),
            reference: Some(reference.to_owned()),
            usage: Usage {
                time: Duration::from_micros(70),
                cpu: Duration::from_millis(2),
                bytes: 5,
                ..Usage::default()
            },
            took: Duration::from_micros(90),
            ..Event::new(caller, "read", Ok(()))
        }
    }

    fn text(metrics: &Metrics) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        prometheus_text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn an_event_is_in_each_metric_that_it_concerns() {
        let metrics = Metrics::default();
        let mut failed = event("notes", "a", "k");
        failed.outcome = Err(ReadError::NotFound.into());
        failed.decision_log.add("fs", "/x", DecisionKind::Denied, || None);
        failed.decision_log.add("http", "GET https://x.example", DecisionKind::Allowed, || None);
        failed.decision_log.add("fs", "/y", DecisionKind::Allowed, || None);
        [event("notes", "a", "k"), event("notes", "b", "k"), failed].iter().for_each(|event| metrics.observe(event));
        let text = text(&metrics);
        for line in [
            "belljar_requests_total{method=\"resources/read\",transport=\"http\",outcome=\"ok\"} 2",
            "belljar_requests_total{method=\"resources/read\",transport=\"http\",outcome=\"not-found\"} 1",
            "belljar_calls_total{mount=\"notes\",operation=\"read\",outcome=\"ok\"} 2",
            "belljar_denials_total{mount=\"notes\",grant=\"fs\"} 1",
            "belljar_upstream_requests_total{mount=\"notes\",grant=\"http\"} 1",
            "belljar_answer_bytes_total{mount=\"notes\"} 15",
            "belljar_call_sandbox_seconds_bucket{le=\"0.0001\"} 3",
            "mcp_server_operation_duration_seconds_count{mcp_method_name=\"resources/read\",error_type=\"\",network_transport=\"tcp\",mcp_protocol_version=\"2026-07-28\"} 2",
            "mcp_server_operation_duration_seconds_count{mcp_method_name=\"resources/read\",error_type=\"not-found\",network_transport=\"tcp\",mcp_protocol_version=\"2026-07-28\"} 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }

    #[test]
    fn series_do_not_grow_with_uris_and_principals() {
        let metrics = Metrics::default();
        metrics.observe(&event("notes", "a", "k"));
        let count = text(&metrics).lines().count();
        for n in 0..10_000 {
            metrics.observe(&event("notes", &format!("{n}.md"), &format!("k{n}")));
        }
        assert_eq!(text(&metrics).lines().count(), count);
        for n in 0..MAX_MOUNTS + 100 {
            metrics.observe(&event(&format!("m{n}"), "a", "k"));
        }
        let of_mounts = text(&metrics).lines().filter(|line| line.starts_with("belljar_answer_bytes_total")).count();
        assert_eq!(of_mounts, MAX_MOUNTS + 1, "the mounts beyond the bound share one");
    }
}
