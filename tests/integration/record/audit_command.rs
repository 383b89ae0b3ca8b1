//! `belljar audit`: the sums of the record, for the options that select lines.

use std::fs::OpenOptions;
use std::io::Write as _;

use belljar_tests::{Era, Site};
use serde_json::Value;

use crate::support::{empty, stdout_and_stderr};

/// A site after one client has made seven reads: three that succeed, two of unknown resources, two that are denied.
fn served() -> Site {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_hostile", "hostile.wasm");
    site.config("audit = \"audit.jsonl\"\n");
    let mut client = site.stdio(Era::Session);
    for _ in 0..3 {
        client.text("belljar://fixture/static-text");
    }
    for _ in 0..2 {
        client.read("belljar://fixture/nothing-here").unwrap_err();
        client.text("belljar://hostile/http/canary.invalid");
    }
    assert!(client.close().status.success());
    site
}

fn sums(site: &Site, options: &[&str]) -> Value {
    site.run_json(&[&["audit"], options].concat())
}

fn said(site: &Site, options: &[&str]) -> String {
    let output = site.run(&[&["audit"], options].concat());
    let text = stdout_and_stderr(&output);
    assert!(output.status.success(), "{options:?}: {text}");
    text
}

#[test]
fn the_sums_are_those_of_the_calls() {
    let site = served();
    let reads = site.audit().iter().filter(|record| record["operation"] == "read").count();
    assert_eq!(reads, 7);
    let all = sums(&site, &[]);
    assert_eq!(all["outcomes"]["not-found"], 2, "{all}");
    assert_eq!((&all["total"]["denied"], &all["total"]["failed"]), (&2.into(), &2.into()), "{all}");
    assert_eq!((&all["lost"], &all["unreadable"]), (&0.into(), &0.into()));
    let denial = &all["denials"][0];
    assert_eq!(all["denials"].as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!((&denial["mount"], &denial["grant"], &denial["times"]), (&"hostile".into(), &"http".into(), &2.into()));
    let bytes =
        |records: &[Value]| records.iter().map(|record| record["usage"]["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(all["total"]["bytes"], bytes(&site.audit()), "{all}");
    // belljar itself also calls the mounts, so only the failed reads are exact.
    let calls = |options: &[&str]| sums(&site, options)["total"]["calls"].as_u64().unwrap();
    assert_eq!(calls(&["--failed"]), 2);
    assert_eq!(calls(&["--failed", "--mount", "fixture"]), 2);
    assert_eq!(calls(&["--failed", "--mount", "hostile"]), 0);
    assert_eq!(calls(&["--denied"]), 2);
    assert_eq!(calls(&["--denied", "--who", "belljar-tests"]), 2);
    assert_eq!(calls(&["--denied", "--who", "local"]), 2);
    assert_eq!(calls(&["--who", "nobody"]), 0);
    assert_eq!(calls(&["--denied", "--since", "1h"]), 2);
    assert_eq!(calls(&["--since", "2999-01-01T00:00:00Z"]), 0);
}

#[test]
fn the_text_names_who_and_what_and_the_cure() {
    let site = served();
    let text = said(&site, &[]);
    for part in ["MOUNT", "fixture", "local (belljar-tests", "not-found 2", "2 x hostile: http", "grant hostile --http"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The lines themselves, byte for byte.
    let lines = said(&site, &["--denied", "--lines"]);
    let record = std::fs::read_to_string(site.path("audit.jsonl")).unwrap();
    assert!(lines.lines().count() == 2 && lines.lines().all(|line| record.contains(line)), "{lines}");
    assert!(said(&site, &["--who", "nobody"]).contains("No call in the record fits."));
}

#[test]
fn foreign_lines_and_losses_are_counted_and_cannot_forge_output() {
    let site = served();
    let mut record = OpenOptions::new().append(true).open(site.path("audit.jsonl")).unwrap();
    let forged =
        "\"mount\":\"m\\u001b[2J\",\"denials\":[{\"grant\":\"fs\",\"what\":\"\\u202e/x\\n1 calls\",\"times\":1}]";
    writeln!(record, "not a record\n{{\"time\":\"2026-11-27T00:00:00.000Z\",\"lost\":5}}").unwrap();
    writeln!(record, "{{\"time\":\"2026-11-27T00:00:00.000Z\",{forged}}}").unwrap();
    record.write_all(&vec![b'x'; 3 << 20]).unwrap();
    drop(record);
    let all = sums(&site, &[]);
    assert_eq!(all["lost"], 5, "{all}");
    assert!(all["unreadable"].as_u64().unwrap() >= 2, "{all}");
    let text = said(&site, &[]);
    assert!(text.contains("5 records were lost") && text.contains("not of the record"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains("\n1 calls"), "{text}");
}

#[test]
fn a_record_that_is_not_there_is_explained() {
    let site = empty();
    let refused = |options: &[&str]| {
        let output = site.run(&[&["audit"], options].concat());
        assert!(!output.status.success(), "{options:?}");
        stdout_and_stderr(&output)
    };
    for setting in ["off", "stderr"] {
        site.config(&format!("audit = \"{setting}\"\n"));
        let text = refused(&[]);
        assert!(text.contains(&format!("audit = \"{setting}\"")) && text.contains("--file FILE"), "{text}");
    }
    assert!(refused(&["--file", "gone.jsonl"]).contains("\"gone.jsonl\""));
    assert!(refused(&["--file", "plugins"]).contains("is no file"));
    let text = refused(&["--since", "yesterday"]);
    assert!(text.contains("yesterday") && text.contains("24h"), "{text}");
}
