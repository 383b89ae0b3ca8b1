//! Consent through the elicitation callbacks of real clients, over stdio and HTTP, with each possible answer.

use belljar_tests::Site;
use serde_json::{Value, json};

use crate::clients::programs::{ElicitingClient, Reach, Report, run_with_answers};

/// The two notes. Both are in the directory that needs consent.
const PLAN: &str = "belljar://notes/plan.md";
const OTHER: &str = "belljar://notes/other.md";

/// Every client, over both transports.
const CLIENTS: [(ElicitingClient, bool); 4] = [
    (ElicitingClient::Python, false),
    (ElicitingClient::Python, true),
    (ElicitingClient::Node, false),
    (ElicitingClient::Node, true),
];

/// A site with the real provider of files, whose only directory needs consent. `ask` is the setting of the mount.
fn site(ask: &str) -> Site {
    let site = crate::support::empty();
    site.mount_as("files", "notes.wasm");
    site.write("notes/plan.md", "the plan");
    site.write("notes/other.md", "another");
    site.config(&format!(
        "audit = \"audit.jsonl\"\nlist-time = \"60s\"\n[mounts.notes]\nask = {ask}\nfs = {{ \"/\" = {{ path = \"notes\", ask = true }} }}\n"
    ));
    site
}

/// Runs each client over both transports, and calls `check` with its report. The client reads both notes, and answers questions
/// with `answers`. Without `answers` it does not support elicitation.
fn with_each_client(ask: &str, answers: Option<&[&str]>, check: impl Fn(&Report, &Site)) {
    for (client, is_http) in CLIENTS {
        let site = site(ask);
        let report = if is_http {
            let server = site.http();
            let report = run_with_answers(client, &Reach::Http(&server), &[PLAN, OTHER], answers);
            assert!(server.stop().status.success());
            report
        } else {
            run_with_answers(client, &Reach::Stdio(&site), &[PLAN, OTHER], answers)
        };
        // `None`: `cargo xtask test` has already reported that this machine lacks the client.
        if let Some(report) = report {
            assert_eq!(report.protocol, "2026-07-28");
            check(&report, &site);
        }
    }
}

/// The text that a client read.
fn text<'a>(report: &'a Report, uri: &str) -> &'a str {
    let seen = &report.reads[uri];
    seen["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{uri}: {seen}"))
}

/// The error code for a client without elicitation (MCP 2026-07-28, "missing required client capability").
const CANNOT_BE_ASKED: i64 = -32021;

/// The error code of a denial.
const DENIED: i64 = -32603;

/// Asserts that the read of `uri` failed with this error code, and that the error names the cure.
fn assert_denied(report: &Report, uri: &str, code: i64) {
    let error = &report.reads[uri]["error"];
    assert_eq!(error["code"], code, "{}: {error}", report.client);
    let data = &error["data"];
    let cure = if code == CANNOT_BE_ASKED {
        // Of the data of such an error, the TypeScript client keeps only this member. So the cure is in the message.
        assert_eq!(
            data["requiredCapabilities"],
            json!({ "elicitation": { "form": {} } }),
            "{}: {error}",
            report.client
        );
        &error["message"]
    } else {
        assert_eq!(data["kind"], "denied", "{}: {error}", report.client);
        &data["hint"]
    };
    assert!(
        cure.as_str().is_some_and(|cure| cure.contains("belljar grant notes --fs /")),
        "{}: {error}",
        report.client
    );
}

/// The answers in the audit record.
fn answers(site: &Site) -> Vec<Value> {
    site.audit().iter().map(|record| record["answered"]["answer"].clone()).filter(|answer| !answer.is_null()).collect()
}

#[test]
fn an_answer_of_once_allows_one_read() {
    with_each_client("true", Some(&["once"]), |report, site| {
        assert_eq!(text(report, PLAN), "the plan");
        assert_denied(report, OTHER, DENIED);
        let [question] = report.questions.as_slice() else { panic!("one question: {:?}", report.questions) };
        let message = question["message"].as_str().unwrap();
        for part in ["\"notes\"", "sha256:", "the directory", "\"/\"", PLAN] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(!message.contains(site.path("").to_str().unwrap()), "the question contains a host path: {message}");
        assert_eq!(answers(site), ["once"]);
    });
}

#[test]
fn an_answer_of_always_allows_later_reads() {
    with_each_client("\"persist\"", Some(&["always"]), |report, site| {
        assert_eq!(text(report, PLAN), "the plan");
        assert_eq!(text(report, OTHER), "another", "without another question");
        assert_eq!((report.questions.len(), answers(site)), (1, vec![json!("always")]));
        let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
        assert!(written.contains("fs = { \"/\" = \"notes\" }"), "{written}");
    });
}

#[test]
fn a_refusal_denies_both_reads() {
    for refusal in ["deny", "decline", "cancel"] {
        with_each_client("true", Some(&[refusal]), |report, site| {
            assert_denied(report, PLAN, DENIED);
            assert_denied(report, OTHER, DENIED);
            assert_eq!(report.questions.len(), 1);
            assert_eq!(answers(site), [refusal]);
        });
    }
}

#[test]
fn a_client_without_elicitation_gets_a_denial() {
    with_each_client("true", None, |report, site| {
        assert_denied(report, PLAN, CANNOT_BE_ASKED);
        assert_denied(report, OTHER, CANNOT_BE_ASKED);
        assert_eq!((report.questions.len(), answers(site).len()), (0, 0));
    });
}
