//! The page about the record says what a line holds, and nothing else.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::*;
use crate::model::error::{Bound, Limit};

const PAGE: &str = include_str!("../../../docs/record.md");

fn consent() -> Consent {
    Consent { grant: "http", what: "https://x".to_owned() }
}

/// A record in which every field says something, as far as one record can.
fn full(error: ReadError) -> Record {
    let mut trail = Trail::default();
    trail.add("fs", "/a", Verdict::Allowed, || None);
    trail.add("fs", "/b", Verdict::Denied, || None);
    trail.dropped = 1;
    Record {
        at: SystemTime::UNIX_EPOCH,
        caller: Caller { transport: "stdio", client: Some("c 1".into()), peer: 0 },
        mount: MountName::new("m").ok(),
        digest: Some(Digest::of(b"x")),
        operation: "read",
        reference: Some("a".to_owned()),
        served_from: Some("cache"),
        calls: 2,
        outcome: Err(error),
        usage: Usage { fuel: 1, time: Duration::from_micros(2), cpu: Duration::from_micros(3), memory: 4, bytes: 5 },
        trail,
        consent: Consented { asked: Some(consent()), answered: Some((consent(), "once")) },
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

#[test]
fn the_page_lists_every_field_and_no_other() {
    let mut written = BTreeSet::new();
    let limit = ReadError::Exhausted(Limit { bound: Bound::Time, used: 1, cap: 1 });
    for error in [limit, ReadError::Internal("why".to_owned())] {
        fields(&serde_json::from_str(&full(error).to_line()).unwrap(), "", &mut written);
    }
    fields(&serde_json::from_str(&lost_line(SystemTime::UNIX_EPOCH, 3)).unwrap(), "", &mut written);
    let table = PAGE.split("| field |").nth(1).unwrap().split("\n\n").next().unwrap();
    let told =
        table.lines().filter_map(|row| row.strip_prefix("| `")?.split_once('`').map(|(field, _)| field.to_owned()));
    assert_eq!(told.collect::<BTreeSet<_>>(), written);
}

#[test]
fn a_walk_is_what_its_calls_are_together() {
    let mut walk = full(ReadError::NotFound);
    walk.reference = None;
    let mut last = full(ReadError::NotFound);
    (last.reference, last.outcome, last.calls) = (None, Ok(()), 1);
    walk.join(last);
    assert_eq!((walk.calls, walk.outcome.is_ok()), (3, true));
    let usage = Usage { fuel: 2, time: Duration::from_micros(4), cpu: Duration::from_micros(6), memory: 4, bytes: 10 };
    assert_eq!(walk.usage, usage);
    let times: Vec<_> = walk.trail.decisions().iter().map(|one| (one.what.as_str(), one.times)).collect();
    assert_eq!((times, walk.trail.dropped), (vec![("/a", 2), ("/b", 2)], 2));
}
