//! The MCP conformance suites against the real binary: one test for each scenario of both published release lines.
//!
//! A scenario consists of checks. `expected-failures.txt` lists the checks that cannot pass, each with its reason. A test
//! fails in three cases: an unlisted check fails, a listed check passes, or the suite made no check.
//!
//! These scenarios are not run:
//!  - Prompts, sampling, logging and tasks: belljar has none of them.
//!  - Scenarios that call tools or ask for input: each needs a tool of the suite, such as `test_simple_text`. belljar has three
//!    tools of its own. `tests/integration/tools` checks their results, and `tests/integration/clients` calls them by real
//!    clients.
//!
//! At 2026-07-28, subscriptions have no scenario of their own; `server-stateless` checks `subscriptions/listen`. Further tests
//! are in `tests/integration/subscriptions` and `tests/integration/clients/subscriptions.rs`.

mod expected;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{places, process};
use serde_json::Value;

use crate::conformance::expected::Expected;

/// The longest accepted time of one scenario. The suites have shorter deadlines of their own.
const PATIENCE: Duration = Duration::from_secs(120);

/// Declares a test for each scenario of a suite at a protocol revision, and the list of all scenarios.
macro_rules! scenarios {
    ($($module:ident: $suite:literal, $revision:literal { $($test:ident: $scenario:literal,)* })*) => {
        /// All scenarios: suite, revision, name.
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

/// Runs one scenario against a new server, and compares the failed checks with the expected failures.
///
/// Returns without a result if this machine lacks Node or the suite.
fn run(suite: &str, revision: &str, scenario: &str) {
    let script = places::node_module(&format!("conformance-{suite}/dist/index.js"));
    let (Some(node), Some(script)) = (places::node(), script) else {
        return;
    };
    let site = crate::support::empty();
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
    let passing: Vec<_> = expected.difference(&failed).collect();
    assert!(passing.is_empty(), "these checks of expected-failures.txt pass now; remove their lines: {passing:#?}");
    assert!(!expected.is_empty() || !with(&["SUCCESS"]).is_empty(), "nothing was checked:\n{said}");
}

/// The checks that a run wrote below `results`. `None` if there are none.
fn checks(results: &Path) -> Option<Vec<Value>> {
    let run = std::fs::read_dir(results).ok()?.next()?.unwrap();
    let text = std::fs::read_to_string(run.path().join("checks.json")).ok()?;
    match serde_json::from_str(&text).unwrap() {
        Value::Array(checks) if !checks.is_empty() => Some(checks),
        _ => None,
    }
}

/// The messages of the suite for the checks that did not pass.
fn reasons(checks: &[Value]) -> String {
    let failed = checks.iter().filter(|check| check["status"] == "FAILURE" || check["status"] == "WARNING");
    failed.map(|check| format!("{}: {}: {}\n", check["id"], check["errorMessage"], check["details"])).collect()
}

#[test]
fn expected_failures_name_scenarios_that_run() {
    for line in &Expected::read().lines {
        let scenario = (line.suite.as_str(), line.revision.as_str(), line.scenario.as_str());
        assert!(SCENARIOS.contains(&scenario), "no such scenario: {line:?}");
    }
}
