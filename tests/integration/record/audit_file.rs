//! The default audit record: a private file of the user, which `serve` and the commands write. Standard error has no records.
//! Another test checks the message on a terminal.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use belljar_tests::{Era, Site, wait_until};
use serde_json::Value;

use crate::support::isolated_site;

/// The record in the state directory.
fn record(site: &Site) -> Vec<Value> {
    site.records("state/belljar/record/audit.jsonl")
}

#[test]
fn the_default_record_is_a_private_file_and_has_the_commands() {
    let site = isolated_site();
    site.mount_as("guest_fixture", "fixture.wasm");
    let mut client = site.stdio(Era::Stateless);
    client.text("belljar://fixture/static-text");
    let ended = client.close();
    assert!(!ended.stderr.contains("\"operation\""), "{}", ended.stderr);
    let path = site.path("state/belljar/record/audit.jsonl");
    assert!(ended.stderr.contains(&format!("the audit record is in {path:?}")), "{}", ended.stderr);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let count = |record: &[Value], transport: &str, operation: &str| {
        record.iter().filter(|one| one["caller"]["transport"] == transport && one["operation"] == operation).count()
    };
    assert_eq!(count(&record(&site), "stdio", "read"), 1, "{:?}", record(&site));
    let output = site.run(&["read", "belljar://fixture/static-text"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(site.run(&["list"]).status.success());
    let record = record(&site);
    assert_eq!((count(&record, "cli", "read"), count(&record, "cli", "list-resources")), (1, 1), "{record:?}");
    assert_eq!(count(&record, "cli", "list-templates"), 1, "{record:?}");
}

/// The requests of one session: no export is called more than twice, and the record has at most six lines.
#[test]
fn a_session_costs_one_call_for_each_request() {
    let site = isolated_site();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("[watch]\npoll = \"600s\"\nreread = \"600s\"\nlists = \"600s\"\n");
    let mut client = site.stdio(Era::Session);
    client.uris();
    client.templates();
    client.text("belljar://fixture/static-text");
    assert!(client.close().status.success());
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    for one in record(&site) {
        *calls.entry(one["operation"].as_str().unwrap().to_owned()).or_default() += one["calls"].as_u64().unwrap_or(1);
    }
    // The client causes one call of each kind. If its requests are more than a second apart, belljar adds one call.
    assert!(calls.values().all(|calls| *calls <= 2) && calls["read"] == 1, "{calls:?}");
    assert!(record(&site).len() <= 6, "{:?}", record(&site));
}

/// On a terminal, belljar prints that it waits for a client, in colours unless `NO_COLOR` is set.
#[test]
fn a_terminal_shows_that_belljar_waits_for_a_client() {
    let site = isolated_site();
    site.mount_as("guest_fixture", "fixture.wasm");
    for (variable, coloured) in [(None, true), (Some("1"), false), (Some(""), true)] {
        let serve = site.command(site.arguments(&["serve"]));
        let words = std::iter::once(serve.get_program()).chain(serve.get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        // A pseudo-terminal whose input ends at once.
        let mut script = Command::new("script");
        script.args(["-qec", &line.join(" "), "/dev/null"]).stdin(Stdio::null());
        script.env_clear().envs(site.environment()).current_dir(site.path(""));
        if let Some(value) = variable {
            script.env("NO_COLOR", value);
        }
        let output = script.output().expect("script(1), of util-linux");
        let screen = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(screen.contains("Waiting for an MCP client on standard input. Try `belljar list`."), "{screen}");
        assert_eq!(screen.contains("\u{1b}["), coloured, "NO_COLOR = {variable:?}: {screen:?}");
    }
}

/// A tool that rotates logs renames the operator's file and sends SIGHUP. belljar goes on in a new file, although the second
/// wall forbids opening one, and no line is lost or torn.
#[test]
fn a_renamed_record_goes_on_in_a_new_file_after_sighup() {
    let site = isolated_site();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("audit = \"audit.jsonl\"\n");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    let rounds = 3;
    for round in 1..=rounds {
        for _ in 0..20 {
            client.text("belljar://fixture/static-text");
        }
        fs::rename(site.path("audit.jsonl"), site.path(format!("audit.{round}.jsonl"))).unwrap();
        server.process.hang_up();
        wait_until("the file is open again", || {
            let log = server.process.stderr();
            if log.matches("the file of the record is open again").count() == round { Ok(()) } else { Err(log) }
        });
        assert!(site.path("audit.jsonl").exists());
    }
    client.text("belljar://fixture/static-text");
    drop(client);
    assert!(server.stop().status.success());
    let files = ["audit.1.jsonl", "audit.2.jsonl", "audit.3.jsonl", "audit.jsonl"];
    let reads = |file: &str| site.records(file).iter().filter(|record| record["operation"] == "read").count();
    assert_eq!(files.map(reads).iter().sum::<usize>(), 20 * rounds + 1);
    assert!(reads("audit.jsonl") >= 1);
    // One chain leads through all files.
    let text: String = files.iter().map(|file| fs::read_to_string(site.path(file)).unwrap()).collect();
    site.write("all.jsonl", text);
    let verified = site.run_json(&["audit", "verify", "--file", "all.jsonl"]);
    assert_eq!(
        (&verified["whole"], verified["chains"].as_array().map(Vec::len)),
        (&true.into(), Some(1)),
        "{verified}"
    );
    assert_eq!(verified["chains"][0]["first"], 1);
    assert_eq!(fs::metadata(site.path("audit.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
}

/// If the file cannot be opened again, the record goes on in the old one, and the log says so.
#[test]
fn a_record_that_cannot_be_opened_again_goes_on_in_the_old_file() {
    let site = isolated_site();
    site.mount_as("guest_fixture", "fixture.wasm");
    fs::create_dir(site.path("log")).unwrap();
    site.config("audit = \"log/audit.jsonl\"\n");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    fs::rename(site.path("log"), site.path("gone")).unwrap();
    server.process.hang_up();
    wait_until("the log line", || {
        let log = server.process.stderr();
        if log.contains("the record goes on in the old file: ") { Ok(()) } else { Err(log) }
    });
    client.text("belljar://fixture/static-text");
    drop(client);
    assert!(server.stop().status.success());
    assert_eq!(site.records("gone/audit.jsonl").iter().filter(|record| record["operation"] == "read").count(), 1);
}
