//! Tests of the tool and the prompt.

use belljar_guest::{Arguments, BlockBody, Context, Prompts as _, Tools as _};

use super::*;

/// The text of a result, and the reference of its link.
fn search(fixture: &Fixture, arguments: &str) -> Result<(String, String)> {
    let result = Logs::tools().call(&fixture.logs, "search", arguments, &Context::default())?.done().unwrap();
    match result.content.into_iter().map(|block| block.body).collect::<Vec<_>>().as_slice() {
        [BlockBody::Text(text), BlockBody::Link(link)] => Ok((text.clone(), link.reference.clone())),
        other => panic!("{other:?}"),
    }
}

fn invalid(fixture: &Fixture, arguments: &str) -> String {
    match search(fixture, arguments) {
        Err(Error::Invalid(why)) => why,
        other => panic!("{arguments}: {other:?}"),
    }
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write(
        "app & co.log",
        [entry(0, "INFO start"), entry(60, "ERROR Disk full"), "\tat a.B\n".to_owned(), entry(120, "WARN a&b")]
            .concat(),
    );
    fixture
}

#[test]
fn entries_are_selected_as_by_a_reference() {
    let fixture = fixture();
    let (text, link) = search(&fixture, r#"{"level":"error"}"#).unwrap();
    assert_eq!(text, "2026-11-21T10:01:00Z ERROR Disk full\n\tat a.B\n");
    // The link is a resource with the same lines.
    assert_eq!(fixture.text(&link), text);
    let all =
        r#"{"log":"app & co.log","text":"A&B","since":"2026-11-21T10:01:00Z","until":"1h","level":"warn","limit":5}"#;
    let (text, link) = search(&fixture, all).unwrap();
    assert_eq!(text, "2026-11-21T10:02:00Z WARN a&b\n");
    assert_eq!(fixture.text(&link), text);
    assert_eq!(search(&fixture, r#"{"text":"nothing like it"}"#).unwrap().0, "no entries\n");
    assert_eq!(search(&fixture, r#"{"limit":1}"#).unwrap().0, "2026-11-21T10:02:00Z WARN a&b\n");
}

#[test]
fn errors_say_what_was_expected() {
    let fixture = fixture();
    for (arguments, expected) in [
        (r#"{"limit":0}"#, "from 1 to 1000"),
        (r#"{"level":"loud"}"#, "trace, debug, info, warn, error, fatal"),
        (r#"{"since":"yesterday"}"#, "such as 2026-11-21T10:00:00Z"),
        (r#"{"log":"none.log"}"#, "\"log\" is \"none.log\": expected one of \"app & co.log\""),
        (r#"{"log":"../app & co.log"}"#, "\"..\""),
        (r#"{"pattern":"x"}"#, "unknown field `pattern`"),
        (r#"{"regex":"(x"}"#, "unclosed group"),
    ] {
        let why = invalid(&fixture, arguments);
        assert!(why.contains(expected), "{arguments}: {why}");
    }
    fixture.write("other.log", "x\n");
    assert_eq!(invalid(&fixture, "{}"), "\"log\" is missing: expected one of \"app & co.log\", \"other.log\"");
    assert_eq!(search(&fixture, r#"{"log":"/other.log"}"#).unwrap().0, "x\n");
}

#[test]
fn a_result_keeps_its_newest_lines() {
    let fixture = Fixture::new();
    let long = "x".repeat(5000);
    fixture.write("long.log", (0..50).map(|n| format!("{n} {long}\n")).collect::<String>());
    let (text, _) = search(&fixture, "{}").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(text.len() < 97 * 1024 && lines.last().unwrap().starts_with("49 "), "{}", text.len());
    let (_, place) =
        lines[0].split_once("[logs: stopped at 96 KiB of text; for older entries, read again with before=").unwrap();
    let more = format!(r#"{{"before":"{}"}}"#, place.trim_end_matches(']'));
    let (text, _) = search(&fixture, &more).unwrap();
    assert!(text.lines().last().unwrap().starts_with(&format!("{} ", 50 - lines.len())));
}

#[test]
fn an_explanation_has_the_last_minutes() {
    let fixture = fixture();
    let explain = |arguments: &Arguments| {
        let result = Logs::prompts().get(&fixture.logs, "explain", arguments, &Context::default())?.done().unwrap();
        match result.messages.into_iter().map(|message| message.block.body).collect::<Vec<_>>().as_slice() {
            [BlockBody::Text(wish), BlockBody::Embedded(contents)] => Ok((wish.clone(), contents.clone())),
            other => panic!("{other:?}"),
        }
    };
    // It is noon, and the entries are of ten o'clock.
    let text = |contents: &Contents| match &contents.body {
        Body::Text(text) => text.clone(),
        Body::Blob(_) => panic!("a blob"),
    };
    assert_eq!(text(&explain(&Arguments::default()).unwrap().1), "no entries\n");
    let (wish, contents) = explain(&Arguments::from([("minutes", "119")])).unwrap();
    assert!(wish.contains("the last 119 minutes of the log \"app & co.log\""), "{wish}");
    assert_eq!(text(&contents), "2026-11-21T10:01:00Z ERROR Disk full\n\tat a.B\n2026-11-21T10:02:00Z WARN a&b\n");
    assert_eq!(fixture.text(&contents.reference), text(&contents));
    let wrong = explain(&Arguments::from([("minutes", "soon")]));
    assert!(matches!(&wrong, Err(Error::Invalid(why)) if why.contains("expected a number from 1")), "{wrong:?}");
    // A log without times has last lines, but no minutes.
    fixture.write("plain.log", "one\ntwo\n");
    assert_eq!(text(&explain(&Arguments::from([("file", "plain.log")])).unwrap().1), "one\ntwo\n");
    assert!(matches!(explain(&Arguments::from([("file", "plain.log"), ("minutes", "5")])), Err(Error::Invalid(_))));
    let files = fixture.logs.complete_prompt("explain", &Argument::new("file", "P"), &[]).unwrap().values;
    assert_eq!(files, ["plain.log"]);
}

#[test]
fn the_definition_is_short() {
    let tools = Logs::tools().list();
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    let length = tool.description.len() + tool.input.as_ref().map_or(0, String::len);
    // About 180 tokens.
    assert!(length < 720, "{length}: {tool:?}");
}
