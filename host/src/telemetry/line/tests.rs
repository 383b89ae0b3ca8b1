//! Tests that `docs/reference/record.md` lists exactly the fields of a line.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::*;
use crate::model::error::{Limit, LimitKind};
use crate::model::{DecisionLog, Digest, Usage};
use crate::policy::{Evidence, TokenIdentity, authenticate};
use crate::telemetry::{ConsentRecord, LineChain};

const SCHEMA: &str = include_str!("../../../../docs/reference/record.schema.json");

const PAGE: &str = include_str!("../../../../docs/reference/record.md");

fn consent() -> Consent {
    Consent { grant: "http".into(), target: "https://x".to_owned() }
}

/// An event in which every field has a value, as far as one event can.
fn full(error: ReadError) -> Event {
    let mut decision_log = DecisionLog::default();
    decision_log.add("fs", "/a", DecisionKind::Allowed, || None);
    decision_log.add("fs", "/b", DecisionKind::Denied, || None);
    decision_log.dropped = 1;
    let token = TokenIdentity {
        issuer: "https://login.example".to_owned(),
        subject: "ada".to_owned(),
        client: Some("editor".to_owned()),
        ..TokenIdentity::default()
    };
    let (parent, link, request_id) = (None, None, "1".to_owned());
    let trace = TraceContext { trace: [1; 16], span: [2; 8], parent, link, request_id };
    let request = RequestInfo::new("resources/read", Some("2026-07-28"), Some(9)).traced(Some(trace));
    request.set_name("n");
    Event {
        ended_at: SystemTime::UNIX_EPOCH,
        uri: None,
        called_at: None,
        caller: Caller {
            client: Some("c 1".into()),
            address: Some(Ipv4Addr::LOCALHOST.into()),
            trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
            ..Caller::new(authenticate(Evidence::Token(token)), "http")
        },
        request: Some(Arc::new(request)),
        took: Duration::from_micros(6),
        mount: MountName::new("m").ok(),
        digest: Some(Digest::of(b"x")),
        operation: "read",
        reference: Some("a".to_owned()),
        served_from: Some("cache"),
        calls: 2,
        outcome: Err(error.into()),
        usage: Usage {
            queue: Duration::from_micros(1),
            fuel: 1,
            time: Duration::from_micros(2),
            cpu: Duration::from_micros(3),
            memory: 4,
            bytes: 5,
        },
        decision_log,
        consent: ConsentRecord { asked: Some(consent()), answered: Some((consent(), "once")) },
        credential: Some("01234567".to_owned()),
    }
}

fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                fields(value, &path, all);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, &format!("{path}[]"), all)),
        _ => drop(all.insert(path.to_owned())),
    }
}

/// The line of an event.
fn line_of(event: &Event) -> String {
    let mut out = Vec::new();
    event.write_line(&mut out);
    String::from_utf8(out).unwrap()
}

/// The line with its place in the chain.
fn sealed(chain: &mut LineChain, line: &str) -> Vec<u8> {
    let mut out = line.as_bytes().to_vec();
    chain.seal(&mut out, 0);
    out
}

#[test]
fn the_document_lists_every_field_and_no_other() {
    let mut written = BTreeSet::new();
    let limit = ReadError::Exhausted(Limit { kind: LimitKind::Time, used: 1, cap: 1 });
    for error in [limit, ReadError::Internal("why".to_owned())] {
        fields(&serde_json::from_str(&line_of(&full(error))).unwrap(), "", &mut written);
    }
    let lost = sealed(&mut LineChain::new([0; 8]), &lost_line(SystemTime::UNIX_EPOCH, 3));
    fields(&serde_json::from_slice(&lost).unwrap(), "", &mut written);
    let table = PAGE.split("| field |").nth(1).unwrap().split("\n\n").next().unwrap();
    let documented =
        table.lines().filter_map(|row| row.strip_prefix("| `")?.split_once('`').map(|(field, _)| field.to_owned()));
    assert_eq!(documented.collect::<BTreeSet<_>>(), written);
}

#[test]
fn joined_events_have_the_sums_of_their_calls() {
    let mut joined = full(ReadError::NotFound);
    joined.reference = None;
    let mut last = full(ReadError::NotFound);
    (last.reference, last.outcome, last.calls) = (None, Ok(()), 1);
    joined.join(last);
    assert_eq!((joined.calls, joined.outcome.is_ok()), (3, true));
    let usage = Usage {
        queue: Duration::from_micros(2),
        fuel: 2,
        time: Duration::from_micros(4),
        cpu: Duration::from_micros(6),
        memory: 4,
        bytes: 10,
    };
    assert_eq!(joined.usage, usage);
    let times: Vec<_> = joined.decision_log.decisions().iter().map(|one| (one.target.as_str(), one.times)).collect();
    assert_eq!((times, joined.decision_log.dropped), (vec![("/a", 2), ("/b", 2)], 2));
}

/// To write the file: `BELLJAR_BLESS=1 cargo test --release -p belljar --lib telemetry::line`.
#[test]
fn the_schema_in_the_documents_is_that_of_a_line() {
    let text = schema_text();
    if std::env::var_os("BELLJAR_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/record.schema.json"), &text).unwrap();
        return;
    }
    assert!(text == SCHEMA, "run the test with BELLJAR_BLESS=1");
}

#[test]
fn each_line_fits_the_schema_and_a_foreign_one_does_not() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut chain = LineChain::new([0; 8]);
    let limit = ReadError::Exhausted(Limit { kind: LimitKind::Time, used: 1, cap: 1 });
    let caller = || Caller::new(authenticate(Evidence::OwnUser), "stdio");
    let smallest = Event::new(caller(), "ping", Ok(()));
    let lines = [line_of(&full(limit)), line_of(&smallest), lost_line(SystemTime::UNIX_EPOCH, 3)];
    for line in lines {
        let line: Value = serde_json::from_slice(&sealed(&mut chain, &line)).unwrap();
        assert!(validator.is_valid(&line), "{line}: {:?}", validator.iter_errors(&line).next());
        for field in ["time", "hash"] {
            let mut changed = line.clone();
            changed.as_object_mut().unwrap().remove(field);
            assert!(!validator.is_valid(&changed), "without {field}: {changed}");
            changed = line.clone();
            changed["more"] = 1.into();
            assert!(!validator.is_valid(&changed), "{changed}");
        }
    }
}
