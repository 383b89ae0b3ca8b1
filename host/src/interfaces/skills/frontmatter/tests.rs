//! Tables of frontmatter: what is read, and what is refused with which line.

use serde_json::{Value, json};

use super::*;

fn file(yaml: &str) -> String {
    format!("---\nname: a\ndescription: b\n{yaml}\n---\nText\n")
}

/// The field `x`.
fn value(yaml: &str) -> Value {
    let front = Frontmatter::parse(&file(yaml)).unwrap_or_else(|why| panic!("{yaml:?}: {why}"));
    front.others.get("x").cloned().unwrap_or_else(|| panic!("{yaml:?}: no x"))
}

fn refused(file: &str) -> (usize, Problem) {
    let FrontmatterError { line, problem } = Frontmatter::parse(file).expect_err(file);
    (line, problem)
}

#[test]
fn values_have_the_types_of_the_core_schema() {
    for (yaml, expected) in [
        ("x: text", json!("text")),
        ("x: two words # comment", json!("two words")),
        ("x: 'it''s'", json!("it's")),
        (r#"x: "a\tb\u00e9""#, json!("a\tb\u{e9}")),
        ("x:", Value::Null),
        ("x: ~", Value::Null),
        ("x: null", Value::Null),
        ("x: True", json!(true)),
        ("x: false", json!(false)),
        ("x: yes", json!("yes")),
        ("x: off", json!("off")),
        ("x: 12", json!(12)),
        ("x: -7", json!(-7)),
        ("x: +7", json!(7)),
        ("x: 0", json!(0)),
        ("x: 0x1F", json!(31)),
        ("x: 18446744073709551615", json!(u64::MAX)),
        ("x: 1.5", json!(1.5)),
        ("x: 1.", json!(1.0)),
        ("x: .5", json!(0.5)),
        ("x: -1e3", json!(-1000.0)),
        ("x: 1.2.3", json!("1.2.3")),
        ("x: 2026-11-24", json!("2026-11-24")),
        ("x: 1:30", json!("1:30")),
        ("x: \"12\"", json!("12")),
        ("x: [a, 1, {b: c}]", json!(["a", 1, { "b": "c" }])),
        ("x:\n  - a\n  - b: 1\n    c: [2]", json!(["a", { "b": 1, "c": [2] }])),
        ("x:\n  y:\n    z: w", json!({ "y": { "z": "w" } })),
        ("x: |\n  a\n   b\n\n  c", json!("a\n b\n\nc\n")),
        ("x: |-\n  a\n  b", json!("a\nb")),
        ("x: >\n  a\n  b", json!("a b\n")),
        ("x: >-\n  a\n\n  b\ny: 1", json!("a\nb")),
        ("x:\n  y: >-\n    a\n    b\n  z: 1", json!({ "y": "a b", "z": 1 })),
        ("x: a\n  b", json!("a b")),
        ("x: http://a/#b", json!("http://a/#b")),
        ("x: \"<<\"", json!("<<")),
        ("\"x\": 1", json!(1)),
        ("x: -", json!("-")),
    ] {
        match yaml {
            // A lone dash is a sequence indicator.
            "x: -" => assert!(Frontmatter::parse(&file(yaml)).is_err(), "{yaml}"),
            _ => assert_eq!(value(yaml), expected, "{yaml:?}"),
        }
    }
}

#[test]
fn what_parsers_read_differently_is_refused_with_its_line() {
    let block = |why: &'static str| Problem::Block(why);
    let (empty, before) = ("the block is empty", "the block begins with a blank line");
    let after = "the folded block ends with a blank line";
    let deeper = "a line of the folded block is indented further than the first";
    let states = "the block states its indentation";
    for (yaml, line, problem) in [
        ("x: &a 1", 4, Problem::Anchor),
        ("x: &a [1]\ny: *a", 4, Problem::Anchor),
        ("x: &a {b: 1}", 4, Problem::Anchor),
        ("x: !!str 1", 4, Problem::Tag),
        ("x: !mine [1]", 4, Problem::Tag),
        ("x: ! 1", 4, Problem::Tag),
        ("x: 1\nx: 2", 5, Problem::Duplicate("\"x\"".to_owned())),
        ("x: 1\n\"x\": 2", 5, Problem::Duplicate("\"x\"".to_owned())),
        ("name: c", 4, Problem::Duplicate("\"name\"".to_owned())),
        ("x:\n  y: 1\n  y: 2", 6, Problem::Duplicate("\"y\"".to_owned())),
        ("1: x", 4, Problem::Key),
        ("true: x", 4, Problem::Key),
        ("~: x", 4, Problem::Key),
        ("? [a]\n: x", 4, Problem::Key),
        ("{a: b}: x", 4, Problem::Key),
        ("<<: {a: b}", 4, Problem::Merge),
        ("x: .inf", 4, Problem::Number("\".inf\"".to_owned())),
        ("x: -.INF", 4, Problem::Number("\"-.INF\"".to_owned())),
        ("x: .nan", 4, Problem::Number("\".nan\"".to_owned())),
        ("x: 1e999", 4, Problem::Number("\"1e999\"".to_owned())),
        ("x: 99999999999999999999", 4, Problem::Number("\"99999999999999999999\"".to_owned())),
        ("x: 0123", 4, Problem::Ambiguous("\"0123\"".to_owned())),
        ("x: 0o17", 4, Problem::Ambiguous("\"0o17\"".to_owned())),
        ("x: >\n\n  a", 4, block(before)),
        ("x: |\n\n  a", 4, block(before)),
        ("x: >\n  a\n\ny: 1", 4, block(after)),
        ("x: >-\n  a\n\n\n", 4, block(after)),
        ("x: >\n  a\n   b\n  c", 4, block(deeper)),
        ("x: >\n  a\n  \tb", 4, block(deeper)),
        ("x: >\ny: 1", 4, block(empty)),
        ("x:\n  a: |\n  b: 1", 5, block(empty)),
        ("x: |2\n   a", 4, block(states)),
        ("x: >1-\n  a", 4, block(states)),
        ("x: a\u{202e}b", 4, Problem::Character(0x202e)),
        ("x: a\u{0}b", 4, Problem::Character(0)),
        ("x: a\u{85}b", 4, Problem::Character(0x85)),
        ("x: a\rb", 4, Problem::Character(0xd)),
        ("x: \u{feff}b", 4, Problem::Character(0xfeff)),
        (r#"x: "a\u202eb""#, 4, Problem::Character(0x202e)),
        (r#"x: "a\eb""#, 4, Problem::Character(0x1b)),
    ] {
        assert_eq!(refused(&file(yaml)), (line, problem), "{yaml:?}");
    }
}

#[test]
fn only_one_document_between_two_fences_is_read() {
    for (text, line, problem) in [
        ("", 1, Problem::NoBegin),
        ("name: a", 1, Problem::NoBegin),
        ("\n---\nname: a\n---\n", 1, Problem::NoBegin),
        ("\u{feff}---\nname: a\n---\n", 1, Problem::NoBegin),
        ("--- \nname: a\n---\n", 1, Problem::NoBegin),
        ("---\nname: a\n", 1, Problem::NoEnd),
        ("---\nname: a\ndescription: b\n----\n", 1, Problem::NoEnd),
        ("---\n---\n", 2, Problem::NoMapping),
        ("---\n- a\n---\n", 2, Problem::NoMapping),
        ("---\na\n---\n", 2, Problem::NoMapping),
        ("---\nname: a\n---\n", 2, Problem::Missing("description")),
        ("---\ndescription: a\n---\n", 2, Problem::Missing("name")),
        ("---\nname: 1\ndescription: a\n---\n", 2, Problem::NoText("name")),
        ("---\nname: a\ndescription: [b]\n---\n", 3, Problem::NoText("description")),
        ("---\nname: a\ndescription: '  '\n---\n", 3, Problem::NoText("description")),
        ("---\n--- \nname: a\n---\n", 3, Problem::Documents),
        ("---\nname: a\n... \nname: b\n---\n", 5, Problem::Documents),
    ] {
        let (found, why) = refused(text);
        assert_eq!(why, problem, "{text:?}");
        assert!(found.abs_diff(line) <= 1, "{text:?}: line {found}, expected about {line}");
    }
    assert!(matches!(refused("---\n%YAML 1.1\n--- \nname: a\n---\n").1, Problem::Documents | Problem::Syntax(_)));
    assert!(matches!(refused(&file("x: [")).1, Problem::Syntax(_)));
    assert!(matches!(refused(&file("x: *a")).1, Problem::Anchor | Problem::Syntax(_)));
    let windows = "---\r\nname: a\r\ndescription: b\r\nx: |\r\n  c\r\n  d\r\n---\r\nText";
    assert_eq!(Frontmatter::parse(windows).unwrap().others["x"], "c\nd\n");
    let at_end = Frontmatter::parse("---\nname: a\ndescription: b\n---").unwrap();
    assert_eq!((at_end.name.as_str(), at_end.description.as_str()), ("a", "b"));
}

#[test]
fn names_are_strict() {
    for good in ["a", "a-b", "0", "pdf-2-text", &"a".repeat(64)] {
        assert!(is_name(good), "{good}");
    }
    for bad in ["", "A", "-a", "a-", "a--b", "a_b", "a.b", "a b", "\u{e4}", &"a".repeat(65)] {
        assert!(!is_name(bad), "{bad}");
        if !bad.is_empty() {
            let file = format!("---\nname: {}\ndescription: b\n---\n", json!(bad));
            assert!(matches!(refused(&file), (2, Problem::Name(_))), "{bad}");
        }
    }
}

#[test]
fn size_depth_and_number_of_values_are_bounded() {
    let long = file(&format!("x: {}", "a".repeat(MAX_FRONTMATTER.get())));
    assert_eq!(refused(&long).1, Problem::TooLong);
    let deep = |levels: usize| file(&format!("x: {}1{}", "[".repeat(levels), "]".repeat(levels)));
    assert!(Frontmatter::parse(&deep(MAX_FRONTMATTER_DEPTH.get() - 1)).is_ok());
    assert_eq!(refused(&deep(MAX_FRONTMATTER_DEPTH.get())).1, Problem::Depth);
    let many = |count: usize| file(&format!("x: [{}]", "1,".repeat(count)));
    assert!(Frontmatter::parse(&many(4000)).is_ok());
    assert_eq!(refused(&many(MAX_FRONTMATTER_NODES.get())).1, Problem::Nodes);
}

#[test]
fn hostile_texts_take_little_time() {
    let size = MAX_FRONTMATTER.get() - 100;
    for unit in [
        "[", "{", "- ", "? ", "[a, ", "{a: ", "\"", "'", "a: ", "a:\n ", "#", "&a ", "!a ", "| ", "\n", "*a ", "%",
        ": ",
    ] {
        let began = std::time::Instant::now();
        let yaml = unit.repeat(size / unit.len());
        let _ = Frontmatter::parse(&file(&format!("x: {yaml}")));
        let _ = Frontmatter::parse(&file(&yaml));
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(2), "{unit:?}: {took:?}");
    }
}
