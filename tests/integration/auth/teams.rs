//! The configuration of `docs/guide/teams.md`, with three keys over HTTP.

use belljar_tests::{Site, places};
use serde_json::{Value, json};

use super::requests::{HttpCaller, message, stdout_of};
use crate::support::{empty, patient};

/// The guide, from the root of the repository.
const GUIDE: &str = "docs/guide/teams.md";

const PLAN: &str = "belljar://notes/plan.md";
const SALARIES: &str = "belljar://notes/private/salaries.md";
const LOG: &str = "belljar://logs/app.log";

/// The whole configuration of the guide: its first block of TOML. This test has neither a certificate nor a fixed port.
fn configuration() -> String {
    let guide = std::fs::read_to_string(places::repository().join(GUIDE)).unwrap();
    let (_, rest) = guide.split_once("```toml\n").expect("a block of TOML");
    let (block, _) = rest.split_once("```").unwrap();
    let is_left_out = |line: &&str| ["http =", "url =", "tls ="].iter().any(|key| line.starts_with(key));
    assert_eq!(block.lines().filter(is_left_out).count(), 3, "{block}");
    block.lines().filter(|line| !is_left_out(line)).map(|line| format!("{line}\n")).collect()
}

/// The mounts of the guide, and its configuration.
fn site() -> Site {
    let site = empty();
    site.mount_as("files", "notes.wasm");
    site.mount("logs");
    site.write("data/notes/plan.md", "# Plan\n");
    site.write("data/notes/private/salaries.md", "# Salaries\n");
    site.write("data/logs/app.log", "2026-11-24T01:00:00Z INFO started\n");
    let mounts =
        "\n[mounts.notes]\nfs = { \"/notes\" = \"data/notes\" }\n[mounts.logs]\nfs = { \"/logs\" = \"data/logs\" }\n";
    site.config(&format!("audit = \"audit.jsonl\"\n{}", patient(&format!("{}{mounts}", configuration()))));
    site
}

/// Makes the three keys of the guide.
fn keys(site: &Site) -> [String; 3] {
    let new = |arguments: &[&str]| stdout_of(site, &[&["key", "new"], arguments].concat()).trim_end().to_owned();
    [
        new(&["ana", "--group", "leads"]),
        new(&["ben", "--group", "support"]),
        new(&["ci", "--scope", "logs:read", "--expires", "30d"]),
    ]
}

/// The kind of the error of a read. `ok` if there is none.
fn outcome(caller: &HttpCaller<'_>, uri: &str) -> String {
    let answer = message(&caller.read(uri));
    match &answer["error"] {
        Value::Null => "ok".to_owned(),
        error => error["data"]["kind"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn three_people_have_the_rights_of_the_guide() {
    let site = site();
    let [ana, ben, ci] = keys(&site);
    let server = site.http();
    let [lead, support, program] = [&ana, &ben, &ci].map(|key| HttpCaller::stateless(&server, Some(key)));

    assert_eq!(lead.uris(), [LOG, PLAN, SALARIES]);
    assert_eq!(program.uris(), [LOG]);
    // The rule about the logs depends on the time, so only the notes are judged here.
    let mut notes = support.uris();
    notes.retain(|uri| uri != LOG);
    assert_eq!(notes, [PLAN]);

    for (uri, expected) in
        [(PLAN, ["ok", "ok", "not-found"]), (SALARIES, ["ok", "not-found", "not-found"]), (LOG, ["ok", "", "ok"])]
    {
        for (caller, expected) in [&lead, &support, &program].into_iter().zip(expected) {
            assert!(expected.is_empty() || outcome(caller, uri) == expected, "{uri}: expected {expected}");
        }
    }
    let hidden = support.read(SALARIES).text();
    assert_eq!(hidden.replace("salaries", "nothing"), support.read("belljar://notes/private/nothing.md").text());

    // The quota: 60 requests a minute. A minute passes before 200 more fit.
    let busy = (0..200).map(|_| support.read(PLAN)).find(|answer| message(answer)["error"]["data"]["kind"] == "busy");
    let busy = busy.expect("the quota is used up");
    assert!(busy.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().unwrap() >= 1), "{}", busy.text());
    assert_eq!(outcome(&lead, PLAN), "ok", "the quota is that of ben");

    stdout_of(&site, &["key", "revoke", "ben"]);
    assert_eq!(support.read(PLAN).status, 401, "a revoked key");
    assert_eq!(outcome(&program, LOG), "ok");
    site.await_record("the refused key", |line| {
        line["operation"] == "authenticate" && line["credential"].as_str().is_some_and(|digits| digits.len() == 8)
    });
    let record = std::fs::read_to_string(site.path("audit.jsonl")).unwrap();
    assert!([&ana, &ben, &ci].iter().all(|key| !record.contains(key.as_str())), "a key is on record");
}

#[test]
fn the_guide_says_what_the_rules_say() {
    let site = site();
    keys(&site);
    let can = |arguments: &[&str]| {
        let output = site.run(&[&["can"], arguments, &["--json"]].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    // 2026-11-24 is a Tuesday.
    for (time, expected) in [("2026-11-24T09:00:00Z", json!(true)), ("2026-11-24T20:00:00Z", json!(false))] {
        assert_eq!(can(&["key:ben", "read", LOG, "--at", time])["allowed"], expected, "{time}");
    }
    let night = can(&["key:ben", "read", LOG, "--at", "2026-11-24T20:00:00Z"]);
    assert_eq!((&night["reason"], &night["scopes"]), (&json!("scope"), &json!(["logs:read"])), "{night}");
    assert_eq!(can(&["key:ben", "read", SALARIES])["reason"], "denied");
    assert_eq!(can(&["key:ana", "read", SALARIES])["allowed"], true);
    assert_eq!(can(&["key:ci", "read", PLAN])["reason"], "no-rule");
    assert_eq!(can(&["local", "read", SALARIES])["allowed"], true);
}

/// The operator at the command line is a principal, too. A rule that leaves the operator out is explained.
#[test]
fn the_operator_is_told_that_the_rules_hold_at_the_command_line() {
    let site = site();
    assert!(stdout_of(&site, &["list"]).contains(SALARIES));
    let rules = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    site.config(&rules.replace("user = \"local\"", "user = \"nobody\""));
    let listed = stdout_of(&site, &["list"]);
    assert!(!listed.contains(PLAN) && listed.contains("add  [[allow]]  with  who = { user = \"local\" }"), "{listed}");
    let read = site.run(&["read", PLAN]);
    let shown = String::from_utf8_lossy(&read.stderr).into_owned();
    assert_eq!(read.status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("resource not found") && shown.contains("can local read belljar://notes/plan.md"),
        "{shown}"
    );
}
