//! The MCP conformance suites against the real binary: one test for each scenario of both published release lines.
//!
//! A scenario consists of checks. `expected-failures.txt` lists the checks that cannot pass, each with its reason. A test
//! fails in four cases: an unlisted check fails, an unlisted check is skipped, a listed check passes, or the suite made no
//! check.
//!
//! The server has two mounts: `tests/guests/fixture` has the resources of the suites, and `tests/guests/primitives` their tools,
//! prompts and skills. The names of the latter have no prefix. Scenarios of extensions need `--force`: without it, the suite skips
//! them, and reports success.
//!
//! `NOT_RUN` lists the scenarios that are not run, and why. At 2026-07-28, subscriptions have no scenario of their own;
//! `server-stateless` checks `subscriptions/listen`. Further tests are in `tests/integration/subscriptions` and
//! `tests/integration/clients/subscriptions.rs`.

mod expected;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use belljar_tests::{Site, places, process};
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
        elicitation_sep1034_defaults: "elicitation-sep1034-defaults",
        elicitation_sep1330_enums: "elicitation-sep1330-enums",
        json_schema_2020_12: "json-schema-2020-12",
        ping: "ping",
        prompts_get_embedded_resource: "prompts-get-embedded-resource",
        prompts_get_simple: "prompts-get-simple",
        prompts_get_with_args: "prompts-get-with-args",
        prompts_get_with_image: "prompts-get-with-image",
        prompts_list: "prompts-list",
        resources_list: "resources-list",
        resources_read_binary: "resources-read-binary",
        resources_read_text: "resources-read-text",
        resources_subscribe: "resources-subscribe",
        resources_templates_read: "resources-templates-read",
        resources_unsubscribe: "resources-unsubscribe",
        server_initialize: "server-initialize",
        server_sse_multiple_streams: "server-sse-multiple-streams",
        server_sse_polling: "server-sse-polling",
        tools_call_audio: "tools-call-audio",
        tools_call_elicitation: "tools-call-elicitation",
        tools_call_embedded_resource: "tools-call-embedded-resource",
        tools_call_error: "tools-call-error",
        tools_call_image: "tools-call-image",
        tools_call_mixed_content: "tools-call-mixed-content",
        tools_call_sampling: "tools-call-sampling",
        tools_call_simple_text: "tools-call-simple-text",
        tools_call_with_progress: "tools-call-with-progress",
        tools_list: "tools-list",
    }
    suite_0_2_on_2025_11_25: "0.2", "2025-11-25" {
        completion_complete: "completion-complete",
        dns_rebinding_protection: "dns-rebinding-protection",
        elicitation_sep1034_defaults: "elicitation-sep1034-defaults",
        elicitation_sep1330_enums: "elicitation-sep1330-enums",
        json_schema_2020_12: "json-schema-2020-12",
        ping: "ping",
        prompts_get_embedded_resource: "prompts-get-embedded-resource",
        prompts_get_simple: "prompts-get-simple",
        prompts_get_with_args: "prompts-get-with-args",
        prompts_get_with_image: "prompts-get-with-image",
        prompts_list: "prompts-list",
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
        skills_directory: "sep-2640-skills-directory",
        skills_enumeration: "sep-2640-skills-enumeration",
        skills_manifest: "sep-2640-skills-manifest",
        tools_call_audio: "tools-call-audio",
        tools_call_elicitation: "tools-call-elicitation",
        tools_call_embedded_resource: "tools-call-embedded-resource",
        tools_call_error: "tools-call-error",
        tools_call_image: "tools-call-image",
        tools_call_mixed_content: "tools-call-mixed-content",
        tools_call_sampling: "tools-call-sampling",
        tools_call_simple_text: "tools-call-simple-text",
        tools_call_with_progress: "tools-call-with-progress",
        tools_list: "tools-list",
    }
    suite_0_2_on_2026_07_28: "0.2", "2026-07-28" {
        caching: "caching",
        completion_complete: "completion-complete",
        dns_rebinding_protection: "dns-rebinding-protection",
        http_custom_header_server_validation: "http-custom-header-server-validation",
        http_header_validation: "http-header-validation",
        input_required_result_basic_elicitation: "input-required-result-basic-elicitation",
        input_required_result_basic_list_roots: "input-required-result-basic-list-roots",
        input_required_result_basic_sampling: "input-required-result-basic-sampling",
        input_required_result_capability_check: "input-required-result-capability-check",
        input_required_result_ignore_extra_params: "input-required-result-ignore-extra-params",
        input_required_result_missing_input_response: "input-required-result-missing-input-response",
        input_required_result_multi_round: "input-required-result-multi-round",
        input_required_result_multiple_input_requests: "input-required-result-multiple-input-requests",
        input_required_result_non_tool_request: "input-required-result-non-tool-request",
        input_required_result_request_state: "input-required-result-request-state",
        input_required_result_result_type: "input-required-result-result-type",
        input_required_result_tampered_state: "input-required-result-tampered-state",
        input_required_result_unsupported_methods: "input-required-result-unsupported-methods",
        input_required_result_validate_input: "input-required-result-validate-input",
        json_schema_2020_12: "json-schema-2020-12",
        prompts_get_embedded_resource: "prompts-get-embedded-resource",
        prompts_get_simple: "prompts-get-simple",
        prompts_get_with_args: "prompts-get-with-args",
        prompts_get_with_image: "prompts-get-with-image",
        prompts_list: "prompts-list",
        resource_not_found: "sep-2164-resource-not-found",
        resources_list: "resources-list",
        resources_read_binary: "resources-read-binary",
        resources_read_text: "resources-read-text",
        resources_templates_read: "resources-templates-read",
        server_sse_multiple_streams: "server-sse-multiple-streams",
        server_stateless: "server-stateless",
        skills_directory: "sep-2640-skills-directory",
        skills_enumeration: "sep-2640-skills-enumeration",
        skills_manifest: "sep-2640-skills-manifest",
        tools_call_audio: "tools-call-audio",
        tools_call_embedded_resource: "tools-call-embedded-resource",
        tools_call_error: "tools-call-error",
        tools_call_image: "tools-call-image",
        tools_call_mixed_content: "tools-call-mixed-content",
        tools_call_simple_text: "tools-call-simple-text",
        tools_call_with_progress: "tools-call-with-progress",
        tools_list: "tools-list",
    }
}

/// The scenarios that are not run, by the start of their names, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("logging-set-level", "belljar sends no log messages to clients, and does not declare that it does"),
    ("tools-call-with-logging", "the same"),
    ("tasks-", "belljar does not implement the extension for tasks"),
];

/// Runs one scenario against a new server, and compares the failed checks with the expected failures.
///
/// Returns without a result if this machine lacks Node or the suite.
fn run(suite: &str, revision: &str, scenario: &str) {
    let Some(mut command) = self::suite(suite) else { return };
    let site = crate::support::empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_primitives", "primitives.wasm");
    let changes = scenario == "server-stateless";
    if changes {
        site.mount_as(WITHOUT_LISTS, CHANGING);
    }
    site.config(CONFIG);
    let server = site.http();

    let results = site.path("results");
    command
        .args(["server", "--url", &server.url()])
        .args(["--scenario", scenario, "--spec-version", revision, "--output-dir"])
        .arg(&results);
    if suite != "0.1" {
        command.arg("--force");
    }
    let output = thread::scope(|scope| {
        let (ended, wait) = channel();
        let site = &site;
        if changes {
            scope.spawn(move || change_when_asked(site, &wait));
        }
        let output = process::run(command, PATIENCE);
        drop(ended);
        output
    });
    let said = crate::support::stdout_and_stderr(&output);

    let checks = checks(&results).unwrap_or_else(|| panic!("the suite left no checks:\n{said}"));
    let with = |wanted: &[&str]| -> BTreeSet<String> {
        let checks = checks.iter().filter(|check| wanted.contains(&check["status"].as_str().unwrap()));
        checks.map(|check| check["id"].as_str().unwrap().to_owned()).collect()
    };
    let not_passed = checks.iter().filter(|check| !has_passed(check) && !is_of_another_revision(check));
    let failed: BTreeSet<String> = not_passed.map(|check| check["id"].as_str().unwrap().to_owned()).collect();
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

/// The configuration of the server: the resources at the base that the suites expect, and the names without a prefix.
const CONFIG: &str = "audit = \"audit.jsonl\"\nlist-time = \"60s\"\n\n\
    [mounts.fixture]\nuri = \"test://\"\n\n[mounts.primitives]\ntool-prefix = \"\"\n";

/// The file of the mount that changes the lists of tools and prompts, and its two components.
const CHANGING: &str = "changing.wasm";
const WITH_LISTS: &str = "guest_primitives";
const WITHOUT_LISTS: &str = "guest_sized";

/// Replaces the component of the changing mount each time that a client calls one of the tools that stand for a change of a list.
/// A provider cannot change its own lists while it runs: an operator does, by another component. Ends when `ended` is closed.
fn change_when_asked(site: &Site, ended: &Receiver<()>) {
    let mut done = 0;
    while ended.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
        let triggers = ["test_trigger_tool_change", "test_trigger_prompt_change"];
        let is_trigger = |record: &Value| triggers.iter().any(|name| record["reference"] == *name);
        let asked =
            site.audit().iter().filter(|record| record["operation"] == "call-tool" && is_trigger(record)).count();
        if asked > done {
            done = asked;
            site.mount_as(if asked % 2 == 1 { WITH_LISTS } else { WITHOUT_LISTS }, CHANGING);
        }
    }
}

/// The command that runs a suite. `None` if this machine lacks Node or the suite.
fn suite(suite: &str) -> Option<Command> {
    let script = places::node_module(&format!("conformance-{suite}/dist/index.js"));
    let mut command = Command::new(places::node()?);
    command.arg(script?);
    Some(command)
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

/// True if a check passed, or only informs. A skipped check has not passed: the suite skips what it could not try.
fn has_passed(check: &Value) -> bool {
    check["status"] == "SUCCESS" || check["status"] == "INFO"
}

/// True if the suite skipped a check because the requested protocol revision does not have its subject.
fn is_of_another_revision(check: &Value) -> bool {
    let why = check["errorMessage"].as_str().unwrap_or_default();
    check["status"] == "SKIPPED" && why.starts_with("not applicable on negotiated protocol")
}

/// The messages of the suite for the checks that did not pass.
fn reasons(checks: &[Value]) -> String {
    let failed = checks.iter().filter(|check| !has_passed(check));
    failed.map(|check| format!("{}: {}: {}\n", check["id"], check["errorMessage"], check["details"])).collect()
}

#[test]
fn expected_failures_name_scenarios_that_run() {
    for line in &Expected::read().lines {
        let scenario = (line.suite.as_str(), line.revision.as_str(), line.scenario.as_str());
        assert!(SCENARIOS.contains(&scenario), "no such scenario: {line:?}");
    }
}

/// Each scenario that a suite has for a revision, or for an extension, is run or listed in `NOT_RUN`.
#[test]
fn every_scenario_is_run_or_has_a_reason() {
    for (suite, revision) in [("0.1", "2025-11-25"), ("0.2", "2025-11-25"), ("0.2", "2026-07-28")] {
        let Some(mut command) = self::suite(suite) else { return };
        command.args(["list", "--server"]);
        let output = crate::support::stdout_and_stderr(&process::run(command, PATIENCE));
        let lines: Vec<_> =
            output.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(" [")).collect();
        assert!(lines.len() > 25, "the suite {suite} lists few scenarios:\n{output}");
        let (mut left_out, mut unused) = (Vec::new(), NOT_RUN.to_vec());
        for (name, revisions) in lines {
            unused.retain(|(start, _)| !name.starts_with(start));
            let is_known = SCENARIOS.contains(&(suite, revision, name));
            let is_wanted = revisions.contains(revision) || revisions.contains("extension");
            if is_wanted && !is_known && !NOT_RUN.iter().any(|(start, _)| name.starts_with(start)) {
                left_out.push(name);
            }
        }
        assert!(left_out.is_empty(), "the suite {suite} has more scenarios at {revision}: {left_out:?}");
        assert!(suite == "0.1" || unused.is_empty(), "no such scenarios: {unused:?}");
    }
}
