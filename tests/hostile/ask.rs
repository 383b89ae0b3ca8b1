//! Consent: who would have more of it than was given, and who would wear a person down by asking.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::expect::{Answer, cut, kind, text};
use crate::row::{Row, Way, imp};
use crate::scene::Scene;
use crate::tools::{run, within};

/// What lies in the directory that is asked for first.
const TEXT: &str = "only with consent";

/// A row whose imp may ask, and has these directories, each of which must be asked for.
fn asks(id: &'static str, attack: &'static str, directories: usize) -> Row {
    let name = |n: usize| format!("{}-{n}", id.to_lowercase());
    let fs: Vec<_> = (0..directories).map(|n| format!("\"/{n}\" = {{ path = \"{}\", ask = true }}", name(n))).collect();
    imp(id, attack).config(&format!("ask = true\nfs = {{ {} }}", fs.join(", "))).prepare(move |site| {
        for n in 0..directories {
            site.write(format!("{}/file", name(n)), TEXT);
            fs::write(site.path(format!("{}/other", name(n))), TEXT).expect("a writable place");
        }
    })
}

/// The URI at which the imp reads this file of its directories.
fn need(scene: &Scene<'_>, path: &str) -> String {
    scene.uri(&format!("need/{}", path.replace('/', "%252F")))
}

/// A read by a client that can be asked, with an answer to the question with this state.
fn read(scene: &Scene<'_>, client: &str, uri: &str, state: Option<&str>) -> Answer {
    let mut params = json!({ "uri": uri, "_meta": meta(client) });
    if let Some(state) = state {
        params["requestState"] = json!(state);
        params["inputResponses"] = json!({ "consent": { "action": "accept", "content": { "consent": "once" } } });
    }
    scene.request("resources/read", params)
}

/// What a client that can be asked says of itself.
fn meta(client: &str) -> Value {
    json!({
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        "io.modelcontextprotocol/clientInfo": { "name": client, "version": "1" },
    })
}

/// The state of a question; none where nothing was asked.
fn state(answer: &Answer) -> Option<String> {
    Some(answer.as_ref().ok()?["requestState"].as_str()?.to_owned())
}

/// That an answer does not count.
fn refused(answer: &Answer) -> String {
    match answer {
        Err(error) if kind(error) == "bad-state" => cut(&error.message),
        other => panic!("it counts: {other:?}"),
    }
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        asks("ASK-01", "a client uses one answer twice, for another resource, and as somebody else", 1)
            .act(|scene| {
                let (file, other) = (need(scene, "/0/file"), need(scene, "/0/other"));
                let state = state(&read(scene, "one", &file, None)).expect("a question");
                refused(&read(scene, "one", &other, Some(&state)));
                refused(&read(scene, "another", &file, Some(&state)));
                assert_eq!(text(&read(scene, "one", &file, Some(&state))), Some(TEXT), "the answer itself");
                refused(&read(scene, "one", &file, Some(&state)))
            })
            .stopped_by(&["consent"]),
        asks("ASK-02", "a client makes up, or changes, what it was asked", 1)
            .act(|scene| {
                let file = need(scene, "/0/file");
                let state = state(&read(scene, "one", &file, None)).expect("a question");
                // The last letters are of the tag: what was sealed is still there.
                let (body, tag) = state.split_at(state.len() - 12);
                let changed = format!("{body}{}", tag.replace(|letter: char| letter != 'A', "A"));
                refused(&read(scene, "one", &file, Some(&changed)));
                refused(&read(scene, "one", &file, Some(&state.replace('a', "b"))))
            })
            .stopped_by(&["seal"]),
        asks("ASK-03", "a provider has a person asked again and again, until they give in", 1)
            .act(|scene| {
                let file = need(scene, "/0/file");
                let asked = (0..30).filter(|_| state(&read(scene, "one", &file, None)).is_some()).count();
                assert_eq!(asked, 1, "questions for the same thing within a minute");
                "asked once in 30 reads".to_owned()
            })
            .stopped_by(&["asking"]),
        asks("ASK-04", "a provider has a person asked for ever new things", 40)
            .act(|scene| {
                let file = need(scene, "/39/file");
                let asked = (0..60).filter(|_| state(&read(scene, "one", &file, None)).is_some()).count();
                assert!((1..=16).contains(&asked), "{asked} questions within a minute");
                let listed: Value = scene.request("resources/list", json!({})).expect("a listing");
                assert!(listed["requestState"].is_null(), "a listing asks: {listed}");
                format!("{asked} questions in 60 reads")
            })
            .stopped_by(&["asking"]),
        imp("ASK-05", "what a person allowed goes on after the operator took it back")
            .config("ask = \"persist\"\nfs = { \"/0\" = { path = \"ask-05-0\", ask = true }, \"/1\" = { path = \"ask-05-1\", ask = true } }")
            .prepare(|site| (0..2).for_each(|n| drop(site.write(format!("ask-05-{n}/file"), TEXT))))
            .way(Way::Stdio)
            .act(taken_back)
            .stopped_by(&["revoke"]),
    ]
}

/// How soon a change of the configuration counts.
const SOON: Duration = Duration::from_secs(10);

/// Allows for good, and takes it back in each of the ways in which that can be done.
fn taken_back(scene: &Scene<'_>) -> String {
    let (file, other) = (need(scene, "/0/file"), need(scene, "/1/file"));
    let config = scene.site().path("belljar.toml");
    let before = fs::read_to_string(&config).expect("a configuration");
    // Whole, as an editor that is careful writes it.
    let write = |text: &str| fs::rename(scene.site().write("belljar.toml.new", text), &config).expect("a rename");
    let plain = |uri: &str| scene.request("resources/read", json!({ "uri": uri }));
    let is_given = || text(&plain(&file)) == Some(TEXT);

    // The first thing that is missing is asked for first.
    let first = state(&read(scene, "one", &file, None)).expect("a question");
    let sealed = state(&read(scene, "one", &other, None)).expect("a question");
    let always = json!({ "uri": file, "requestState": first, "_meta": meta("one"),
        "inputResponses": { "consent": { "action": "accept", "content": { "consent": "always" } } } });
    assert_eq!(text(&scene.request("resources/read", always)), Some(TEXT), "allowed for good");
    assert!(within(SOON, is_given), "it holds for whoever reads");
    // What is taken back before belljar has looked was never in force.
    let is_taken_over = || scene.stage.process().stderr().contains("served as the configuration says now");
    assert!(within(SOON, is_taken_over), "what is in the configuration is not taken over");
    // It has to be asked for again.
    write(&before);
    assert!(within(SOON, || !is_given()), "what was allowed for good goes on after it was taken back");
    let answer = read(scene, "one", &other, Some(&sealed));
    assert!(text(&answer).is_none(), "a question from before the change is answered after it");
    refused(&answer);
    // Taken away by the command, which comes back when it is so.
    write(&before.replace("{ path = \"ask-05-0\", ask = true }", "\"ask-05-0\""));
    assert!(within(SOON, is_given), "granted in the file");
    let (fine, said) = run(scene, &["revoke", "ask-05", "--fs", "/0", "--yes"]);
    assert!(fine && said.contains("uses it from the next call on"), "{said}");
    assert!(!is_given(), "the next read");
    "gone with the configuration that allowed it".to_owned()
}
