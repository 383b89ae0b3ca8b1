//! Hostile rows about consent. Providers and clients try to get more than a person allowed, or to cause many questions.

use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::expect::{Answer, cut, kind, text};
use crate::row::{Row, RunMode, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{run, within};

/// The text of each file that needs consent.
const TEXT: &str = "only with consent";

/// A row whose hostile guest has this number of directories. The guest paths are `/0`, `/1` and so on, and each needs
/// consent.
fn asks(id: &'static str, attack: &'static str, directories: usize) -> Row {
    let name = |n: usize| format!("{}-{n}", id.to_lowercase());
    let fs: Vec<_> = (0..directories).map(|n| format!("\"/{n}\" = {{ path = \"{}\", ask = true }}", name(n))).collect();
    hostile_guest(id, attack).config(&format!("ask = true\nfs = {{ {} }}", fs.join(", "))).prepare(move |site| {
        for n in 0..directories {
            site.write(format!("{}/file", name(n)), TEXT);
            fs::write(site.path(format!("{}/other", name(n))), TEXT).expect("write a file");
        }
    })
}

/// The URI that makes the hostile guest read the file at the guest path `path`.
fn need(context: &RowContext<'_>, path: &str) -> String {
    context.uri(&format!("need/{}", path.replace('/', "%252F")))
}

/// A read by a client with elicitation. If `state` is given, the read answers the question of this state with "once".
fn read(context: &RowContext<'_>, client: &str, uri: &str, state: Option<&str>) -> Answer {
    let mut params = json!({ "uri": uri, "_meta": meta(client) });
    if let Some(state) = state {
        params["requestState"] = json!(state);
        params["inputResponses"] = json!({ "consent": { "action": "accept", "content": { "consent": "once" } } });
    }
    context.request("resources/read", params)
}

/// The `_meta` of a client with elicitation.
fn meta(client: &str) -> Value {
    json!({
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        "io.modelcontextprotocol/clientInfo": { "name": client, "version": "1" },
    })
}

/// The state of a question. `None` if the answer is not a question.
fn state(answer: &Answer) -> Option<String> {
    Some(answer.as_ref().ok()?["requestState"].as_str()?.to_owned())
}

/// Asserts that belljar refused an answer to a question. Returns the message.
fn refused(answer: &Answer) -> String {
    match answer {
        Err(error) if kind(error) == "bad-state" => cut(&error.message),
        other => panic!("belljar accepted the answer: {other:?}"),
    }
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        asks("ASK-01", "a client uses one answer twice, for another resource, and as another client", 1)
            .act(|context| {
                let (file, other) = (need(context, "/0/file"), need(context, "/0/other"));
                let state = state(&read(context, "one", &file, None)).expect("a question");
                refused(&read(context, "one", &other, Some(&state)));
                refused(&read(context, "another", &file, Some(&state)));
                assert_eq!(text(&read(context, "one", &file, Some(&state))), Some(TEXT), "the unchanged answer is accepted");
                refused(&read(context, "one", &file, Some(&state)))
            })
            .stopped_by(&["consent"]),
        asks("ASK-02", "a client changes the state of a question", 1)
            .act(|context| {
                let file = need(context, "/0/file");
                let state = state(&read(context, "one", &file, None)).expect("a question");
                let bytes = URL_SAFE_NO_PAD.decode(&state).expect("base64");
                let flipped = |at: usize| {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1;
                    URL_SAFE_NO_PAD.encode(changed)
                };
                // The end is the authentication tag. The second byte is a digit of the text, and its last bit makes another
                // digit: without the tag, the text would be a good one.
                refused(&read(context, "one", &file, Some(&flipped(bytes.len() - 1))));
                refused(&read(context, "one", &file, Some(&flipped(1))))
            })
            .stopped_by(&["seal"]),
        asks("ASK-03", "a provider causes the same question again and again, until the person gives in", 1)
            .act(|context| {
                let file = need(context, "/0/file");
                let questions = (0..30).filter(|_| state(&read(context, "one", &file, None)).is_some()).count();
                assert_eq!(questions, 1, "questions for the same grant within a minute");
                "one question in 30 reads".to_owned()
            })
            .stopped_by(&["asking"]),
        asks("ASK-04", "a provider causes questions for many different grants", 40)
            .act(|context| {
                let file = need(context, "/39/file");
                let questions = (0..60).filter(|_| state(&read(context, "one", &file, None)).is_some()).count();
                assert!((1..=16).contains(&questions), "{questions} questions within a minute");
                let listed: Value = context.request("resources/list", json!({})).expect("a listing");
                assert!(listed["requestState"].is_null(), "a listing asked a question: {listed}");
                format!("{questions} questions in 60 reads")
            })
            .stopped_by(&["asking"]),
        hostile_guest("ASK-05", "a grant that a person allowed is still used after the operator revoked it")
            .config("ask = \"persist\"\nfs = { \"/0\" = { path = \"ask-05-0\", ask = true }, \"/1\" = { path = \"ask-05-1\", ask = true } }")
            .prepare(|site| (0..2).for_each(|n| drop(site.write(format!("ask-05-{n}/file"), TEXT))))
            .run_mode(RunMode::Stdio)
            .act(revoked)
            .stopped_by(&["revoke"]),
    ]
}

/// The longest time until a change of the configuration takes effect.
const SOON: Duration = Duration::from_secs(10);

/// Gives consent with "always", and revokes it in each possible way.
fn revoked(context: &RowContext<'_>) -> String {
    let (file, other) = (need(context, "/0/file"), need(context, "/1/file"));
    let config = context.site().path("belljar.toml");
    let before = fs::read_to_string(&config).expect("read the configuration");
    // Replace the file by a rename, so that belljar never reads a half-written file.
    let write = |text: &str| {
        fs::rename(context.site().write("belljar.toml.new", text), &config).expect("rename the configuration")
    };
    let plain = |uri: &str| context.request("resources/read", json!({ "uri": uri }));
    let is_given = || text(&plain(&file)) == Some(TEXT);

    // belljar asks for the first missing grant first.
    let first = state(&read(context, "one", &file, None)).expect("a question");
    let sealed = state(&read(context, "one", &other, None)).expect("a question");
    let always = json!({ "uri": file, "requestState": first, "_meta": meta("one"),
        "inputResponses": { "consent": { "action": "accept", "content": { "consent": "always" } } } });
    assert_eq!(text(&context.request("resources/read", always)), Some(TEXT), "the read with the answer \"always\"");
    assert!(within(SOON, is_given), "the grant is not in effect for other clients");
    // If the operator revokes a grant before belljar reads the configuration, the grant never takes effect.
    let is_reloaded = || context.running.process().stderr().contains("served as the configuration says now");
    assert!(within(SOON, is_reloaded), "belljar did not reload the configuration");
    // belljar must ask again.
    write(&before);
    assert!(within(SOON, || !is_given()), "the revoked grant is still used");
    let answer = read(context, "one", &other, Some(&sealed));
    assert!(text(&answer).is_none(), "belljar accepts the answer to a question from before the revocation");
    refused(&answer);
    // Revoke by the command, which waits until the change is in effect.
    write(&before.replace("{ path = \"ask-05-0\", ask = true }", "\"ask-05-0\""));
    assert!(within(SOON, is_given), "the grant in the file is not in effect");
    let (fine, said) = run(context, &["revoke", "ask-05", "--fs", "/0", "--yes"]);
    assert!(fine && said.contains("uses it from the next call on"), "{said}");
    assert!(!is_given(), "the next read still uses the revoked grant");
    "the grant ends when the operator revokes it".to_owned()
}
