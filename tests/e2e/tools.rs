//! Tools and completion through real clients: each lists the tools, calls each of them, holds what comes back against the
//! schema that it was told (the clients do that by themselves, and fail), and completes templates.
//!
//! Each client is a small program in `clients/`. It gets the request of `clients.rs`, with `calls` (`name`, `arguments`) and
//! `completions` (`template`, `name`, `value`, `known`) in place of `reads`, and prints `protocol`, `capabilities`, `tools`,
//! and for each call and completion, in order, its `result` or the `error` that came instead.

use std::process::Command;
use std::time::Duration;

use belljar_tests::{Site, places, process};
use serde_json::{Value, json};

use crate::clients::Reach;

const PATIENCE: Duration = Duration::from_secs(120);

/// A client: its interpreter's family, its program, what it is asked to speak, and what it then speaks.
const CLIENTS: [(&str, &str, &str, &str); 5] = [
    ("python", "py/tools_2.py", "auto", "2026-07-28"),
    ("python", "py/tools_2.py", "legacy", "2025-11-25"),
    ("node", "node/tools_1.mjs", "", "2025-11-25"),
    ("node", "node/tools_2.mjs", "legacy", "2025-11-25"),
    ("node", "node/tools_2.mjs", "auto", "2026-07-28"),
];

/// Some notes that may be searched, a provider that suggests values, one that does not.
fn site() -> Site {
    let site = Site::new();
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

fn completions() -> Value {
    json!([
        { "template": "test://template/{id}/data", "name": "id", "value": "12" },
        { "template": "belljar://notes/{+path}", "name": "path", "value": "pl" },
        { "template": "belljar://sized/{kind}/{bytes}", "name": "kind", "value": "" },
        { "template": "belljar://sized/{kind}/{bytes}", "name": "bytes", "value": "", "known": { "kind": "text" } },
        { "template": "belljar://sized/{nope}", "name": "nope", "value": "" },
    ])
}

/// What one client saw; `None` if it is not to be had here.
fn run(family: &str, script: &str, mode: &str, reach: &Reach<'_>) -> Option<Value> {
    let program = if family == "python" { places::python(2)? } else { places::node()? };
    let mut request = reach.request(mode, &[]);
    let calls: Vec<_> = calls().iter().map(|(name, given)| json!({ "name": name, "arguments": given })).collect();
    request["calls"] = calls.into();
    request["completions"] = completions();
    let mut command = Command::new(program);
    command.arg(places::client_script(script)).arg(request.to_string());
    let output = process::run(command, PATIENCE);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script} failed with {}:\n{stdout}\n{stderr}", output.status);
    Some(serde_json::from_str(stdout.trim()).unwrap_or_else(|why| panic!("no report ({why}):\n{stdout}\n{stderr}")))
}

fn check(seen: &Value) {
    assert_eq!(seen["capabilities"], json!(["tools", "completions"]));
    let names: Vec<_> = seen["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_resources", "read_resource", "search_resources"]);
    for tool in seen["tools"].as_array().unwrap() {
        assert_eq!(
            (&tool["annotations"]["readOnlyHint"], &tool["outputSchema"]["type"]),
            (&json!(true), &json!("object"))
        );
    }

    let result = |at: usize| {
        let result = &seen["calls"][at]["result"];
        assert!(result.is_object(), "{}: {}", calls()[at].1, seen["calls"][at]);
        result
    };
    let given = |at: usize| {
        assert_ne!(result(at)["isError"], json!(true), "{}", result(at));
        &result(at)["structuredContent"]
    };
    let first = |list: &Value| list[0]["uri"].as_str().unwrap_or_else(|| panic!("{list}")).to_owned();
    assert_eq!(given(0)["resources"].as_array().unwrap().len(), 2);
    assert!(given(0)["nextCursor"].is_string());
    assert!(given(1)["templates"].to_string().contains("belljar://notes/{+path}"), "{}", given(1));
    assert_eq!((&given(2)["contents"][0]["text"], &given(2)["nextOffset"]), (&json!("# The plan"), &json!(10)));
    assert_eq!(given(3)["contents"][0]["text"], "two");
    assert_eq!(given(4)["contents"][0]["kind"], "binary");
    let kinds =
        |at: usize| result(at)["content"].as_array().unwrap().iter().map(|one| &one["type"]).collect::<Vec<_>>();
    assert_eq!(kinds(4), ["text", "text", "resource_link"]);
    assert_eq!(kinds(5), ["text", "text", "image", "resource_link"]);
    assert_eq!(first(&given(6)["matches"]), "belljar://notes/plan.md");
    assert_eq!(
        (first(&given(7)["matches"]), &given(7)["matches"][0]["matchedIn"]),
        ("belljar://notes/plan.md".to_owned(), &json!("contents"))
    );
    for (at, kind) in [(8, "not-found"), (9, "bad-argument")] {
        assert_eq!(result(at)["isError"], json!(true), "{}", result(at));
        assert_eq!(result(at)["structuredContent"]["error"]["kind"], kind);
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
            // A client that this machine cannot have was told of by set-up.
            if let Some(seen) = run(family, script, mode, &reach) {
                assert_eq!(seen["protocol"], protocol, "{script} {mode}");
                check(&seen);
            }
        }
    }
    assert!(server.stop().status.success());
}
