//! Consent, message by message: which client gets a question, the text of the question, and which answers count. The
//! tests use the real server and the MCP client of this suite. `clients/consent.rs` tests the clients of other
//! projects.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Site, Wire};
use serde_json::{Value, json};

use crate::support::{assert_clean, kind, site, stdout_and_stderr};

/// JSON-RPC's error code "invalid parameters".
const INVALID_PARAMS: i64 = -32602;
/// The error code of MCP 2026-07-28 "missing required client capability".
const MISSING_CAPABILITY: i64 = -32021;

/// A site whose mount `hostile` has the setting `ask = {ask}`, and needs consent for `/notes`. The file `/notes/plan`
/// has the text
/// `the plan`.
pub(super) fn notes(ask: &str) -> Site {
    let site = site(&format!(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = {ask}\nfs = {{ \"/notes\" = {{ path = \"notes\", ask = true }} }}\n"
    ));
    site.write("notes/plan", "the plan");
    site.write("notes/other", "another");
    site
}

/// The URI that makes the hostile guest read these files. `paths` has their guest paths, separated by spaces.
fn need(paths: &str) -> String {
    format!("belljar://hostile/need/{}", paths.replace('/', "%252F").replace(' ', "%2520"))
}

/// The URI that makes the hostile guest read `/notes/plan`.
pub(super) fn plan() -> String {
    need("/notes/plan")
}

/// The `_meta` of a request by a client with these capabilities.
fn meta_with(capabilities: Value) -> Value {
    json!({ "io.modelcontextprotocol/clientCapabilities": capabilities })
}

/// The parameters of a read by a client that supports elicitation.
pub(crate) fn params(uri: &str) -> Value {
    json!({ "uri": uri, "_meta": meta_with(json!({ "elicitation": {} })) })
}

/// The parameters of the same read, with the state of a question and an answer to it.
pub(crate) fn answer(uri: &str, state: &str, answer: Value) -> Value {
    let mut params = params(uri);
    params["requestState"] = json!(state);
    params["inputResponses"] = json!({ "consent": answer });
    params
}

/// An accepted form with this choice.
pub(crate) fn chosen(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "consent": choice } })
}

/// Sends a read with these parameters.
pub(crate) fn ask<W: Wire>(client: &mut Client<W>, params: Value) -> Result<Value, RpcError> {
    client.request("resources/read", params)
}

/// A question: its state, its message, and its choices.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) state: String,
    pub(crate) message: String,
    offered: Vec<String>,
}

/// Parses a question. Panics if the result has any other or further part.
pub(crate) fn question(result: &Value) -> Question {
    let keys = |value: &Value| -> Vec<String> {
        let object = value.as_object().unwrap_or_else(|| panic!("no object: {value} in {result}"));
        let mut keys: Vec<String> = object.keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(result["resultType"], "input_required", "{result}");
    let known = ["_meta", "inputRequests", "requestState", "resultType"];
    assert!(keys(result).iter().all(|key| known.contains(&key.as_str())), "{result}");
    assert_eq!(keys(&result["inputRequests"]), ["consent"]);
    let request = &result["inputRequests"]["consent"];
    assert_eq!(keys(request), ["method", "params"]);
    assert_eq!((&request["method"], &request["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    assert_eq!(keys(&request["params"]), ["message", "mode", "requestedSchema"]);
    let schema = &request["params"]["requestedSchema"];
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["consent"])));
    assert_eq!(keys(&schema["properties"]), ["consent"]);
    let field = &schema["properties"]["consent"];
    assert_eq!(
        (keys(field), &field["type"]),
        (vec!["oneOf".to_owned(), "title".into(), "type".into()], &json!("string"))
    );
    let choices = field["oneOf"].as_array().unwrap();
    choices.iter().for_each(|choice| assert_eq!(keys(choice), ["const", "title"]));
    let message = request["params"]["message"].as_str().unwrap().to_owned();
    assert_clean(&message);
    Question {
        state: result["requestState"].as_str().unwrap_or_else(|| panic!("no state: {result}")).to_owned(),
        message,
        offered: choices.iter().map(|choice| choice["const"].as_str().unwrap().to_owned()).collect(),
    }
}

/// Reads `uri` as a client with elicitation. Asserts that the answer is a question, and returns it.
fn expect_question<W: Wire>(client: &mut Client<W>, uri: &str) -> Question {
    question(&ask(client, params(uri)).unwrap_or_else(|error| panic!("{uri}: no question but {error}")))
}

/// The text of a result with one content.
pub(crate) fn text(result: &Value) -> &str {
    result["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// Asserts that an answer is the ordinary denial, whose hint names the cure. Returns the denial.
pub(crate) fn denial(answer: Result<Value, RpcError>) -> RpcError {
    let error = answer.expect_err("a denial");
    assert_eq!((error.code, kind(&error)), (INTERNAL, "denied"), "{error}");
    let hint = error.data["hint"].as_str().unwrap_or_else(|| panic!("no hint: {error}"));
    assert!(hint.contains("[mounts.hostile]") || hint.contains("belljar grant hostile"), "{hint}");
    error
}

/// Asserts that an answer is the denial for a client of 2026-07-28 without elicitation, which names the required
/// capability. Returns the denial.
pub(crate) fn denial_without_elicitation(answer: Result<Value, RpcError>) -> RpcError {
    let error = answer.expect_err("a denial");
    assert_eq!((error.code, kind(&error)), (MISSING_CAPABILITY, "denied"), "{error}");
    assert_eq!(error.data["requiredCapabilities"], json!({ "elicitation": { "form": {} } }), "{error}");
    assert!(error.data["hint"].as_str().is_some_and(|hint| hint.contains("belljar grant hostile")), "{error}");
    error
}

/// Asserts that belljar refused an answer to a question, with the reason `why`.
fn refused(answer: Result<Value, RpcError>, why: &str) {
    let error = answer.err().unwrap_or_else(|| panic!("belljar accepted the answer; expected the refusal: {why}"));
    assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-state"), "{why}: {error}");
    assert!(error.message.contains(why), "{error}");
    assert_eq!(error.data["hint"], "send the request again, without a request state", "{error}");
    assert_clean(&error.message);
}

#[test]
fn a_question_names_the_mount_the_grant_and_the_read() {
    let site = notes("true");
    let server = site.http();
    let inspected = site.run_json(&["inspect", site.path("plugins/hostile.wasm").to_str().unwrap()]);
    let digest = inspected["digest"].as_str().unwrap();
    let message = |question: Question| {
        assert_eq!(question.offered, ["once", "deny"]);
        question.message
    };
    let uri = plan();
    let expected = format!(
        "belljar: the provider \"hostile\" ({}) wants to read the directory that its operator calls \"/notes\", for the read of \"{uri}\". It holds no grant for that. Allow it?",
        &digest[..7 + 12]
    );
    assert_eq!(message(expect_question(&mut site.stdio(Era::Stateless), &uri)), expected);
    assert_eq!(message(expect_question(&mut server.client(Era::Stateless), &uri)), expected);
}

#[test]
fn an_answer_of_once_allows_one_read() {
    let site = notes("true");
    let mut client = site.stdio(Era::Stateless);
    let question = expect_question(&mut client, &plan());
    let result = ask(&mut client, answer(&plan(), &question.state, chosen("once"))).unwrap();
    assert_eq!((text(&result), &result["resultType"]), ("the plan", &json!("complete")));
    // Within a minute, belljar does not ask again for the same grant, not even for another resource.
    denial(ask(&mut client, params(&plan())));
    denial(ask(&mut client, params(&need("/notes/other"))));
    assert!(client.close().status.success());

    let records: Vec<Value> = site.audit().into_iter().filter(|record| record["mount"] == "hostile").collect();
    let consent = |record: &Value| (record["outcome"].clone(), record["asked"].clone(), record["answered"].clone());
    let notes = json!({ "grant": "fs", "what": "/notes" });
    assert_eq!(consent(&records[0]), (json!("denied"), notes, Value::Null));
    let once = json!({ "grant": "fs", "what": "/notes", "answer": "once" });
    assert_eq!(consent(&records[1]), (json!("ok"), Value::Null, once));
    assert_eq!(consent(&records[2]), (json!("denied"), Value::Null, Value::Null));
    assert_eq!(records[1]["grants"][0]["what"], "/notes");
    assert_eq!(records[1]["caller"]["transport"], "stdio");
    assert!(
        records[1]["caller"]["client"].as_str().unwrap().starts_with("belljar-tests"),
        "the client of the read: {}",
        records[1]
    );
    assert_eq!(records.len(), 4);
}

#[test]
fn a_refusal_gives_the_ordinary_denial_and_ends_the_questions() {
    for (refusal, word) in [
        (chosen("deny"), "deny"),
        (json!({ "action": "decline" }), "decline"),
        (json!({ "action": "cancel" }), "cancel"),
        (json!({ "action": "decline", "content": { "consent": "once" } }), "decline"),
    ] {
        let site = notes("true");
        let mut client = site.stdio(Era::Stateless);
        let ordinary = denial(site.stdio(Era::Session).read(&plan()));
        let question = expect_question(&mut client, &plan());
        let error = denial(ask(&mut client, answer(&plan(), &question.state, refusal)));
        assert_eq!(error, ordinary, "a client without elicitation gets the same denial");
        denial(ask(&mut client, params(&plan())));
        assert!(client.close().status.success());
        let answers =
            site.audit().into_iter().filter_map(|record| Some(record["answered"]["answer"].as_str()?.to_owned()));
        assert_eq!(answers.collect::<Vec<_>>(), [word]);
    }
}

#[test]
fn a_question_that_is_ignored_is_not_asked_again() {
    let site = notes("true");
    let server = site.http();
    expect_question(&mut server.client(Era::Stateless), &plan());
    for _ in 0..5 {
        denial(ask(&mut server.client(Era::Stateless), params(&plan())));
    }
    assert!(server.stop().status.success());
    let questions = site.audit().iter().filter(|record| record["asked"].is_object()).count();
    assert_eq!(questions, 1);
}

/// Clients without elicitation, and mounts without `ask`, get the ordinary denial.
#[test]
fn clients_without_elicitation_are_not_asked_and_mounts_without_ask_do_not_ask() {
    let site = notes("true");
    let mut older = site.stdio(Era::Session);
    denial(older.read(&plan()));
    // belljar never asks a client with a session, even if the client declares the capability of a stateless client.
    let mut claims = answer(&plan(), "anything", chosen("once"));
    claims["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    denial(ask(&mut older, claims));
    let mut client = site.stdio(Era::Stateless);
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } }), json!({ "sampling": {}, "roots": {} })] {
        denial_without_elicitation(ask(&mut client, json!({ "uri": plan(), "_meta": meta_with(capabilities) })));
    }
    let form = json!({ "uri": plan(), "_meta": meta_with(json!({ "elicitation": { "form": {}, "url": {} } })) });
    question(&ask(&mut client, form).unwrap());

    let off = self::site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let mut client = off.stdio(Era::Stateless);
    for uri in [
        &plan(),
        "belljar://hostile/errors/denied/plain",
        "belljar://hostile/reach/https%253A%252F%252Fapi.example%252F",
    ] {
        let error = ask(&mut client, params(uri)).expect_err(uri);
        assert!(["denied", "not-found"].contains(&kind(&error)), "{uri}: {error}");
    }
    assert!(client.close().status.success());
    assert!(off.audit().iter().all(|record| record["asked"].is_null()));
}

/// Only a read asks a question. A listing continues without the missing grant.
#[test]
fn a_listing_asks_no_question() {
    let site = site("[mounts.files]\nask = true\nfs = { \"/\" = { path = \"notes\", ask = true } }\n# files.wasm\n");
    site.write("notes/plan", "the plan");
    let mut client = site.stdio(Era::Stateless);
    let listed = client.request("resources/list", json!({ "_meta": meta_with(json!({ "elicitation": {} })) })).unwrap();
    assert!(listed["inputRequests"].is_null() && listed["resources"].is_array(), "{listed}");
    let question = expect_question(&mut client, "belljar://files/plan");
    let result = ask(&mut client, answer("belljar://files/plan", &question.state, chosen("once"))).unwrap();
    assert_eq!(text(&result), "the plan");
}

#[test]
fn an_answer_counts_once_for_its_own_read() {
    let site = notes("true");
    let (server, elsewhere) = (site.http(), site.http());
    let mut client = server.client(Era::Stateless);
    let state = expect_question(&mut client, &plan()).state;
    let once = |uri: &str, state: &str| answer(uri, state, chosen("once"));

    refused(ask(&mut client, once(&need("/notes/other"), &state)), "was given for another request");
    refused(ask(&mut client, once("belljar://clock/utc", &state)), "was given for another request");
    let mut another = once(&plan(), &state);
    another["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "another", "version": "1" });
    refused(ask(&mut client, another), "was given to another client");
    refused(ask(&mut client, answer(&plan(), &state, chosen("always"))), "did not offer \"always\"");
    let foreign = "was not given by this server since it started, or was changed on its way";
    refused(ask(&mut elsewhere.client(Era::Stateless), once(&plan(), &state)), foreign);
    forge(&mut client, &state);
    let no_state =
        json!({ "uri": plan(), "inputResponses": { "consent": chosen("once") }, "_meta": meta_with(json!({})) });
    refused(ask(&mut client, no_state), "is missing");

    // The unaltered state is accepted, so the alterations were the reason.
    assert_eq!(text(&ask(&mut client, once(&plan(), &state)).unwrap()), "the plan");
    refused(ask(&mut client, once(&plan(), &state)), "was used already");
    refused(ask(&mut client, answer(&plan(), &state, chosen("deny"))), "was used already");
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    let bad =
        site.audit().iter().filter(|record| record["outcome"] == "bad-state" && record["blame"] == "caller").count();
    assert!(bad > 20, "refused answers in the record: {bad}");
}

/// Alters `state` in many ways, and asserts that belljar refuses each altered state.
fn forge<W: Wire>(client: &mut Client<W>, state: &str) {
    let mut altered: Vec<String> = Vec::new();
    for at in (0..state.len()).step_by(11).chain([state.len() - 2]) {
        let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
        altered.push([&state[..at], other, &state[at + 1..]].concat());
    }
    let half = state.len() / 2;
    altered.extend([
        state[..half].to_owned(),
        state[half..].to_owned(),
        format!("{state}{state}"),
        format!("{state}="),
        String::new(),
        "AAAA".to_owned(),
        "\u{0}\u{202e}".to_owned(),
    ]);
    for state in altered {
        refused(ask(client, answer(&plan(), &state, chosen("once"))), "was not given by this server");
    }
    refused(ask(client, answer(&plan(), &"A".repeat(200_000), chosen("once"))), "is longer than any");
}

/// A malformed answer does not use up the question: the client may send another answer.
#[test]
fn the_error_for_a_malformed_answer_names_the_expected_form() {
    let site = notes("true");
    let mut client = site.stdio(Era::Stateless);
    let state = expect_question(&mut client, &plan()).state;
    let mut without = params(&plan());
    without["requestState"] = json!(state);
    let mut other_key = without.clone();
    other_key["inputResponses"] = json!({ "other": chosen("once") });
    // Without an answer, belljar repeats the question each time.
    for missing in [without, other_key] {
        let again = question(&ask(&mut client, missing).unwrap());
        assert_eq!(again.state, state, "the same question");
        assert!(again.message.contains("\"/notes\""), "{}", again.message);
    }
    let mut malformed = Vec::new();
    for content in [
        chosen("yes"),
        chosen(""),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "consent": ["once"] } }),
        json!({ "action": "allow", "content": { "consent": "once" } }),
        json!({}),
        json!("once"),
        Value::Null,
    ] {
        malformed.push(answer(&plan(), &state, content));
    }
    for params in malformed {
        let error = ask(&mut client, params.clone()).err().unwrap_or_else(|| panic!("belljar accepted: {params}"));
        assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-answer"), "{params}: {error}");
        assert!(error.message.contains("expected inputResponses"), "{error}");
    }
    assert_eq!(text(&ask(&mut client, answer(&plan(), &state, chosen("once"))).unwrap()), "the plan");
}

/// belljar asks one question for each grant, one after the other, and at most four.
#[test]
fn a_read_asks_for_each_grant_and_at_most_four() {
    let names = ["a", "b", "c", "d", "e"];
    let fs = names.map(|name| format!("\"/{name}\" = {{ path = \"{name}\", ask = true }}")).join(", ");
    let site = site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = true\nfs = {{ {fs} }}\n"));
    names.iter().for_each(|name| drop(site.write(format!("{name}/file"), name)));
    let mut client = site.stdio(Era::Stateless);
    let all = need("/a/file /b/file /c/file /d/file /e/file");
    let mut result = ask(&mut client, params(&all));
    let mut last = None;
    for name in &names[..4] {
        let question = question(&result.unwrap());
        assert!(question.message.contains(&format!("\"/{name}\"")), "{}", question.message);
        result = ask(&mut client, answer(&all, &question.state, chosen("once")));
        last = Some(question.state);
    }
    denial(result);
    refused(ask(&mut client, answer(&all, &last.unwrap(), chosen("once"))), "was used already");
    // Another read may ask for the remaining grant.
    let question = expect_question(&mut client, &need("/e/file"));
    assert_eq!(text(&ask(&mut client, answer(&need("/e/file"), &question.state, chosen("once"))).unwrap()), "e");
}

/// The state of the question holds the consent; belljar's memory does not. Therefore another read at the same time has
/// no consent.
#[test]
fn consent_for_one_read_does_not_allow_another_read() {
    let site = notes("true");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    let question = expect_question(&mut client, &plan());
    let once = answer(&plan(), &question.state, chosen("once"));
    let others = std::thread::scope(|scope| {
        let read = || {
            let mut other = server.client(Era::Stateless);
            (0..20).map(|_| other.read(&plan())).collect::<Vec<_>>()
        };
        let others: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        assert_eq!(text(&ask(&mut client, once).unwrap()), "the plan");
        others.into_iter().flat_map(|other| other.join().unwrap()).collect::<Vec<_>>()
    });
    others.into_iter().for_each(|other| drop(denial_without_elicitation(other)));
}

#[test]
fn wrong_settings_of_consent_are_refused() {
    for (lines, why) in [
        ("ask = \"always\"", "mounts.hostile.ask = \"always\": expected true, false or \"persist\""),
        ("ask = 1", "mounts.hostile.ask = 1: expected true, false or \"persist\""),
        (
            "ask = true\nfs = { \"/n\" = { path = \"notes\", asks = true } }",
            "unknown key \"mounts.hostile.fs./n.asks\"; did you mean \"ask\"?",
        ),
        (
            "fs = { \"/n\" = { path = \"notes\", ask = true } }",
            "mounts.hostile.fs: an entry has  ask = true  and [mounts.hostile] has not; add  ask = true  to [mounts.hostile]",
        ),
        (
            "ask = true\ncache-scope = \"public\"",
            "mounts.hostile.cache-scope = \"public\": a read that a person allows is for one client only",
        ),
        ("ask = \"persist\"\ncache-scope = \"public\"", "remove  cache-scope  or  ask  from [mounts.hostile]"),
        ("ask = true\nfs = { \"/n\" = { path = \"nowhere\", ask = true } }", "\"nowhere\": it does not exist"),
        ("ask = true\nfs = { \"/n\" = { path = \"plugins\", ask = true } }", "belljar's own"),
    ] {
        let site = site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n{lines}\n"));
        site.write("notes/plan", "");
        let output = site.run(&["check"]);
        assert!(
            !output.status.success() && stdout_and_stderr(&output).contains(why),
            "{lines}: {}",
            stdout_and_stderr(&output)
        );
    }
    let site = notes("true");
    let output = site.run(&["check"]);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert!(stdout_and_stderr(&output).contains("(read-only, asked for first)"), "{}", stdout_and_stderr(&output));
}

/// Runs `belljar read` at a pseudo-terminal with the input `typed`. Returns its exit code, its standard output, and the
/// text on the terminal.
fn read_at_terminal(site: &Site, uri: &str, typed: &str) -> (Option<i32>, String, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let mut master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = site.command(site.arguments(&["read", uri]));
    command.stdin(terminal()).stderr(terminal()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // The terminal buffers the input until belljar reads it.
    master.write_all(typed.as_bytes()).unwrap();
    drop(command);
    let output = child.wait_with_output().unwrap();
    let mut shown = Vec::new();
    // When the last program has closed the terminal, a read fails.
    let _ = master.read_to_end(&mut shown);
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_read_at_a_terminal_asks_at_the_terminal() {
    let site = notes("true");
    let place = site.path("notes").canonicalize().unwrap();
    for yes in ["once\n", "o\n", "YES\n", "what?\n\ny\n"] {
        let (code, printed, shown) = read_at_terminal(&site, &plan(), yes);
        assert_eq!((code, printed.as_str()), (Some(0), "the plan"), "{yes:?}: {shown}");
        assert!(shown.contains("wants to read the directory") && shown.contains("[once, deny]"), "{shown}");
        assert!(shown.contains(&format!("On this machine that is \"{}\".", place.display())), "{shown}");
        assert_eq!(shown.matches("That is not an answer").count(), yes.lines().count() - 1, "{shown}");
    }
    for no in ["deny\n", "no\n", "\nd\n", "always\nn\n", "\u{4}"] {
        let (code, printed, shown) = read_at_terminal(&site, &plan(), no);
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{no:?}: {shown}");
        assert!(shown.contains("denied") && shown.contains("belljar grant hostile --fs /notes"), "{no:?}: {shown}");
    }
    // Without a terminal, belljar does not ask.
    let output = site.run(&["read", &plan()]);
    assert!(
        !output.status.success() && !stdout_and_stderr(&output).contains("Allow it?"),
        "{}",
        stdout_and_stderr(&output)
    );
}

/// The answer "always" writes the same grant as `belljar grant`. The grant takes effect at once and after a restart,
/// and only for the current component.
#[test]
fn an_answer_of_always_writes_a_grant() {
    let config = "[mounts.hostile] # the hostile guest\ncomponent = \"hostile.wasm\"\nask = \"persist\"\n# what it reads\nfs = { \"/notes\" = { path = \"notes\", ask = true } } # mine\n\n[mounts.other]\ncomponent = \"hostile.wasm\"\n";
    let site = site(config);
    let before = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    site.write("notes/plan", "the plan");
    let mut client = site.stdio(Era::Stateless);
    let question = expect_question(&mut client, &plan());
    assert_eq!(question.offered, ["once", "always", "deny"]);
    let result = ask(&mut client, answer(&plan(), &question.state, chosen("always"))).unwrap();
    assert_eq!(text(&result), "the plan");
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    let granted = before.replace("{ path = \"notes\", ask = true }", "\"notes\"");
    assert!(granted != before && written == granted, "comments and order stay: {written}");
    // The grant is for all clients, so belljar asks no client any more.
    assert_eq!(text(&client.read(&plan()).unwrap()), "the plan");
    assert!(client.close().status.success());
    let digest = site.run_json(&["inspect", site.path("plugins/hostile.wasm").to_str().unwrap()])["digest"].clone();
    let lock = std::fs::read_to_string(site.path("belljar.lock")).unwrap();
    assert!(lock.contains("[mounts.hostile]") && lock.contains(digest.as_str().unwrap()), "{lock}");
    assert_eq!(text(&site.stdio(Era::Session).read(&plan()).unwrap()), "the plan", "after a restart");
    let answers: Vec<_> = site.audit().into_iter().filter(|record| record["answered"].is_object()).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["answered"]["answer"], "always");

    // Another component does not have the grant.
    let mut other = std::fs::read(site.path("plugins/hostile.wasm")).unwrap();
    other.extend([0, 2, 1, b'x']);
    site.drop_in("hostile.wasm", other);
    let error = site.stdio(Era::Stateless).read(&plan()).expect_err("the component has changed");
    assert_eq!(kind(&error), "unavailable", "{error}");
    // While a mount is in quarantine, belljar asks no questions for it.
    let error = ask(&mut site.stdio(Era::Stateless), params(&plan())).expect_err("in quarantine");
    assert_eq!(kind(&error), "unavailable", "{error}");
}

/// If belljar cannot write the grant, the answer "always" counts as "once", and the log has the reason.
#[test]
fn always_counts_as_once_if_the_configuration_cannot_be_written() {
    let site = notes("\"persist\"");
    let mut client = site.stdio(Era::Stateless);
    let question = expect_question(&mut client, &plan());
    // Before the answer, the operator replaces `ask = "persist"` by `ask = true`.
    let changed = std::fs::read_to_string(site.path("belljar.toml")).unwrap().replace("\"persist\"", "true");
    std::fs::write(site.path("belljar.toml"), &changed).unwrap();
    let result = ask(&mut client, answer(&plan(), &question.state, chosen("always"))).unwrap();
    assert_eq!(text(&result), "the plan");
    assert_eq!(std::fs::read_to_string(site.path("belljar.toml")).unwrap(), changed);
    denial_without_elicitation(client.read(&plan()));
    let log = client.close().stderr;
    assert!(log.contains("no longer has  ask = \"persist\""), "{log}");
}
