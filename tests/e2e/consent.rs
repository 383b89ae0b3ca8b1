//! Questions to a person, through the callbacks of the clients that can be asked: over stdio and HTTP, each with every
//! answer.

use belljar_tests::Site;
use serde_json::{Value, json};

use crate::clients::{Asked, Reach, Report, asked};

const PLAN: &str = "belljar://notes/plan.md";
const OTHER: &str = "belljar://notes/other.md";

/// Every client, over both transports.
const CLIENTS: [(Asked, bool); 4] =
    [(Asked::Python, false), (Asked::Python, true), (Asked::Node, false), (Asked::Node, true)];

/// The real provider of files, whose only directory is asked for first.
fn site(ask: &str) -> Site {
    let site = Site::new();
    site.mount_as("files", "notes.wasm");
    site.write("notes/plan.md", "the plan");
    site.write("notes/other.md", "another");
    site.config(&format!(
        "audit = \"audit.jsonl\"\nlist-time = \"60s\"\n[mounts.notes]\nask = {ask}\nfs = {{ \"/\" = {{ path = \"notes\", ask = true }} }}\n"
    ));
    site
}

/// What each client reports that reads both notes and whose person gives these answers.
fn each(ask: &str, answers: Option<&[&str]>, check: impl Fn(&Report, &Site)) {
    for (client, is_http) in CLIENTS {
        let site = site(ask);
        let report = if is_http {
            let server = site.http();
            let report = asked(client, &Reach::Http(&server), &[PLAN, OTHER], answers);
            assert!(server.stop().status.success());
            report
        } else {
            asked(client, &Reach::Stdio(&site), &[PLAN, OTHER], answers)
        };
        // A client that this machine cannot have was told of by set-up.
        if let Some(report) = report {
            assert_eq!(report.protocol, "2026-07-28");
            check(&report, &site);
        }
    }
}

fn text<'a>(report: &'a Report, uri: &str) -> &'a str {
    let seen = &report.reads[uri];
    seen["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{uri}: {seen}"))
}

/// What a client gets that cannot be asked: a code of its own (MCP 2026-07-28, "missing required client capability").
const CANNOT_BE_ASKED: i64 = -32021;

/// What it gets when the person said no.
const DENIED: i64 = -32603;

fn assert_denied(report: &Report, uri: &str, code: i64) {
    let error = &report.reads[uri]["error"];
    assert_eq!(error["code"], code, "{}: {error}", report.client);
    let data = &error["data"];
    let cure = if code == CANNOT_BE_ASKED {
        // The TypeScript client keeps nothing else of such an error's data.
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

/// The answers on record.
fn answers(site: &Site) -> Vec<Value> {
    site.audit().iter().map(|record| record["answered"]["answer"].clone()).filter(|answer| !answer.is_null()).collect()
}

#[test]
fn allowed_once() {
    each("true", Some(&["once"]), |report, site| {
        assert_eq!(text(report, PLAN), "the plan");
        assert_denied(report, OTHER, DENIED);
        let [question] = report.questions.as_slice() else { panic!("one question: {:?}", report.questions) };
        let message = question["message"].as_str().unwrap();
        for part in ["\"notes\"", "sha256:", "the directory", "\"/\"", PLAN] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(!message.contains(site.path("").to_str().unwrap()), "a path of the host: {message}");
        assert_eq!(answers(site), ["once"]);
    });
}

#[test]
fn always_allowed() {
    each("\"persist\"", Some(&["always"]), |report, site| {
        assert_eq!(text(report, PLAN), "the plan");
        assert_eq!(text(report, OTHER), "another", "without another question");
        assert_eq!((report.questions.len(), answers(site)), (1, vec![json!("always")]));
        let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
        assert!(written.contains("fs = { \"/\" = \"notes\" }"), "{written}");
    });
}

#[test]
fn refused() {
    for refusal in ["deny", "decline", "cancel"] {
        each("true", Some(&[refusal]), |report, site| {
            assert_denied(report, PLAN, DENIED);
            assert_denied(report, OTHER, DENIED);
            assert_eq!(report.questions.len(), 1);
            assert_eq!(answers(site), [refusal]);
        });
    }
}

#[test]
fn nobody_to_ask() {
    each("true", None, |report, site| {
        assert_denied(report, PLAN, CANNOT_BE_ASKED);
        assert_denied(report, OTHER, CANNOT_BE_ASKED);
        assert_eq!((report.questions.len(), answers(site).len()), (0, 0));
    });
}
