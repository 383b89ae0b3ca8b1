//! A call as its author wants to see it: what was asked, how it ended, what it used of what it may use, what it was refused and
//! how that is granted.

use std::fmt::Write as _;
use std::time::Duration;

use crate::audit::Record;
use crate::catalog::Catalog;
use crate::model::error::{SAYS, WORDS, show_bytes};
use crate::model::{Limits, ReadError, Verdict, reference, text};

/// The record in a few lines.
pub(super) fn record(record: &Record, catalog: &Catalog) -> String {
    let mount = record.mount.as_ref();
    let snapshot = catalog.snapshot();
    let limits = mount.and_then(|name| snapshot.find(name)).map(|mount| mount.gate.limits().clone());
    let reference = record
        .reference
        .as_ref()
        .map(|reference| format!(" {}", text::quoted(reference, reference::MAX_URI)))
        .unwrap_or_default();
    // What the author typed needs no name; what belljar does of its own accord (`watch`) does.
    let by = match (record.caller.client.as_deref(), record.caller.transport) {
        (Some(client), _) => format!(" ({client})"),
        (None, "cli") => String::new(),
        (None, transport) => format!(" ({transport})"),
    };
    let outcome = record.outcome.as_ref().err();
    let calls = if record.calls > 1 { format!(", {} calls", record.calls) } else { String::new() };
    let mut out = format!("{}{reference}{by}{calls}: ", record.operation);
    match (outcome, record.served_from) {
        (None, None) => out.push_str("ok"),
        (None, Some(from)) => {
            let _ = write!(out, "ok, from {}", if from == "cache" { "what was fresh" } else { from });
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
    for denied in record.trail.decisions().iter().filter(|decision| decision.verdict != Verdict::Allowed) {
        let times = if denied.times > 1 { format!(", {} times", denied.times) } else { String::new() };
        let what = if denied.verdict == Verdict::Denied { "refused" } else { "not there" };
        let _ = write!(out, "\n  {what}: {} {}{times}", denied.grant, text::quoted(&denied.what, 200));
        hints.extend(denied.cure.clone());
    }
    let mut told: Vec<&String> = Vec::new();
    for hint in &hints {
        if !told.contains(&hint) {
            told.push(hint);
            let _ = write!(out, "\n  hint: {hint}");
        }
    }
    if let Some(words) = outcome.and_then(ReadError::said) {
        let _ = write!(out, "\n  {SAYS}{}", text::quoted(words, WORDS));
    }
    out
}

fn used(record: &Record, limits: &Limits) -> String {
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

/// Tells small shares apart from none.
fn share(used: u64, cap: u64) -> String {
    let tenths = u128::from(used) * 1000 / u128::from(cap.max(1));
    match tenths {
        0 if used > 0 => "under 0.1%".to_owned(),
        _ => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

/// A time with as much of it as matters.
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
    use crate::admission::budget::Budget;
    use crate::audit::Consented;
    use crate::model::error::{Bound, Limit};
    use crate::model::{Caller, MountName, Trail, Usage};

    fn shown(outcome: Result<(), ReadError>, trail: Trail) -> String {
        shown_by("cli", outcome, trail)
    }

    fn shown_by(transport: &'static str, outcome: Result<(), ReadError>, trail: Trail) -> String {
        let usage =
            Usage { fuel: 31_204, time: Duration::from_micros(412), cpu: Duration::ZERO, memory: 1 << 20, bytes: 41 };
        let one = Record {
            at: SystemTime::UNIX_EPOCH,
            caller: Caller { transport, client: None, peer: 0 },
            mount: Some(MountName::new("m").unwrap()),
            digest: None,
            operation: "read",
            reference: Some("months/2".into()),
            served_from: None,
            calls: 1,
            outcome,
            usage,
            trail,
            consent: Consented::default(),
        };
        record(&one, &Catalog::new(Budget::new(1 << 30)))
    }

    #[test]
    fn a_call_is_shown_with_what_it_used() {
        assert_eq!(
            shown(Ok(()), Trail::default()),
            "read \"months/2\": ok\n  412 us of 5s, fuel 31204 (under 0.1% of 5000000000), memory 1MiB of 64MiB, answer 41B of 8MiB"
        );
        assert!(shown_by("watch", Ok(()), Trail::default()).starts_with("read \"months/2\" (watch): ok\n"));
        let limit = ReadError::Exhausted(Limit { bound: Bound::Memory, used: 65 << 20, cap: 64 << 20 });
        let told = shown(Err(limit), Trail::default());
        assert!(told.contains("hint: to allow more, set memory = \"130MiB\" under [mounts.m.limits]"), "{told}");
    }

    #[test]
    fn what_was_refused_is_shown_with_its_cure_once() {
        let mut trail = Trail::default();
        for _ in 0..2 {
            trail.add("http", "GET https://x/", Verdict::Denied, || Some("run: belljar grant m".into()));
        }
        let told = shown(Ok(()), trail);
        assert!(told.contains("\n  refused: http \"GET https://x/\", 2 times\n  hint: run: belljar grant m"), "{told}");
    }

    #[test]
    fn times_and_shares_are_readable() {
        let times = [999, 1500, 99_999, 999_999, 12_345_678].map(|micros| show_time(Duration::from_micros(micros)));
        assert_eq!(times, ["999 us", "1.5 ms", "99.9 ms", "999 ms", "12.3 s"]);
        assert_eq!((share(0, 5), share(1, 5000), share(1, 3)), ("0.0%".into(), "under 0.1%".into(), "33.3%".into()));
    }
}
