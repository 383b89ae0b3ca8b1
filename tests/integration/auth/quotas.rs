//! How often callers may come, and when they may come again. Runs the real `belljar` binary with real providers.

use belljar_tests::{Era, KeepAliveConnection, Response};
use serde_json::{Value, json};

use crate::support::site;

/// Requests that exceed the rate of the tests. They need less time than the rate takes to let one more in.
const MANY: usize = 50;

/// The error of an answer: of the protocol, or of a tool's result.
fn error(answer: &Value) -> Option<&Value> {
    answer.pointer("/error/data").or_else(|| answer.pointer("/result/_meta/dev.belljar~1error"))
}

#[test]
fn a_busy_answer_says_when_to_come_again() {
    let site = site(
        "[callers]\nrate = 1\nburst = 2\n[mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/notes\" = \"notes\" }",
    );
    site.write("notes/plan.md", "# The plan\n");
    let server = site.http();
    let list = json!({ "name": "list_resources", "arguments": {} });
    let complete = json!({
        "ref": { "type": "ref/resource", "uri": "belljar://notes/{+path}" },
        "argument": { "name": "path", "value": "p" }
    });
    // An unknown parameter excludes the fast path: rmcp serves this request.
    let by_rmcp = json!({ "ref": complete["ref"], "argument": complete["argument"], "extra": 1 });
    for (method, params) in [("tools/call", list), ("completion/complete", complete), ("completion/complete", by_rmcp)]
    {
        let mut connection = KeepAliveConnection::to(&server);
        let request = server.request(&server.wire(Era::Stateless), &Era::Stateless.message(7, method, params));
        let answers: Vec<Response> = (0..MANY).map(|_| connection.exchange(&request)).collect();
        let busy = answers.iter().find(|answer| error(&answer.json()).is_some());
        let busy = busy.unwrap_or_else(|| panic!("{method}: {MANY} requests, and no refusal"));
        let answer = busy.json();
        let error = error(&answer).unwrap();
        assert_eq!((busy.status, &error["kind"]), (200, &json!("busy")), "{method}: {answer}");
        let pause = error["retryAfterMs"].as_u64().unwrap_or_else(|| panic!("{method}: no time in {answer}"));
        assert!((1..=1000).contains(&pause), "{method}: {answer}");
        assert_eq!(busy.header("retry-after"), Some("1"), "{method}: {:?}", busy.headers);
        assert!(error["hint"].as_str().is_some_and(|hint| hint.starts_with("try again in ")), "{method}: {answer}");
        let served = answers.first().unwrap();
        assert_eq!(served.header("retry-after"), None, "{method}: {}", served.text());
    }
}
