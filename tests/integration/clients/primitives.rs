//! Tools, prompts, questions, progress and skills through real clients.
//!
//! Each client is a small program in `tests/clients/`. It gets the request of `programs.rs`, with these keys in place of
//! `reads`: `calls` and `prompts` (`name`, `arguments`), `completions` (`prompt`, `name`, `value`), `slow` (a tool that reports
//! its progress), and `answers` (for the message of each question: `action`, `content`).
//!
//! It prints `protocol`, `capabilities`, `listed_tools` and `listed_prompts`; for each call, prompt and completion, in order, its
//! `result` or its `error`; the same for `slow`, with `progress`; and `questions`, the parameters of each `elicitation/create`.
//! Clients that know skills add `skills`.
//!
//! The Inspector asks no questions and shows no progress. It is run once for each request.

use std::process::Command;

use belljar_tests::{Server, Site, places};
use serde_json::{Value, json};

use crate::clients::programs::{Inspector, Reach, report};

/// The clients: the interpreter, the program, the requested mode, and the protocol version that the client then uses.
const CLIENTS: [(&str, &str, &str, &str); 8] = [
    ("python 1", "py/primitives_1.py", "", "2025-11-25"),
    ("python 2", "py/primitives_2.py", "auto", "2026-07-28"),
    ("python 2", "py/primitives_2.py", "legacy", "2025-11-25"),
    ("python 2", "py/primitives_fastmcp.py", "auto", "2026-07-28"),
    ("python 2", "py/primitives_fastmcp.py", "legacy", "2025-11-25"),
    ("node", "node/primitives_1.mjs", "", "2025-11-25"),
    ("node", "node/primitives_2.mjs", "legacy", "2025-11-25"),
    ("node", "node/primitives_2.mjs", "auto", "2026-07-28"),
];

/// The skill of the guest, and its files.
const SKILL: &str = "skill://primitives/skills/greeting/SKILL.md";
const SKILL_FILES: [&str; 2] = [SKILL, "skill://primitives/skills/greeting/words/english.md"];

/// A question of the guest as clients see it: the host says whose question it is.
fn question(message: &str) -> String {
    format!("primitives: the provider says: {message}")
}

/// A site with the guest of the conformance suites.
fn site() -> Site {
    let site = crate::support::empty();
    site.mount_as("guest_primitives", "primitives.wasm");
    site.config("list-time = \"60s\"\n[mounts.primitives]\ntool-prefix = \"\"\n");
    site
}

/// The tool calls of each client, by their place in the report.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("test_simple_text", json!({})),
        ("test_view", json!({ "to": 3 })),
        ("test_image_content", json!({})),
        ("test_audio_content", json!({})),
        ("test_embedded_resource", json!({})),
        ("test_input_required_result_elicitation", json!({})),
        ("test_input_required_result_multi_round", json!({})),
        // Clients of 2026-07-28 also send this argument as a header.
        ("test_custom_header", json!({ "region": "eu" })),
        ("test_error_handling", json!({})),
        ("test_view", json!({ "to": 99 })),
        ("no_such_tool", json!({})),
    ]
}

/// The prompts that each client gets, by their place in the report.
fn prompts() -> Vec<(&'static str, Value)> {
    vec![
        ("test_prompt_with_arguments", json!({ "arg1": "a", "arg2": "b" })),
        ("test_input_required_result_prompt", json!({})),
        ("test_prompt_with_arguments", json!({ "arg1": "a" })),
        ("no_such_prompt", json!({})),
    ]
}

/// The report of one client. `None` if this machine lacks the client.
fn run(family: &str, script: &str, mode: &str, reach: &Reach<'_>) -> Option<Value> {
    let program = match family {
        "python 1" => places::python(1)?,
        "python 2" => places::python(2)?,
        _ => places::node()?,
    };
    let named = |all: Vec<(&str, Value)>| -> Value {
        all.iter().map(|(name, given)| json!({ "name": name, "arguments": given })).collect()
    };
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let mut request = reach.request(mode, &[]);
    request["calls"] = named(calls());
    request["prompts"] = named(prompts());
    request["completions"] = json!([{ "prompt": "test_prompt_with_arguments", "name": "arg1", "value": "par" }]);
    request["slow"] = "test_tool_with_progress".into();
    request["answers"] = json!({
        question("What is your name?"): accept(json!({ "name": "Ada" })),
        question("Step 1: What is your name?"): accept(json!({ "name": "Ada" })),
        question("Step 2: What is your favorite color?"): accept(json!({ "color": "blue" })),
        question("What context should the prompt use?"): accept(json!({ "context": "a test" })),
    });
    let mut command = Command::new(program);
    command.arg(places::client_script(script));
    Some(report(command, &request))
}

/// Compares the report of `client` with the expected results.
fn check(client: &str, seen: &Value) {
    assert_eq!(seen["capabilities"], json!(["tools", "prompts", "completions"]), "{client}");
    check_lists(&seen["listed_tools"], &seen["listed_prompts"]);

    let result = |at: usize| {
        let result = &seen["calls"][at]["result"];
        assert!(result.is_object(), "{client}: {}: {}", calls()[at].0, seen["calls"][at]);
        result
    };
    let text = |at: usize| result(at)["content"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(text(0), "This is a simple text response for testing.");
    assert_eq!(text(1), "The numbers are [1, 2, 3].");
    assert_eq!(result(1)["structuredContent"], json!({ "numbers": [1, 2, 3] }));
    for (at, kind, mime_type) in [(2, "image", "image/png"), (3, "audio", "audio/wav")] {
        let block = &result(at)["content"][0];
        assert_eq!((&block["type"], &block["mimeType"]), (&json!(kind), &json!(mime_type)), "{block}");
        assert!(block["data"].as_str().is_some_and(|data| data.len() > 20), "{block}");
    }
    let embedded = &result(4)["content"][0]["resource"];
    assert_eq!(embedded["uri"], "belljar://primitives/embedded-resource", "{embedded}");
    assert_eq!(embedded["text"], "This is an embedded resource content.", "{embedded}");
    assert_eq!(text(5), "Hello, Ada!");
    assert_eq!(text(6), "Ada likes blue.");
    assert_eq!(text(7), "The region is eu.");
    for at in 0..8 {
        assert_ne!(result(at)["isError"], json!(true), "{}", result(at));
    }
    assert_eq!(
        (&result(8)["isError"], text(8)),
        (&json!(true), "This tool intentionally returns an error for testing")
    );
    assert_eq!(result(9)["isError"], json!(true), "{}", result(9));
    assert!(text(9).contains("\"/to\"") && text(9).contains("10"), "{}", result(9));
    assert_eq!(seen["calls"][10]["error"]["code"], -32602, "{}", seen["calls"][10]);

    let message = |at: usize| &seen["prompts"][at]["result"]["messages"][0];
    let said = |text: &str| json!({ "role": "user", "content": { "type": "text", "text": text } });
    assert_eq!(message(0), &said("Prompt with arguments: arg1='a', arg2='b'"), "{}", seen["prompts"][0]);
    assert_eq!(message(1), &said("Consider this context: a test"), "{}", seen["prompts"][1]);
    let missing = &seen["prompts"][2]["error"];
    assert_eq!(missing["code"], -32602, "{}", seen["prompts"][2]);
    assert!(missing["message"].as_str().unwrap().contains("\"arg2\""), "{missing}");
    assert_eq!(seen["prompts"][3]["error"]["code"], -32602, "{}", seen["prompts"][3]);
    let completed = &seen["completions"][0]["result"]["completion"];
    assert_eq!(completed["values"], json!(["paris", "park", "party"]), "{}", seen["completions"]);

    let asked: Vec<_> = seen["questions"].as_array().unwrap().iter().map(|one| one["message"].clone()).collect();
    let expected = [
        "What is your name?",
        "Step 1: What is your name?",
        "Step 2: What is your favorite color?",
        "What context should the prompt use?",
    ];
    assert_eq!(asked, expected.map(|message| json!(question(message))), "{client}");
    for one in seen["questions"].as_array().unwrap() {
        assert_eq!(one["requestedSchema"]["type"], "object", "{one}");
    }
    assert_eq!(seen["slow"]["result"]["content"][0]["text"], "The work is done.", "{}", seen["slow"]);
    let progress: Vec<_> = seen["progress"].as_array().unwrap().iter().map(|one| one[0].as_f64().unwrap()).collect();
    // The SDKs in TypeScript drop a report that arrives together with the response: they forget the request first.
    let least = if client.starts_with("node/") { 1 } else { 3 };
    assert!(progress.len() >= least && [0.0, 50.0, 100.0].starts_with(&progress), "{client}: {progress:?}");
    assert!(seen["progress"].as_array().unwrap().iter().all(|one| one[1].as_f64() == Some(100.0)), "{seen}");
}

/// Compares the lists of tools and prompts with those of the guest.
fn check_lists(tools: &Value, prompts: &Value) {
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let listed = names(tools);
    assert_eq!(listed.len(), 3 + 23, "{listed:?}");
    for (name, _) in calls().iter().filter(|(name, _)| *name != "no_such_tool") {
        assert!(listed.iter().any(|one| one == name), "{name}: {listed:?}");
    }
    let view = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "test_view").unwrap();
    assert_eq!(view["inputSchema"]["required"], json!(["to"]), "{view}");
    assert_eq!(view["outputSchema"]["required"], json!(["numbers"]), "{view}");
    assert_eq!(view["annotations"]["readOnlyHint"], true, "{view}");
    assert_eq!(
        names(prompts),
        [
            "test_input_required_result_prompt",
            "test_prompt_with_arguments",
            "test_prompt_with_embedded_resource",
            "test_prompt_with_image",
            "test_simple_prompt",
        ]
    );
}

/// Checks the skills as the TypeScript client saw them. The client itself compared digests, sizes and frontmatter.
fn check_skills_of_typescript(seen: &Value) {
    assert_eq!((&seen["supported"], &seen["directory_read"]), (&json!(true), &json!(true)));
    let [skill] = seen["skills"].as_array().unwrap().as_slice() else { panic!("one skill: {}", seen["skills"]) };
    assert_eq!((&skill["listed"]["uri"], &skill["listed"]), (&json!(SKILL), &skill["got"]));
    let files = skill["files"].as_array().unwrap();
    let uris: Vec<_> = files.iter().map(|file| file["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, SKILL_FILES);
    assert!(files.iter().all(|file| file["verified"] == true && file["mimeType"] == "text/markdown"), "{files:?}");
    assert_eq!(files[0]["frontmatter"]["name"], "greeting", "{}", files[0]);
    let base = SKILL.strip_suffix("/SKILL.md").unwrap();
    let words = format!("{base}/words");
    assert_eq!(skill["directories"], json!({ base: [SKILL, words], words.as_str(): [SKILL_FILES[1]] }));
}

/// Checks the skills as FastMCP saw them. The client itself compared digests, sizes and frontmatter. It reads skills only at
/// 2026-07-28.
fn check_skills_of_fastmcp(seen: &Value, protocol: &str) {
    if protocol == "2025-11-25" {
        return assert_eq!(seen["skills"], json!([]));
    }
    let [skill] = seen["skills"].as_array().unwrap().as_slice() else { panic!("one skill: {}", seen["skills"]) };
    assert_eq!(skill["listed"]["uri"], SKILL, "{skill}");
    assert_eq!(skill["files"], json!(["SKILL.md", "words/english.md"]), "{skill}");
}

#[test]
fn every_client_calls_asks_prompts_and_completes() {
    let site = site();
    let server = site.http();
    for (family, script, mode, protocol) in CLIENTS {
        for reach in [Reach::Stdio(&site), Reach::Http(&server)] {
            // `None`: `cargo xtask test` has already reported that this machine lacks the client.
            let Some(seen) = run(family, script, mode, &reach) else { continue };
            assert_eq!(seen["protocol"], protocol, "{script} {mode}");
            check(&format!("{script} {mode}"), &seen);
            match script {
                "node/primitives_2.mjs" => check_skills_of_typescript(&seen),
                "py/primitives_fastmcp.py" => check_skills_of_fastmcp(&seen, protocol),
                _ => assert_eq!(seen["skills"], Value::Null),
            }
        }
    }
    assert!(server.stop().status.success());
}

/// Runs the command line of the Inspector over each transport and era.
fn with_the_inspector(check: impl Fn(&Inspector)) {
    let site = site();
    let server: Server = site.http();
    for era in ["modern", "legacy"] {
        for reach in [Reach::Stdio(&site), Reach::Http(&server)] {
            if let Some(inspector) = Inspector::new(&reach, era) {
                check(&inspector);
            }
        }
    }
    assert!(server.stop().status.success());
}

#[test]
fn the_inspector_lists_and_calls_tools_and_prompts() {
    with_the_inspector(|inspector| {
        // `--strict` fails if a schema is one that clients cannot use.
        let tools = inspector.ask("tools/list", &["--strict"]).unwrap();
        let prompts = inspector.ask("prompts/list", &[]).unwrap();
        check_lists(&tools["tools"], &prompts["prompts"]);
        let called = inspector.ask("tools/call", &["--tool-name", "test_view", "--tool-arg", "to=3"]).unwrap();
        assert_eq!(called["structuredContent"], json!({ "numbers": [1, 2, 3] }), "{called}");
        let arguments = ["--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=a", "arg2=b"];
        let got = inspector.ask("prompts/get", &arguments).unwrap();
        assert_eq!(got["messages"][0]["content"]["text"], "Prompt with arguments: arg1='a', arg2='b'", "{got}");
    });
}

#[test]
fn the_inspector_verifies_skills_and_finds_views() {
    with_the_inspector(|inspector| {
        let report = inspector.lines("skills/list", &["--verify"]);
        let [skill] = report.as_slice() else { panic!("one skill: {report:?}") };
        assert_eq!((&skill["uri"], &skill["outcome"]), (&json!(SKILL), &json!("verified")), "{skill}");
        assert_eq!((&skill["conformance"], &skill["frontmatter"]), (&json!([]), &json!([])), "{skill}");
        let files: Vec<_> = skill["files"].as_array().unwrap().iter().map(|file| &file["uri"]).collect();
        assert_eq!(files, SKILL_FILES);

        let app = inspector.lines("tools/call", &["--tool-name", "test_view", "--app-info"]);
        let expected = json!({
            "hasApp": true,
            "toolName": "test_view",
            "resourceUri": "ui://primitives/view.html",
            "visibility": ["model", "app"],
            "resourceMimeType": "text/html;profile=mcp-app",
        });
        assert_eq!(app, [json!({ "appInfo": expected })]);
    });
}
