//! `belljar tools`, `call`, `prompts` and `prompt`: their output, their arguments, and their exit codes. The tests run the
//! real commands with the guest of the conformance suites; one test has a terminal.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use belljar_tests::Site;
use serde_json::{Value, json};

use crate::support::{empty, stdout_and_stderr};

/// A site with the mount `kit`, which has tools and prompts, and with `rules`.
fn site(rules: &str) -> Site {
    let site = empty();
    site.mount("clock");
    site.mount_as("guest_primitives", "kit.wasm");
    site.config(&format!("audit = \"audit.jsonl\"\nlist-time = \"60s\"\n{rules}\n[limits]\ntime = \"60s\"\n"));
    site
}

/// The standard output of a command, which must end with this code, and its standard error.
fn run(site: &Site, code: i32, words: &[&str]) -> (String, String) {
    let output = site.run(words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stdout_and_stderr(&output));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn tools_and_prompts_are_listed_with_their_arguments() {
    let site = site("");
    let (text, _) = run(&site, 0, &["tools"]);
    assert!(text.contains("kit_test_simple_text  read-only  (mount \"kit\")\n  Returns a text.\n"), "{text}");
    assert!(text.contains("--to INTEGER  Up to which number to count  (required)"), "{text}");
    let listed = site.run_json(&["tools", "--mount", "kit"]);
    assert!(names(&listed["tools"]).contains(&"kit_test_view"), "{listed}");
    assert!(listed["tools"].as_array().unwrap().iter().all(|tool| tool["readOnly"] == json!(true)), "{listed}");
    let listed = site.run_json(&["prompts"]);
    assert!(names(&listed["prompts"]).contains(&"kit_test_prompt_with_arguments"), "{listed}");
    let (text, _) = run(&site, 0, &["prompts"]);
    assert!(text.contains("--arg1 TEXT  The first argument  (required)"), "{text}");
    // A mount without tools, and a mount that does not exist.
    let (_, error) = run(&site, 1, &["tools", "--mount", "clock"]);
    assert!(error.contains("the provider of the mount \"clock\" has no tools"), "{error}");
    let (_, error) = run(&site, 1, &["prompts", "--mount", "none"]);
    assert!(error.contains("there is no mount \"none\""), "{error}");
}

#[test]
fn hints_follow_from_the_grants_of_the_mount() {
    for (methods, read_only) in [(r#"["GET"]"#, true), (r#"["GET", "POST"]"#, false)] {
        let site = site(&format!(
            "[[mounts.kit.http]]\norigin = \"https://api.example\"\nmethods = {methods}\npaths = [\"/*\"]\n"
        ));
        let listed = site.run_json(&["tools"]);
        for tool in listed["tools"].as_array().unwrap() {
            assert_eq!((&tool["readOnly"], &tool["openWorld"]), (&json!(read_only), &json!(true)), "{tool}");
        }
    }
}

#[test]
fn a_tool_is_called_with_flags_or_with_json() {
    let site = site("");
    let text = "This is a simple text response for testing.\n";
    assert_eq!(run(&site, 0, &["call", "kit_test_simple_text"]).0, text);
    let numbers = "The numbers are [1, 2, 3].\n";
    assert_eq!(run(&site, 0, &["call", "kit_test_view", "--to", "3"]).0, numbers);
    assert_eq!(run(&site, 0, &["call", "kit_test_view", "{\"to\": 3}"]).0, numbers);
    let (json, _) = run(&site, 0, &["call", "--json", "kit_test_view", "--to=2"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["structuredContent"], json!({ "numbers": [1, 2] }));
    assert_eq!(
        (&json["tool"], &json["mount"], &json["isError"]),
        (&json!("kit_test_view"), &json!("kit"), &json!(false))
    );
    let (help, _) = run(&site, 0, &["call", "kit_test_view", "--help"]);
    assert!(help.contains("--to INTEGER  Up to which number to count  (required)"), "{help}");
    let calls = site.records("audit.jsonl");
    let calls = calls.iter().filter(|record| record["operation"] == "call-tool" && record["reference"] == "test_view");
    assert_eq!(calls.count(), 3, "the help makes no call");
}

#[test]
fn wrong_words_are_misuse_and_make_no_call() {
    let site = site("");
    for (words, code, why) in [
        (&["call", "kit_test_view"][..], 2, "\"to\""),
        (&["call", "kit_test_view", "--to", "many"], 2, "--to \"many\": expected a whole number"),
        (&["call", "kit_test_view", "--to", "11"], 2, "10"),
        (&["call", "kit_test_view", "--too", "3"], 2, "did you mean \"--to\"?"),
        (&["call", "kit_test_view", "--json"], 2, "the flags of belljar itself stand before the name"),
        (&["call", "kit_test_veiw"], 1, "did you mean \"kit_test_view\"?"),
        (&["call", "nothing_at_all"], 1, "there is no tool \"nothing_at_all\"; to list the tools, run: "),
        (&["call", "--jsno"], 2, "\"--jsno\" is no flag of this command"),
        (&["call"], 2, "NAME"),
        (&["prompt", "kit_test_prompt_with_arguments", "--arg1", "x"], 2, "\"arg2\""),
        (&["prompt", "kit_test_simple_prompt", "{\"a\": 1}"], 2, "the argument \"a\" is not a text"),
        (&["prompt", "kit_test_simple"], 1, "there is no prompt \"kit_test_simple\""),
    ] {
        let (_, error) = run(&site, code, words);
        assert!(error.contains(why), "{words:?}: {error}");
    }
    let is_call = |record: &&Value| record["operation"] == "call-tool" && record["outcome"] == "ok";
    assert_eq!(site.records("audit.jsonl").iter().find(is_call), None);
}

#[test]
fn a_failed_tool_has_the_exit_code_1_and_its_text_on_standard_error() {
    let site = site("");
    let (out, error) = run(&site, 1, &["call", "kit_test_error_handling"]);
    assert_eq!(out, "");
    assert!(error.contains("This tool intentionally returns an error for testing"), "{error}");
    let (json, _) = run(&site, 1, &["call", "--json", "kit_test_error_handling"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["isError"], json!(true));
}

#[test]
fn a_picture_is_written_to_a_file() {
    let site = site("");
    let (out, _) = run(&site, 0, &["call", "kit_test_image_content"]);
    assert!(out.starts_with("(a picture: image/png, ") && out.contains("write --output FILE before the name"), "{out}");
    let path = site.path("picture.png");
    run(&site, 0, &["call", "--output", path.to_str().unwrap(), "kit_test_image_content"]);
    assert!(fs::read(&path).unwrap().starts_with(b"\x89PNG"));
    let (_, error) = run(&site, 1, &["call", "--output", path.to_str().unwrap(), "kit_test_simple_text"]);
    assert!(error.contains("the result has 0 pictures, sounds and binary resources"), "{error}");
}

#[test]
fn a_prompt_is_printed_as_its_messages() {
    let site = site("");
    assert_eq!(run(&site, 0, &["prompt", "kit_test_simple_prompt"]).0, "This is a simple prompt for testing.\n");
    let (out, _) = run(&site, 0, &["prompt", "kit_test_prompt_with_arguments", "--arg1", "a b", "--arg2=c"]);
    assert_eq!(out, "Prompt with arguments: arg1='a b', arg2='c'\n");
    let (out, _) = run(&site, 0, &["prompt", "kit_test_prompt_with_image"]);
    assert!(out.contains("==> user <==\nPlease analyze the image above.\n"), "{out}");
    let (json, _) = run(&site, 0, &["prompt", "--json", "kit_test_simple_prompt"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["messages"][0]["role"], json!("user"));
}

/// What a command shows on a terminal of its own, where somebody types `typed`. The command must succeed.
fn at_a_terminal(site: &Site, words: &[&str], typed: &str) -> String {
    let belljar = site.command(site.arguments(words));
    let line = std::iter::once(belljar.get_program()).chain(belljar.get_args());
    let line: Vec<String> = line.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).env_clear().envs(site.environment());
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(site.path(""));
    let mut child = script.spawn().expect("start `script`, of util-linux");
    child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = stdout_and_stderr(&output).replace('\r', "");
    assert!(output.status.success(), "{words:?}: {shown}");
    shown
}

#[test]
fn questions_are_asked_at_a_terminal_field_by_field() {
    let site = site("");
    let shown = at_a_terminal(&site, &["call", "kit_test_input_required_result_multi_round"], "Ada\nred\n");
    assert!(shown.contains("kit: the provider says: Step 1: What is your name?\n"), "{shown}");
    assert!(shown.contains("kit: the provider says: Step 2: What is your favorite color?\n"), "{shown}");
    assert!(shown.ends_with("Ada likes red.\n"), "{shown}");
    // Age, name, score, status, verified: a default, a text, a wrong number and a right one, a default, a boolean.
    let tool = "kit_test_elicitation_sep1034_defaults";
    let shown = at_a_terminal(&site, &["call", tool], "\nx\nhigh\n31\n\nno\n");
    assert!(shown.contains("That is not an answer: expected a number such as 0.5."), "{shown}");
    let content = r#"{"age":30,"name":"x","score":31,"status":"active","verified":false}"#;
    assert!(shown.contains(content), "{shown}");
    let shown = at_a_terminal(&site, &["prompt", "kit_test_input_required_result_prompt"], "a test\n");
    assert!(shown.ends_with("Consider this context: a test\n"), "{shown}");
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let site = site("");
    let (out, error) = run(&site, 1, &["call", "kit_test_streaming_elicitation"]);
    assert_eq!(out, "");
    assert!(error.contains("nobody could be asked: standard input or standard error is no terminal"), "{error}");
}

#[test]
fn rules_hold_at_the_command_line_and_can_explains_them() {
    let rules = r#"
[[allow]]
who = { user = "local" }

[[deny]]
who = { user = "local" }
what = "belljar://kit/skills/**"
do = ["read"]
"#;
    let site = site(rules);
    assert_eq!(site.run_json(&["tools"])["tools"], json!([]));
    let (_, error) = run(&site, 1, &["call", "kit_test_simple_text"]);
    assert!(error.contains("there is no tool \"kit_test_simple_text\""), "{error}");
    assert!(error.contains("the rules hold for you, too"), "{error}");
    for name in ["kit_test_simple_text", "belljar://kit/test_simple_text"] {
        let (told, _) = run(&site, 1, &["can", "local", "call", name]);
        assert!(told.starts_with(&format!("no: local may not call \"{name}\" (mount \"kit\")")), "{told}");
        assert!(told.contains("a part of it is denied for reading by") && told.contains("[[deny]] 1"), "{told}");
    }
    let (told, _) = run(&site, 1, &["can", "local", "prompt", "kit_test_simple_prompt", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["reason"], json!("denied-part"));
    assert!(run(&site, 0, &["can", "local", "read", "belljar://kit/view.html"]).0.starts_with("yes"));
}

#[test]
fn check_shows_the_names_and_warns_of_equal_ones() {
    let site =
        site("[mounts.kit]\ntool-prefix = \"k\"\n\n[mounts.other]\ncomponent = \"kit.wasm\"\ntool-prefix = \"k\"\n");
    let (text, _) = run(&site, 0, &["check"]);
    assert!(text.contains("serves   tools and prompts, named k_..."), "{text}");
    assert!(text.contains("both have the tool-prefix \"k\""), "{text}");
    let listed = site.run_json(&["tools"]);
    let notices = listed["notices"].as_array().unwrap();
    assert!(!notices.is_empty() && notices.iter().all(|one| one["mount"] == "other"), "{listed}");
    assert!(names(&listed["tools"]).iter().all(|name| name.starts_with("k_")));
}
