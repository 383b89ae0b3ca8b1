//! Tools and completion through real clients. Each client lists the tools, calls each tool, and completes arguments of
//! templates.
//!
//! Each client is a small program in `tests/clients/`. It gets the request of `programs.rs`, with `calls` (`name`,
//! `arguments`) and `completions` (`template`, `name`, `value`, `known`) in place of `reads`. It prints `protocol`,
//! `capabilities` and `tools`, and for each call and completion, in order, its `result` or its `error`.

use std::process::Command;

use belljar_tests::{Site, places};
use serde_json::{Value, json};

use crate::clients::programs::{Reach, report};

/// The clients: the interpreter, the program, the requested mode, and the protocol version that the client then uses.
const CLIENTS: [(&str, &str, &str, &str); 5] = [
    ("python", "py/tools_2.py", "auto", "2026-07-28"),
    ("python", "py/tools_2.py", "legacy", "2025-11-25"),
    ("node", "node/tools_1.mjs", "", "2025-11-25"),
    ("node", "node/tools_2.mjs", "legacy", "2025-11-25"),
    ("node", "node/tools_2.mjs", "auto", "2026-07-28"),
];

/// A site with three mounts: notes that can be searched, the fixture, and a provider of contents of any size.
fn site() -> Site {
    let site = crate::support::empty();
    site.mount_as("files", "notes.wasm");
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_sized", "sized.wasm");
    site.write("notes/plan.md", "# The plan\n\nOne line.\nAnother, with a needle.\n");
    site.write("notes/data.json", "{\"items\":[{\"name\":\"one\"},{\"name\":\"two\"}]}");
    site.write("notes/bytes.bin", [0, 0xff, 0xfe, 0x80]);
    site.config(
        "list-time = \"60s\"\n[mounts.fixture]\nuri = \"test://\"\n[mounts.notes]\nsearch = true\nfs = { \"/notes\" = \"notes\" }\n",
    );
    site
}

/// The tool calls of each client.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("list_resources", json!({ "limit": 2 })),
        ("list_resources", json!({ "templates": true })),
        ("read_resource", json!({ "uri": "belljar://notes/plan.md", "limit": 10 })),
        ("read_resource", json!({ "uri": "belljar://notes/data.json", "pointer": "/items/1/name" })),
        ("read_resource", json!({ "uri": "belljar://notes/bytes.bin" })),
        ("read_resource", json!({ "uri": "test://static-binary" })),
        ("search_resources", json!({ "query": "plan" })),
        ("search_resources", json!({ "query": "NEEDLE", "content": true })),
        ("read_resource", json!({ "uri": "belljar://notes/absent.md" })),
        ("search_resources", json!({ "query": 5 })),
        ("no_such_tool", json!({})),
    ]
}

/// The completions that each client requests.
fn completions() -> Value {
    json!([
        { "template": "test://template/{id}/data", "name": "id", "value": "12" },
        { "template": "belljar://notes/{+path}", "name": "path", "value": "pl" },
        { "template": "belljar://sized/{kind}/{bytes}", "name": "kind", "value": "" },
        { "template": "belljar://sized/{kind}/{bytes}", "name": "bytes", "value": "", "known": { "kind": "text" } },
        { "template": "belljar://sized/{nope}", "name": "nope", "value": "" },
    ])
}

/// The report of one client. `None` if this machine lacks the client.
fn run(family: &str, script: &str, mode: &str, reach: &Reach<'_>) -> Option<Value> {
    let program = if family == "python" { places::python(2)? } else { places::node()? };
    let mut request = reach.request(mode, &[]);
    let calls: Vec<_> = calls().iter().map(|(name, given)| json!({ "name": name, "arguments": given })).collect();
    request["calls"] = calls.into();
    request["completions"] = completions();
    let mut command = Command::new(program);
    command.arg(places::client_script(script));
    Some(report(command, &request))
}

/// Compares a report with the expected results.
fn check(seen: &Value) {
    assert_eq!(seen["capabilities"], json!(["tools", "completions"]));
    let names: Vec<_> = seen["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_resources", "read_resource", "search_resources", "notes_search"]);
    for tool in seen["tools"].as_array().unwrap() {
        assert_eq!((&tool["annotations"]["readOnlyHint"], &tool["outputSchema"]), (&json!(true), &Value::Null));
    }

    let result = |at: usize| {
        let result = &seen["calls"][at]["result"];
        assert!(result.is_object(), "{}: {}", calls()[at].1, seen["calls"][at]);
        result
    };
    let given = |at: usize| {
        let result = result(at);
        assert_ne!(result["isError"], json!(true), "{result}");
        assert_eq!(result["structuredContent"], Value::Null, "{result}");
        let blocks = result["content"].as_array().unwrap().iter();
        blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let entries = |at: usize| given(at)[0].lines().filter(|line| line.contains("://")).count();
    assert_eq!(entries(0), 2, "{:?}", given(0));
    assert!(given(0)[0].contains("\nnextCursor: "), "{:?}", given(0));
    assert!(given(1)[0].contains("belljar://notes/{+path}"), "{:?}", given(1));
    assert!(given(2)[0].ends_with("To read on, call again with offset = 10."), "{:?}", given(2));
    assert_eq!(given(2)[1], "# The plan");
    assert_eq!(given(3)[1], "two");
    assert!(given(4)[1].contains("binary"), "{:?}", given(4));
    let kinds =
        |at: usize| result(at)["content"].as_array().unwrap().iter().map(|one| &one["type"]).collect::<Vec<_>>();
    assert_eq!(kinds(4), ["text", "text"]);
    assert_eq!(kinds(5), ["text", "text", "image"]);
    assert_eq!(kinds(6), ["text", "resource_link"]);
    assert_eq!(result(6)["content"][1]["uri"], "belljar://notes/plan.md");
    assert!(given(6)[0].contains("\nbelljar://notes/plan.md "), "{:?}", given(6));
    assert!(given(7)[0].contains("\n  in its contents: "), "{:?}", given(7));
    for (at, kind, said) in [(8, "not-found", "resource not found"), (9, "bad-argument", "\"query\"")] {
        assert_eq!(result(at)["isError"], json!(true), "{}", result(at));
        assert_eq!(result(at)["_meta"]["dev.belljar/error"]["kind"], kind);
        assert!(result(at)["content"][0]["text"].as_str().unwrap().contains(said), "{}", result(at));
    }
    assert_eq!(seen["calls"][10]["error"]["code"], -32602, "{}", seen["calls"][10]);

    let values = |at: usize| &seen["completions"][at]["result"]["completion"]["values"];
    assert_eq!(values(0).as_array().map(Vec::len), Some(10), "{}", seen["completions"]);
    assert_eq!(values(1), &json!(["plan.md"]));
    assert_eq!(values(2), &json!(["blob", "text"]));
    assert_eq!(values(3), &json!(["1024", "1048576"]));
    assert_eq!(seen["completions"][4]["error"]["code"], -32602, "{}", seen["completions"]);
}

#[test]
fn every_client_calls_the_tools_and_completes() {
    let site = site();
    let server = site.http();
    for (family, script, mode, protocol) in CLIENTS {
        for reach in [Reach::Stdio(&site), Reach::Http(&server)] {
            // `None`: `cargo xtask test` has already reported that this machine lacks the client.
            if let Some(seen) = run(family, script, mode, &reach) {
                assert_eq!(seen["protocol"], protocol, "{script} {mode}");
                check(&seen);
            }
        }
    }
    assert!(server.stop().status.success());
}
