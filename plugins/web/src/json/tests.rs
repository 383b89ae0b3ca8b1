//! Tests of reading JSON.

use super::*;

const TEXT: &str =
    r#"{"z": {"list": [1.10, 12345678901234567890123, {"name": "Ann \u00e9"}], "a/b": null}, "a": true}"#;

fn text(select: Option<&str>) -> (String, &'static str) {
    match read(TEXT, select).unwrap() {
        (Body::Text(text), media) => (text, media),
        (Body::Blob(_), _) => panic!("a blob"),
    }
}

#[test]
fn key_order_and_digits_are_kept() {
    let (text, media) = text(None);
    assert_eq!(media, MEDIA);
    assert_eq!(
        text,
        "{\n  \"z\": {\n    \"list\": [\n      1.10,\n      12345678901234567890123,\n      {\n        \"name\": \
         \"Ann é\"\n      }\n    ],\n    \"a/b\": null\n  },\n  \"a\": true\n}\n"
    );
}

#[test]
fn a_pointer_selects_a_value() {
    assert_eq!(text(Some("/z/list/1")), ("12345678901234567890123\n".to_owned(), MEDIA));
    assert_eq!(text(Some("/z/a~1b")), ("null\n".to_owned(), MEDIA));
    assert_eq!(text(Some("/z/list/2/name")), ("Ann é".to_owned(), "text/plain"));
    assert_eq!(text(Some("")).1, MEDIA);
}

#[test]
fn a_missing_value_gives_an_error_with_the_existing_keys() {
    let why = |pointer| read(TEXT, Some(pointer)).unwrap_err().to_string();
    assert!(why("/y/x").ends_with("at \"\" it has an object with \"z\", \"a\""), "{}", why("/y/x"));
    assert!(why("/z/list/3").ends_with("at \"/z/list\" it has an array of 3 items"), "{}", why("/z/list/3"));
    assert!(why("/a/b").ends_with("at \"/a\" it has a boolean"), "{}", why("/a/b"));
}

#[test]
fn malformed_json_fails() {
    let deep = "[".repeat(100_000);
    for text in ["", "<html>", "{\"a\":", "{} {}", deep.as_str()] {
        assert!(matches!(read(text, None), Err(Error::Failed(_))));
    }
}

#[test]
fn odd_json_is_printed_as_it_is() {
    let printed = |text: &str| match read(text, None).unwrap().0 {
        Body::Text(text) => text,
        Body::Blob(_) => panic!("a blob"),
    };
    assert_eq!(printed("[ ]"), "[]\n");
    assert_eq!(
        printed("{\"a\" : [ { } ,\n1e5],\"b\":\"\\\"},{\\\\\"}"),
        "{\n  \"a\": [\n    {},\n    1e5\n  ],\n  \"b\": \"\\\"},{\\\\\"\n}\n"
    );
    // Half a surrogate pair is valid JSON.
    assert_eq!(printed("\"\\ud83d\""), "\"\\ud83d\"\n");
    assert_eq!(printed("\u{feff}true"), "true\n");
    assert_eq!(printed("{\"a\":1,\"a\":2}"), "{\n  \"a\": 1,\n  \"a\": 2\n}\n");
}

/// Text that grows too much by indentation stays as it is.
#[test]
fn text_that_would_be_too_long_is_not_indented() {
    let rows: Vec<String> = (0..300_000).map(|n| format!("[[[{n}]]]")).collect();
    let text = format!("[{}]", rows.join(","));
    assert!(matches!(read(&text, None).unwrap().0, Body::Text(read) if read == text));
}
