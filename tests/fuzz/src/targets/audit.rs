//! Audit records: `telemetry::Event`. A record must be one line of JSON, and return every untrusted text unchanged.

use std::time::{Duration, UNIX_EPOCH};

use belljar::model::{Consent, DecisionKind, DecisionLog, Digest, MountName, ReadError, Usage};
use belljar::policy::{Caller, Evidence, authenticate};
use belljar::telemetry::{ConsentRecord, Event};
use serde_json::{Value, json};

use crate::input::Fields;

/// Fields: client, reference, error, target of a grant, a number.
pub(super) fn audit(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let (client, reference, error, asked) = (fields.text(), fields.text(), fields.text(), fields.text());
    let number = fields.number();
    let mut log = DecisionLog::default();
    log.add("fs", &asked, DecisionKind::Denied, || None);
    log.add("fs", &asked, DecisionKind::Denied, || None);
    let own = Caller::new(authenticate(Evidence::OwnUser), "stdio");
    let caller = Caller { client: Some(client.as_str().into()), ..own };
    let record = Event {
        ended_at: UNIX_EPOCH + Duration::from_secs(number % (1 << 33)),
        mount: MountName::new(&client).ok(),
        digest: Some(Digest([0; 32])),
        reference: Some(reference.clone()),
        usage: Usage {
            queue: Duration::from_nanos(number),
            fuel: number,
            time: Duration::from_nanos(number),
            cpu: Duration::from_nanos(number),
            memory: number,
            bytes: number,
        },
        decision_log: log,
        consent: ConsentRecord {
            asked: Some(Consent { grant: "fs".into(), target: asked.clone() }),
            answered: Some((Consent { grant: "fs".into(), target: asked.clone() }, "once")),
        },
        ..Event::new(caller, "read", Err(ReadError::Internal(error.clone()).into()))
    };
    let mut line = Vec::new();
    record.write_line(&mut line);
    let line = String::from_utf8(line).unwrap_or_else(|why| panic!("{why}"));
    assert!(!line.bytes().any(|b| b < b' '), "more than one line, or a control character: {line:?}");
    let read: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"));
    assert_eq!(read["caller"]["client"], client);
    assert_eq!(read["reference"], reference);
    assert_eq!(read["details"], error);
    assert_eq!(read["outcome"], "internal");
    assert_eq!(read["usage"]["fuel"], number);
    assert_eq!(read["denials"][0]["times"], 2);
    assert_eq!(read["denials"].as_array().map(Vec::len), Some(1));
    assert_eq!((&read["asked"]["what"], &read["answered"]["what"]), (&json!(asked), &json!(asked)));
    assert_eq!(read["grants"], json!([]));
}
