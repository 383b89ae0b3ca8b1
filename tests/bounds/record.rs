//! What goes on record by default, and where: a file of the user's own, a line for each walk, and nothing on standard error
//! that nobody asked for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use belljar_tests::{Era, Site};
use serde_json::Value;

use crate::place::bare;

/// The record in the state directory.
fn record(site: &Site) -> Vec<Value> {
    let text = fs::read_to_string(site.path("state/belljar/record/audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn by_default_the_record_is_a_private_file_and_commands_are_on_it() {
    let site = bare();
    site.mount_as("guest_fixture", "fixture.wasm");
    let mut client = site.stdio(Era::Modern);
    client.text("belljar://fixture/static-text");
    let ended = client.close();
    assert!(!ended.stderr.contains("\"operation\""), "{}", ended.stderr);
    let path = site.path("state/belljar/record/audit.jsonl");
    assert!(ended.stderr.contains(&format!("calls are on record in {path:?}")), "{}", ended.stderr);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let asked = |record: &[Value], transport: &str, operation: &str| {
        record.iter().filter(|one| one["caller"]["transport"] == transport && one["operation"] == operation).count()
    };
    assert_eq!(asked(&record(&site), "stdio", "read"), 1, "{:?}", record(&site));
    let output = site.run(&["read", "belljar://fixture/static-text"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(site.run(&["list"]).status.success());
    let record = record(&site);
    assert_eq!((asked(&record, "cli", "read"), asked(&record, "cli", "list-resources")), (1, 1), "{record:?}");
    assert_eq!(asked(&record, "cli", "list-templates"), 1, "{record:?}");
}

/// A client that connects, lists and reads as an inspector does: nothing is called twice, and little is written.
#[test]
fn a_session_costs_one_call_for_each_thing_that_is_asked() {
    let site = bare();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("[watch]\npoll = \"600s\"\nreread = \"600s\"\nlists = \"600s\"\n");
    let mut client = site.stdio(Era::Older);
    client.uris();
    client.templates();
    client.text("belljar://fixture/static-text");
    assert!(client.close().status.success());
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    for one in record(&site) {
        *calls.entry(one["operation"].as_str().unwrap().to_owned()).or_default() += one["calls"].as_u64().unwrap_or(1);
    }
    // The client's own, and one look of belljar's where that was more than a second apart.
    assert!(calls.values().all(|calls| *calls <= 2) && calls["read"] == 1, "{calls:?}");
    assert!(record(&site).len() <= 6, "{:?}", record(&site));
}

/// On a terminal, belljar says what it waits for, in colours unless they are not wanted.
#[test]
fn a_terminal_is_told_what_is_waited_for() {
    let site = bare();
    site.mount_as("guest_fixture", "fixture.wasm");
    for (variable, coloured) in [(None, true), (Some("1"), false), (Some(""), true)] {
        let serve = site.command(site.arguments(&["serve"]));
        let words = std::iter::once(serve.get_program()).chain(serve.get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        // A terminal of its own, which ends at once.
        let mut script = Command::new("script");
        script.args(["-qec", &line.join(" "), "/dev/null"]).stdin(Stdio::null());
        script.env_clear().envs(site.environment()).current_dir(site.path(""));
        if let Some(value) = variable {
            script.env("NO_COLOR", value);
        }
        let output = script.output().expect("script(1), of util-linux");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Waiting for an MCP client on standard input. Try `belljar list`."), "{said}");
        assert_eq!(said.contains("\u{1b}["), coloured, "NO_COLOR = {variable:?}: {said:?}");
    }
}
