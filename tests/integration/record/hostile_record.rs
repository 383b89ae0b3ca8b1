//! Rows of the hostile table (`tests/integration/hostile`) about the audit record. A provider or a client tries to keep
//! a call, or a part of a call, out of the record.

use std::sync::Arc;
use std::time::Duration;

use belljar_tests::{Era, Site};
use belljar_upstream::{Upstream, answer, request, until_closed};
use serde_json::{Value, json};

use crate::http_grants::{answer_text, fetch, grant};
use crate::row::{Row, RunMode, Stops, bare, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{path, within};

pub(crate) fn rows() -> Vec<Row> {
    vec![cancelled(), many_denials(), changed_record()]
}

/// The records of reads of this reference.
fn records(context: &RowContext<'_>, reference: &str) -> Vec<Value> {
    let all = context.site().audit().into_iter();
    all.filter(|record| record["operation"] == "read" && record["reference"] == reference).collect()
}

/// Waits for the one record of a read.
fn record(context: &RowContext<'_>, reference: &str) -> Value {
    let is_recorded = within(Duration::from_secs(20), || !records(context, reference).is_empty());
    assert!(is_recorded, "no record of {reference}");
    records(context, reference).remove(0)
}

/// Each change of the record later must show.
fn changed_record() -> Row {
    bare("AUD-02", "somebody changes, removes, repeats, swaps or inserts lines of the record afterwards")
        .run_mode(RunMode::Unstarted)
        .act(|_| {
            let site = Site::new();
            site.mount_as("guest_fixture", "fixture.wasm");
            site.config("audit = \"audit.jsonl\"\n");
            let mut client = site.stdio(Era::Stateless);
            (0..10).for_each(|_| drop(client.text("belljar://fixture/static-text")));
            assert!(client.close().status.success());
            let record = std::fs::read_to_string(site.path("audit.jsonl")).expect("the record");
            let whole: Vec<&str> = record.lines().collect();
            let is_whole = |lines: &[&str]| {
                site.write("changed.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
                site.run(&["audit", "verify", "--file", "changed.jsonl"]).status.success()
            };
            assert!(is_whole(&whole), "the record itself");
            let mut count = 0;
            for at in 1..whole.len() - 1 {
                let edited = whole[at].replacen("\"micros\":", "\"micros\":1", 1);
                let forged = r#"{"time":"2026-11-27T00:00:00.000Z","operation":"read","outcome":"ok"}"#;
                let (before, next) = (&whole[..at], whole[at + 1]);
                let changes = [
                    [before, &[edited.as_str()], &whole[at + 1..]].concat(),
                    [before, &whole[at + 1..]].concat(),
                    [before, &[whole[at]], &whole[at..]].concat(),
                    [before, &[forged], &whole[at..]].concat(),
                    [before, &[next, whole[at]], &whole[at + 2..]].concat(),
                ];
                for changed in changes {
                    assert!(!is_whole(&changed), "line {at}: {changed:?}");
                    count += 1;
                }
            }
            format!("{count} changes, and each shows")
        })
        .stopped(Stops::Structure("each line has a hash of itself and of the line before it"))
}

/// A cancelled read must be on record with its grant and its usage.
fn cancelled() -> Row {
    let upstream = Arc::new(Upstream::raw(|stream| {
        let _ = request(stream);
        until_closed(stream, Duration::from_secs(60));
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    hostile_guest(
        "AUD-01",
        "a client cancels its read after the upstream got the request, to keep the read out of the record",
    )
    .config(&grant(&origin, ""))
    .run_mode(RunMode::Stdio)
    .act(move |context| {
        upstream.forget();
        let reference = fetch(&format!("GET {origin}/"));
        let id = context.begin(&reference);
        assert!(
            within(Duration::from_secs(20), || upstream.connections() > 0),
            "the request does not reach the upstream"
        );
        context.stdio().cancel(id);
        let record = record(context, &reference);
        assert_eq!(record["outcome"], "cancelled", "{record}");
        assert_eq!(record["grants"], json!([{ "grant": "http", "what": format!("GET {origin}"), "times": 1 }]));
        let used = |name: &str| record["usage"][name].as_u64().unwrap_or_default();
        assert!(used("fuel") > 0 && used("memory") > 0 && used("micros") > 0, "{record}");
        format!("on record with its grant and {} units of fuel", used("fuel"))
    })
    .stopped(Stops::Structure("a call shares its data with its record while it runs"))
}

/// Forty denied requests come before one allowed request. The record must name the allowed request.
fn many_denials() -> Row {
    let upstream = Arc::new(Upstream::plain(|_| answer("200 OK", "", "fine")));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    hostile_guest(
        "AUD-01",
        "a provider first causes many different denials, so that the record could only count its granted request",
    )
    .config(&grant(&origin, ""))
    .limits("requests = 200")
    .act(move |context| {
        let _alive = &upstream;
        let refused: Vec<String> = (0..40).map(|n| format!("http://n{n}.x/")).collect();
        let reference = format!("flood/{}", path(format!("{} {origin}/", refused.join(" "))));
        let text = answer_text(&context.read(&reference));
        assert!(text.ends_with("200"), "{text}");
        let record = record(context, &reference);
        let granted = json!([{ "grant": "http", "what": format!("GET {origin}"), "times": 1 }]);
        assert_eq!(record["grants"], granted, "{record}");
        let denials = record["denials"].as_array().map_or(0, Vec::len);
        assert_eq!(denials as u64 + record["decisions_dropped"].as_u64().unwrap_or_default(), 40, "{record}");
        format!("{denials} denials by name, the others as a number, and the grant")
    })
    .stopped(Stops::Structure("a record never leaves out an allowed request"))
}
