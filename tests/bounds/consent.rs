//! Questions, byte by byte: who is asked, what a question says, and which answers count. What real clients make of it is
//! tested in `e2e`.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Site, Wire};
use serde_json::{Value, json};

use crate::place::{assert_clean, kind, said, site};

const INVALID_PARAMS: i64 = -32602;
const MISSING_CAPABILITY: i64 = -32021;

/// The mount `imp` may ask, and holds `/notes`, for which it must, with the file `plan`, whose text is `the plan`.
fn notes(ask: &str) -> Site {
    let site = site(&format!(
        "[mounts.imp]\ncomponent = \"imp.wasm\"\nask = {ask}\nfs = {{ \"/notes\" = {{ path = \"notes\", ask = true }} }}\n"
    ));
    site.write("notes/plan", "the plan");
    site.write("notes/other", "another");
    site
}

/// The URI at which the imp reads files of the directories that it is given.
fn need(paths: &str) -> String {
    format!("belljar://imp/need/{}", paths.replace('/', "%252F").replace(' ', "%2520"))
}

fn plan() -> String {
    need("/notes/plan")
}

/// A client's capabilities, as a request carries them.
fn able(capabilities: Value) -> Value {
    json!({ "io.modelcontextprotocol/clientCapabilities": capabilities })
}

/// The parameters of a read by a client that can be asked.
pub(crate) fn params(uri: &str) -> Value {
    json!({ "uri": uri, "_meta": able(json!({ "elicitation": {} })) })
}

/// The same with an answer to a question.
pub(crate) fn answer(uri: &str, state: &str, answer: Value) -> Value {
    let mut params = params(uri);
    params["requestState"] = json!(state);
    params["inputResponses"] = json!({ "consent": answer });
    params
}

/// Accepted with this choice.
pub(crate) fn chosen(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "consent": choice } })
}

pub(crate) fn ask<W: Wire>(client: &mut Client<W>, params: Value) -> Result<Value, RpcError> {
    client.request("resources/read", params)
}

/// A question: its state, its message, and what is offered.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) state: String,
    pub(crate) message: String,
    offered: Vec<String>,
}

/// Takes a question apart; anything else, or anything more, is a failure.
pub(crate) fn question(result: &Value) -> Question {
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().unwrap_or_else(|| panic!("no object: {value} in {result}")).keys().cloned().collect()
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

/// Reads `uri` as one who can be asked, and is.
fn asked<W: Wire>(client: &mut Client<W>, uri: &str) -> Question {
    question(&ask(client, params(uri)).unwrap_or_else(|error| panic!("{uri}: no question but {error}")))
}

/// The one text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// The ordinary denial, with its cure.
pub(crate) fn denial(answer: Result<Value, RpcError>) -> RpcError {
    let error = answer.expect_err("a denial");
    assert_eq!((error.code, kind(&error)), (INTERNAL, "denied"), "{error}");
    let hint = error.data["hint"].as_str().unwrap_or_else(|| panic!("no hint: {error}"));
    assert!(hint.contains("[mounts.imp]") || hint.contains("belljar grant imp"), "{hint}");
    error
}

/// The denial of a client of 2026-07-28 that cannot be asked: it says what it would take.
pub(crate) fn unasked(answer: Result<Value, RpcError>) -> RpcError {
    let error = answer.expect_err("a denial");
    assert_eq!((error.code, kind(&error)), (MISSING_CAPABILITY, "denied"), "{error}");
    assert_eq!(error.data["requiredCapabilities"], json!({ "elicitation": { "form": {} } }), "{error}");
    assert!(error.data["hint"].as_str().is_some_and(|hint| hint.contains("belljar grant imp")), "{error}");
    error
}

/// An answer that does not count.
fn refused(answer: Result<Value, RpcError>, why: &str) {
    let error = answer.err().unwrap_or_else(|| panic!("it counts: {why}"));
    assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-state"), "{why}: {error}");
    assert!(error.message.contains(why), "{error}");
    assert_eq!(error.data["hint"], "read again, without a request state", "{error}");
    assert_clean(&error.message);
}

#[test]
fn a_question_says_who_wants_what_for_which_read() {
    let site = notes("true");
    let server = site.http();
    let inspected = site.run_json(&["inspect", site.path("plugins/imp.wasm").to_str().unwrap()]);
    let digest = inspected["digest"].as_str().unwrap();
    let message = |question: Question| {
        assert_eq!(question.offered, ["once", "deny"]);
        question.message
    };
    let uri = plan();
    let expected = format!(
        "belljar: the provider \"imp\" ({}) wants to read the directory that its operator calls \"/notes\", for the read of \"{uri}\". It holds no grant for that. Allow it?",
        &digest[..7 + 12]
    );
    assert_eq!(message(asked(&mut site.stdio(Era::Modern), &uri)), expected);
    assert_eq!(message(asked(&mut server.client(Era::Modern), &uri)), expected);
}

#[test]
fn once_is_for_this_read_and_no_other() {
    let site = notes("true");
    let mut client = site.stdio(Era::Modern);
    let question = asked(&mut client, &plan());
    let result = ask(&mut client, answer(&plan(), &question.state, chosen("once"))).unwrap();
    assert_eq!((text(&result), &result["resultType"]), ("the plan", &json!("complete")));
    // Within the minute, nobody is asked again: neither for this resource nor for another one.
    denial(ask(&mut client, params(&plan())));
    denial(ask(&mut client, params(&need("/notes/other"))));
    assert!(client.close().status.success());

    let records: Vec<Value> = site.audit().into_iter().filter(|record| record["mount"] == "imp").collect();
    let told = |record: &Value| (record["outcome"].clone(), record["asked"].clone(), record["answered"].clone());
    let notes = json!({ "grant": "fs", "what": "/notes" });
    assert_eq!(told(&records[0]), (json!("denied"), notes, Value::Null));
    let once = json!({ "grant": "fs", "what": "/notes", "answer": "once" });
    assert_eq!(told(&records[1]), (json!("ok"), Value::Null, once));
    assert_eq!(told(&records[2]), (json!("denied"), Value::Null, Value::Null));
    assert_eq!(records[1]["grants"][0]["what"], "/notes");
    assert_eq!(records[1]["caller"]["transport"], "stdio");
    assert!(records[1]["caller"]["client"].as_str().unwrap().starts_with("belljar-tests"), "by whom: {}", records[1]);
    assert_eq!(records.len(), 4);
}

#[test]
fn whoever_refuses_gets_the_ordinary_denial_and_is_left_alone() {
    for (refusal, word) in [
        (chosen("deny"), "deny"),
        (json!({ "action": "decline" }), "decline"),
        (json!({ "action": "cancel" }), "cancel"),
        (json!({ "action": "decline", "content": { "consent": "once" } }), "decline"),
    ] {
        let site = notes("true");
        let mut client = site.stdio(Era::Modern);
        let ordinary = denial(site.stdio(Era::Older).read(&plan()));
        let question = asked(&mut client, &plan());
        let error = denial(ask(&mut client, answer(&plan(), &question.state, refusal)));
        assert_eq!(error, ordinary, "what everyone gets who cannot be asked");
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
    asked(&mut server.client(Era::Modern), &plan());
    for _ in 0..5 {
        denial(ask(&mut server.client(Era::Modern), params(&plan())));
    }
    assert!(server.stop().status.success());
    let questions = site.audit().iter().filter(|record| record["asked"].is_object()).count();
    assert_eq!(questions, 1);
}

/// Whoever cannot be asked, or was not told of by the operator, gets what everyone gets.
#[test]
fn nobody_is_asked_who_cannot_answer_and_no_mount_asks_that_may_not() {
    let site = notes("true");
    let mut older = site.stdio(Era::Older);
    denial(older.read(&plan()));
    // An older client that claims to know all of this is an older client.
    let mut claims = answer(&plan(), "anything", chosen("once"));
    claims["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    denial(ask(&mut older, claims));
    let mut client = site.stdio(Era::Modern);
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } }), json!({ "sampling": {}, "roots": {} })] {
        unasked(ask(&mut client, json!({ "uri": plan(), "_meta": able(capabilities) })));
    }
    let form = json!({ "uri": plan(), "_meta": able(json!({ "elicitation": { "form": {}, "url": {} } })) });
    question(&ask(&mut client, form).unwrap());

    let off = self::site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    let mut client = off.stdio(Era::Modern);
    for uri in
        [&plan(), "belljar://imp/errors/denied/plain", "belljar://imp/reach/https%253A%252F%252Fapi.example%252F"]
    {
        let error = ask(&mut client, params(uri)).expect_err(uri);
        assert!(["denied", "not-found"].contains(&kind(&error)), "{uri}: {error}");
    }
    assert!(client.close().status.success());
    assert!(off.audit().iter().all(|record| record["asked"].is_null()));
}

/// Only a read asks: a listing goes on without what it was not given.
#[test]
fn a_listing_asks_nobody() {
    let site = site("[mounts.files]\nask = true\nfs = { \"/\" = { path = \"notes\", ask = true } }\n# files.wasm\n");
    site.write("notes/plan", "the plan");
    let mut client = site.stdio(Era::Modern);
    let listed = client.request("resources/list", json!({ "_meta": able(json!({ "elicitation": {} })) })).unwrap();
    assert!(listed["inputRequests"].is_null() && listed["resources"].is_array(), "{listed}");
    let question = asked(&mut client, "belljar://files/plan");
    let result = ask(&mut client, answer("belljar://files/plan", &question.state, chosen("once"))).unwrap();
    assert_eq!(text(&result), "the plan");
}

#[test]
fn an_answer_counts_once_for_the_very_read_that_it_was_asked_for() {
    let site = notes("true");
    let (server, elsewhere) = (site.http(), site.http());
    let mut client = server.client(Era::Modern);
    let state = asked(&mut client, &plan()).state;
    let once = |uri: &str, state: &str| answer(uri, state, chosen("once"));

    refused(ask(&mut client, once(&need("/notes/other"), &state)), "was given for another read");
    refused(ask(&mut client, once("belljar://clock/utc", &state)), "was given for another read");
    let mut another = once(&plan(), &state);
    another["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "another", "version": "1" });
    refused(ask(&mut client, another), "was given to another client");
    refused(ask(&mut client, answer(&plan(), &state, chosen("always"))), "did not offer \"always\"");
    let foreign = "was not given by this server since it started, or was changed on its way";
    refused(ask(&mut elsewhere.client(Era::Modern), once(&plan(), &state)), foreign);
    forge(&mut client, &state);
    let no_state = json!({ "uri": plan(), "inputResponses": { "consent": chosen("once") }, "_meta": able(json!({})) });
    refused(ask(&mut client, no_state), "is missing");

    // It was the alterations that were refused.
    assert_eq!(text(&ask(&mut client, once(&plan(), &state)).unwrap()), "the plan");
    refused(ask(&mut client, once(&plan(), &state)), "was used already");
    refused(ask(&mut client, answer(&plan(), &state, chosen("deny"))), "was used already");
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    let bad =
        site.audit().iter().filter(|record| record["outcome"] == "bad-state" && record["blame"] == "caller").count();
    assert!(bad > 20, "on record: {bad}");
}

/// Sends `state` in every altered form.
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
    refused(ask(client, answer(&plan(), &"A".repeat(100_000), chosen("once"))), "is longer than any");
}

/// What is no answer uses up nothing: the client may send a better one.
#[test]
fn an_answer_that_is_none_is_told_what_was_expected() {
    let site = notes("true");
    let mut client = site.stdio(Era::Modern);
    let state = asked(&mut client, &plan()).state;
    let mut without = params(&plan());
    without["requestState"] = json!(state);
    let mut other_key = without.clone();
    other_key["inputResponses"] = json!({ "other": chosen("once") });
    // What is missing is asked for again, as often as it is missing.
    for missing in [without, other_key] {
        let again = question(&ask(&mut client, missing).unwrap());
        assert_eq!(again.state, state, "the same question");
        assert!(again.message.contains("\"/notes\""), "{}", again.message);
    }
    let mut all = Vec::new();
    for none in [
        chosen("yes"),
        chosen(""),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "consent": ["once"] } }),
        json!({ "action": "allow", "content": { "consent": "once" } }),
        json!({}),
        json!("once"),
        Value::Null,
    ] {
        all.push(answer(&plan(), &state, none));
    }
    for none in all {
        let error = ask(&mut client, none.clone()).err().unwrap_or_else(|| panic!("an answer: {none}"));
        assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-answer"), "{none}: {error}");
        assert!(error.message.contains("expected inputResponses"), "{error}");
    }
    assert_eq!(text(&ask(&mut client, answer(&plan(), &state, chosen("once"))).unwrap()), "the plan");
}

/// One thing after the other, each with its own question, and four at the most.
#[test]
fn what_needs_several_things_asks_for_each_and_no_more_than_four() {
    let names = ["a", "b", "c", "d", "e"];
    let fs = names.map(|name| format!("\"/{name}\" = {{ path = \"{name}\", ask = true }}")).join(", ");
    let site = site(&format!("[mounts.imp]\ncomponent = \"imp.wasm\"\nask = true\nfs = {{ {fs} }}\n"));
    names.iter().for_each(|name| drop(site.write(format!("{name}/file"), name)));
    let mut client = site.stdio(Era::Modern);
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
    // What was not asked for yet may be, in another request.
    let question = asked(&mut client, &need("/e/file"));
    assert_eq!(text(&ask(&mut client, answer(&need("/e/file"), &question.state, chosen("once"))).unwrap()), "e");
}

/// What was allowed comes from a state, not from memory: nothing of it is left for whoever reads at the same time.
#[test]
fn what_was_allowed_for_one_call_is_not_there_for_another() {
    let site = notes("true");
    let server = site.http();
    let mut client = server.client(Era::Modern);
    let question = asked(&mut client, &plan());
    let once = answer(&plan(), &question.state, chosen("once"));
    let others = std::thread::scope(|scope| {
        let read = || {
            let mut other = server.client(Era::Modern);
            (0..20).map(|_| other.read(&plan())).collect::<Vec<_>>()
        };
        let others: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        assert_eq!(text(&ask(&mut client, once).unwrap()), "the plan");
        others.into_iter().flat_map(|other| other.join().unwrap()).collect::<Vec<_>>()
    });
    others.into_iter().for_each(|other| drop(unasked(other)));
}

#[test]
fn the_configuration_says_what_is_wrong_with_it() {
    for (lines, why) in [
        ("ask = \"always\"", "mounts.imp.ask = \"always\": expected true, false or \"persist\""),
        ("ask = 1", "mounts.imp.ask = 1: expected true, false or \"persist\""),
        (
            "ask = true\nfs = { \"/n\" = { path = \"notes\", asks = true } }",
            "unknown field `asks`, expected `path` or `ask`",
        ),
        (
            "fs = { \"/n\" = { path = \"notes\", ask = true } }",
            "mounts.imp.fs: it is asked for first, and this mount asks nobody; add  ask = true  to [mounts.imp]",
        ),
        (
            "ask = true\ncache-scope = \"public\"",
            "mounts.imp.cache-scope = \"public\": what a person allowed for one read is not for others",
        ),
        ("ask = \"persist\"\ncache-scope = \"public\"", "remove  cache-scope  or  ask  from [mounts.imp]"),
        ("ask = true\nfs = { \"/n\" = { path = \"nowhere\", ask = true } }", "\"nowhere\": there is none"),
        ("ask = true\nfs = { \"/n\" = { path = \"plugins\", ask = true } }", "belljar's own"),
    ] {
        let site = site(&format!("[mounts.imp]\ncomponent = \"imp.wasm\"\n{lines}\n"));
        site.write("notes/plan", "");
        let output = site.run(&["check"]);
        assert!(!output.status.success() && said(&output).contains(why), "{lines}: {}", said(&output));
    }
    let site = notes("true");
    let output = site.run(&["check"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("(read-only, asked for first)"), "{}", said(&output));
}

/// Runs `belljar read` at a terminal of its own, where `typed` is typed: its exit code, what it printed, and what the
/// terminal showed.
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
    // It is kept by the terminal until it is read.
    master.write_all(typed.as_bytes()).unwrap();
    drop(command);
    let output = child.wait_with_output().unwrap();
    let mut shown = Vec::new();
    // When the last program has left, a terminal ends with an error.
    let _ = master.read_to_end(&mut shown);
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn whoever_types_a_read_at_a_terminal_is_asked_there() {
    let site = notes("true");
    let place = site.path("notes").canonicalize().unwrap();
    for yes in ["once\n", "o\n", "YES\n", "what?\n\ny\n"] {
        let (code, printed, shown) = read_at_terminal(&site, &plan(), yes);
        assert_eq!((code, printed.as_str()), (Some(0), "the plan"), "{yes:?}: {shown}");
        assert!(shown.contains("wants to read the directory") && shown.contains("[once, deny]"), "{shown}");
        assert!(shown.contains(&format!("On this machine that is \"{}\".", place.display())), "{shown}");
        assert_eq!(shown.matches("That is no answer").count(), yes.lines().count() - 1, "{shown}");
    }
    for no in ["deny\n", "no\n", "\nd\n", "always\nn\n", "\u{4}"] {
        let (code, printed, shown) = read_at_terminal(&site, &plan(), no);
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{no:?}: {shown}");
        assert!(shown.contains("denied") && shown.contains("belljar grant imp --fs /notes"), "{no:?}: {shown}");
    }
    // Where nobody sits, nobody is asked.
    let output = site.run(&["read", &plan()]);
    assert!(!output.status.success() && !said(&output).contains("Allow it?"), "{}", said(&output));
}

/// "Always" is what `belljar grant` would write, at once for this process, and for the next one; and the grant belongs to
/// the bytes that asked.
#[test]
fn always_is_written_and_holds_from_then_on() {
    let before = "[mounts.imp] # the imp\ncomponent = \"imp.wasm\"\nask = \"persist\"\n# what it reads\nfs = { \"/notes\" = { path = \"notes\", ask = true } } # mine\n\n[mounts.other]\ncomponent = \"imp.wasm\"\n";
    let site = site(before);
    site.write("notes/plan", "the plan");
    let mut client = site.stdio(Era::Modern);
    let question = asked(&mut client, &plan());
    assert_eq!(question.offered, ["once", "always", "deny"]);
    let result = ask(&mut client, answer(&plan(), &question.state, chosen("always"))).unwrap();
    assert_eq!(text(&result), "the plan");
    let written = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
    let plain = before.replace("{ path = \"notes\", ask = true }", "\"notes\"");
    assert_eq!(written, format!("audit = \"audit.jsonl\"\n{plain}"), "comments and order stay");
    // Everyone has it now: nobody needs to be asked any more.
    assert_eq!(text(&client.read(&plan()).unwrap()), "the plan");
    assert!(client.close().status.success());
    let digest = site.run_json(&["inspect", site.path("plugins/imp.wasm").to_str().unwrap()])["digest"].clone();
    let lock = std::fs::read_to_string(site.path("belljar.lock")).unwrap();
    assert!(lock.contains("[mounts.imp]") && lock.contains(digest.as_str().unwrap()), "{lock}");
    assert_eq!(text(&site.stdio(Era::Older).read(&plan()).unwrap()), "the plan", "after a restart");
    let answers: Vec<_> = site.audit().into_iter().filter(|record| record["answered"].is_object()).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["answered"]["answer"], "always");

    // Other bytes do not have what these were given.
    let mut other = std::fs::read(site.path("plugins/imp.wasm")).unwrap();
    other.extend([0, 2, 1, b'x']);
    site.drop_in("imp.wasm", other);
    let error = site.stdio(Era::Modern).read(&plan()).expect_err("other bytes");
    assert_eq!(kind(&error), "unavailable", "{error}");
    // Nor is anybody asked for what is in quarantine.
    let error = ask(&mut site.stdio(Era::Modern), params(&plan())).expect_err("in quarantine");
    assert_eq!(kind(&error), "unavailable", "{error}");
}

/// What cannot be written is allowed once, and the operator's log says why.
#[test]
fn always_that_cannot_be_written_is_once() {
    let site = notes("\"persist\"");
    let mut client = site.stdio(Era::Modern);
    let question = asked(&mut client, &plan());
    // Somebody takes the permission to persist away in the meantime.
    let changed = std::fs::read_to_string(site.path("belljar.toml")).unwrap().replace("\"persist\"", "true");
    std::fs::write(site.path("belljar.toml"), &changed).unwrap();
    let result = ask(&mut client, answer(&plan(), &question.state, chosen("always"))).unwrap();
    assert_eq!(text(&result), "the plan");
    assert_eq!(std::fs::read_to_string(site.path("belljar.toml")).unwrap(), changed);
    unasked(client.read(&plan()));
    let log = client.close().stderr;
    assert!(log.contains("no longer says  ask = \"persist\""), "{log}");
}
