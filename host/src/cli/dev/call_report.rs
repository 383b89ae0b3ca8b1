//! The report of one call for the provider's author: operation, outcome, use of each limit, refusals and how to grant
//! them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::model::error::{MAX_PROVIDER_TEXT, PROVIDER_SAYS, show_bytes};
use crate::model::{DecisionKind, Limits, ReadError, reference, text};
use crate::telemetry::{Event, EventError, LineFormat};

/// The report of a call, in a few lines. Empty for a request that made no call.
fn report(record: &Event, catalog: &Catalog) -> String {
    if record.calls == 0 {
        return String::new();
    }
    let mount = record.mount.as_ref();
    let snapshot = catalog.snapshot();
    let limits = mount.and_then(|name| snapshot.find(name)).map(|mount| mount.gate.limits().clone());
    let reference = record
        .reference
        .as_ref()
        .map(|reference| format!(" {}", text::quoted(reference, reference::MAX_URI)))
        .unwrap_or_default();
    // Calls of the author's own commands have no caller in the report. Calls of clients and of polling (`watch`) have
    // one.
    let by = match (record.caller.client.as_deref(), record.caller.transport) {
        (Some(client), _) => format!(" ({client})"),
        (None, "cli") => String::new(),
        (None, transport) => format!(" ({transport})"),
    };
    let outcome = record.outcome.as_ref().err().and_then(EventError::of_call);
    let calls = if record.calls > 1 { format!(", {} calls", record.calls) } else { String::new() };
    let mut out = format!("{}{reference}{by}{calls}: ", record.operation);
    match (outcome, record.served_from) {
        (None, None) => out.push_str("ok"),
        (None, Some(from)) => {
            let _ = write!(out, "ok, from {}", if from == "cache" { "the cache" } else { from });
        }
        (Some(error), _) => {
            let _ = write!(out, "{}: {}", error.kind(), error.summary());
        }
    }
    if record.served_from.is_none() && !record.usage.time.is_zero() {
        let _ = write!(out, "\n  {}", used(record, &limits.unwrap_or_default()));
    }
    let mut hints: Vec<String> = outcome.and_then(|error| error.hint(mount)).into_iter().collect();
    if let Some(ReadError::Internal(details)) = outcome {
        hints.push(details.clone());
    }
    for denied in record.decision_log.decisions().iter().filter(|decision| decision.verdict != DecisionKind::Allowed) {
        let times = if denied.times > 1 { format!(", {} times", denied.times) } else { String::new() };
        let what = if denied.verdict == DecisionKind::Denied { "refused" } else { "not found" };
        let _ = write!(out, "\n  {what}: {} {}{times}", denied.grant, text::quoted(&denied.target, 200));
        hints.extend(denied.cure.clone());
    }
    let mut shown_hints: Vec<&String> = Vec::new();
    for hint in &hints {
        if !shown_hints.contains(&hint) {
            shown_hints.push(hint);
            let _ = write!(out, "\n  hint: {hint}");
        }
    }
    if let Some(words) = outcome.and_then(ReadError::provider_text) {
        let _ = write!(out, "\n  {PROVIDER_SAYS}{}", text::quoted(words, MAX_PROVIDER_TEXT));
    }
    out
}

/// The reports of calls, as the lines of a record.
pub(super) struct CallReports(pub(super) Arc<Catalog>);

impl LineFormat for CallReports {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        out.extend_from_slice(report(event, &self.0).as_bytes());
    }

    fn lost(&mut self, count: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{count} records of calls are missing here").as_bytes());
    }
}

fn used(record: &Event, limits: &Limits) -> String {
    let usage = &record.usage;
    format!(
        "{} of {}, fuel {} ({} of {}), memory {} of {}, answer {} of {}",
        show_time(usage.time),
        humantime::format_duration(limits.time),
        usage.fuel,
        share(usage.fuel, limits.fuel),
        limits.fuel,
        show_bytes(usage.memory),
        show_bytes(limits.memory),
        show_bytes(usage.bytes),
        show_bytes(limits.result),
    )
}

/// `used` as a percentage of `cap`. A small share is not shown as zero.
fn share(used: u64, cap: u64) -> String {
    let tenths = u128::from(used) * 1000 / u128::from(cap.max(1));
    match tenths {
        0 if used > 0 => "under 0.1%".to_owned(),
        _ => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

/// A duration with a suitable unit and about three digits.
pub(super) fn show_time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..1000 => format!("{micros} us"),
        micros @ 1000..100_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        micros @ 100_000..1_000_000 => format!("{} ms", micros / 1000),
        micros => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::limits::memory_budget::MemoryBudget;
    use crate::model::error::{Limit, LimitKind};
    use crate::model::{DecisionLog, MountName, Usage};
    use crate::policy::{Caller, Evidence, authenticate};
    use crate::telemetry::ConsentRecord;

    fn shown(outcome: Result<(), ReadError>, log: DecisionLog) -> String {
        shown_by("cli", outcome, log)
    }

    fn shown_by(transport: &'static str, outcome: Result<(), ReadError>, log: DecisionLog) -> String {
        let usage = Usage {
            queue: Duration::ZERO,
            fuel: 31_204,
            time: Duration::from_micros(412),
            cpu: Duration::ZERO,
            memory: 1 << 20,
            bytes: 41,
        };
        let one = Event {
            ended_at: SystemTime::UNIX_EPOCH,
            caller: Caller::new(authenticate(Evidence::OwnUser), transport),
            request: None,
            took: Duration::ZERO,
            mount: Some(MountName::new("m").unwrap()),
            digest: None,
            operation: "read",
            reference: Some("months/2".into()),
            uri: None,
            called_at: None,
            served_from: None,
            calls: 1,
            outcome: outcome.map_err(EventError::from),
            usage,
            decision_log: log,
            consent: ConsentRecord::default(),
            credential: None,
        };
        report(&one, &Catalog::new(MemoryBudget::new(1 << 30)))
    }

    #[test]
    fn a_call_is_shown_with_what_it_used() {
        assert_eq!(
            shown(Ok(()), DecisionLog::default()),
            "read \"months/2\": ok\n  412 us of 5s, fuel 31204 (under 0.1% of 5000000000), memory 1MiB of 64MiB, answer 41B of 8MiB"
        );
        assert!(shown_by("watch", Ok(()), DecisionLog::default()).starts_with("read \"months/2\" (watch): ok\n"));
        let limit = ReadError::Exhausted(Limit { kind: LimitKind::Memory, used: 65 << 20, cap: 64 << 20 });
        let text = shown(Err(limit), DecisionLog::default());
        assert!(text.contains("hint: to allow more, set memory = \"130MiB\" under [mounts.m.limits]"), "{text}");
    }

    #[test]
    fn a_refusal_is_shown_once_with_its_cure() {
        let mut log = DecisionLog::default();
        for _ in 0..2 {
            log.add("http", "GET https://x/", DecisionKind::Denied, || Some("run: belljar grant m".into()));
        }
        let text = shown(Ok(()), log);
        assert!(text.contains("\n  refused: http \"GET https://x/\", 2 times\n  hint: run: belljar grant m"), "{text}");
    }

    #[test]
    fn times_and_shares_are_readable() {
        let times = [999, 1500, 99_999, 999_999, 12_345_678].map(|micros| show_time(Duration::from_micros(micros)));
        assert_eq!(times, ["999 us", "1.5 ms", "99.9 ms", "999 ms", "12.3 s"]);
        assert_eq!((share(0, 5), share(1, 5000), share(1, 3)), ("0.0%".into(), "under 0.1%".into(), "33.3%".into()));
    }
}
