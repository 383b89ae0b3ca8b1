//! The MCP conformance suites, both published lines, against the real binary: each scenario is one test.
//!
//! A scenario consists of checks. Those that cannot pass yet, or never will, stand in `expected-failures.txt`, each with
//! its reason. A check that fails without standing there fails its scenario; so does one that stands there and passes,
//! and so does a scenario in which nothing was checked.
//!
//! Scenarios about prompts, sampling, logging and tasks are not run: belljar has none of them. Nor are those that call tools
//! or ask for input: each wants a tool of the suite's own (`test_simple_text`, `test_error_handling`, ...), where belljar has
//! its three. What those give is held against their schemas in `tests/bounds/tools.rs`, and by real clients in `tests/e2e`.
//! Subscriptions have no scenario of their own at 2026-07-28: what is checked of `subscriptions/listen` is in `server-stateless`;
//! the rest is in `tests/bounds/watching.rs` and, with real clients, in `tests/e2e/watching.rs`.
#![expect(clippy::panic, clippy::unwrap_used, reason = "in a test a panic is how a failure is told")]

mod expected;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{Site, places, process};
use serde_json::Value;

use crate::expected::Expected;

/// How long one scenario may take: the suites have their own, shorter deadlines.
const PATIENCE: Duration = Duration::from_secs(120);

/// One test for each scenario of a suite at a revision of the protocol; and the list of all.
macro_rules! scenarios {
    ($($module:ident: $suite:literal, $revision:literal { $($test:ident: $scenario:literal,)* })*) => {
        /// Every scenario that is run: suite, revision, name.
        const SCENARIOS: &[(&str, &str, &str)] = &[$($(($suite, $revision, $scenario),)*)*];

        $(mod $module {
            $(#[test]
            fn $test() {
                super::run($suite, $revision, $scenario);
            })*
        })*
    };
}

scenarios! {
    suite_0_1_on_2025_11_25: "0.1", "2025-11-25" {
        completion_complete: "completion-complete",
        dns_rebinding_protection: "dns-rebinding-protection",
        ping: "ping",
        resources_list: "resources-list",
        resources_read_binary: "resources-read-binary",
        resources_read_text: "resources-read-text",
        resources_subscribe: "resources-subscribe",
        resources_templates_read: "resources-templates-read",
        resources_unsubscribe: "resources-unsubscribe",
        server_initialize: "server-initialize",
        server_sse_multiple_streams: "server-sse-multiple-streams",
        server_sse_polling: "server-sse-polling",
        tools_list: "tools-list",
    }
    suite_0_2_on_2025_11_25: "0.2", "2025-11-25" {
        completion_complete: "completion-complete",
        dns_rebinding_protection: "dns-rebinding-protection",
        ping: "ping",
        resources_list: "resources-list",
        resources_read_binary: "resources-read-binary",
        resources_read_text: "resources-read-text",
        resources_subscribe: "resources-subscribe",
        resources_templates_read: "resources-templates-read",
        resources_unsubscribe: "resources-unsubscribe",
        server_initialize: "server-initialize",
        server_session_lifecycle: "server-session-lifecycle",
        server_sse_multiple_streams: "server-sse-multiple-streams",
        server_sse_polling: "server-sse-polling",
        tools_list: "tools-list",
    }
    suite_0_2_on_2026_07_28: "0.2", "2026-07-28" {
        caching: "caching",
        completion_complete: "completion-complete",
        dns_rebinding_protection: "dns-rebinding-protection",
        http_header_validation: "http-header-validation",
        resource_not_found: "sep-2164-resource-not-found",
        resources_list: "resources-list",
        resources_read_binary: "resources-read-binary",
        resources_read_text: "resources-read-text",
        resources_templates_read: "resources-templates-read",
        server_sse_multiple_streams: "server-sse-multiple-streams",
        server_stateless: "server-stateless",
        tools_list: "tools-list",
    }
}

/// Runs one scenario against a server of its own, and compares its checks with what is expected of them.
fn run(suite: &str, revision: &str, scenario: &str) {
    let script = places::node_module(&format!("conformance-{suite}/dist/index.js"));
    let (Some(node), Some(script)) = (places::node(), script) else {
        return;
    };
    let site = Site::new();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("list-time = \"60s\"\n\n[mounts.fixture]\nuri = \"test://\"\n");
    let server = site.http();

    let results = site.path("results");
    let mut command = Command::new(node);
    command
        .arg(script)
        .args(["server", "--url", &server.url()])
        .args(["--scenario", scenario, "--spec-version", revision, "--output-dir"])
        .arg(&results);
    let output = process::run(command, PATIENCE);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);

    let checks = checks(&results).unwrap_or_else(|| panic!("the suite left no checks:\n{said}"));
    let with = |wanted: &[&str]| -> BTreeSet<String> {
        let checks = checks.iter().filter(|check| wanted.contains(&check["status"].as_str().unwrap()));
        checks.map(|check| check["id"].as_str().unwrap().to_owned()).collect()
    };
    let failed = with(&["FAILURE", "WARNING"]);
    let expected = Expected::read().of(suite, revision, scenario);
    let unexpected: Vec<_> = failed.difference(&expected).collect();
    assert!(
        unexpected.is_empty(),
        "failed: {unexpected:#?}\n{}\nserver:\n{}",
        reasons(&checks),
        server.process.stderr()
    );
    let surprising: Vec<_> = expected.difference(&failed).collect();
    assert!(surprising.is_empty(), "expected to fail, and did not: strike these lines: {surprising:#?}");
    assert!(!expected.is_empty() || !with(&["SUCCESS"]).is_empty(), "nothing was checked:\n{said}");
}

/// The checks that a run left below `results`; `None` if there are none.
fn checks(results: &Path) -> Option<Vec<Value>> {
    let run = std::fs::read_dir(results).ok()?.next()?.unwrap();
    let text = std::fs::read_to_string(run.path().join("checks.json")).ok()?;
    match serde_json::from_str(&text).unwrap() {
        Value::Array(checks) if !checks.is_empty() => Some(checks),
        _ => None,
    }
}

/// What the suite says of each check that did not pass.
fn reasons(checks: &[Value]) -> String {
    let failed = checks.iter().filter(|check| check["status"] == "FAILURE" || check["status"] == "WARNING");
    failed.map(|check| format!("{}: {}: {}\n", check["id"], check["errorMessage"], check["details"])).collect()
}

#[test]
fn expected_failures_are_of_scenarios_that_run() {
    for line in &Expected::read().lines {
        let scenario = (line.suite.as_str(), line.revision.as_str(), line.scenario.as_str());
        assert!(SCENARIOS.contains(&scenario), "no such scenario: {line:?}");
    }
}
