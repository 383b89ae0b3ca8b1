//! The files in `docs/reference` say what the code says.

use super::*;
use crate::grants::KINDS;

/// The page with the tables of all keys.
const PAGE: &str = "docs/reference/configuration.md";

/// The committed schema.
const SCHEMA: &str = "docs/reference/belljar.schema.json";

/// The lines of [`PAGE`] around the tables.
const MARKS: [&str; 2] = ["<!-- The tables are made by a test. -->\n", "<!-- End of the tables. -->\n"];

/// The command that writes both files.
const CURE: &str = "BELLJAR_BLESS=1 cargo test --release -p belljar --lib config::schema";

/// Fails if the file differs from `expected`. Writes it instead if `BELLJAR_BLESS` is set.
fn assert_file(path: &str, expected: impl Fn(&str) -> String) {
    let file = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let expected = expected(&found);
    if std::env::var_os("BELLJAR_BLESS").is_some() {
        std::fs::write(&file, expected).unwrap();
    } else {
        assert!(found == expected, "{path} does not say what the code says; run: {CURE}");
    }
}

#[test]
fn the_committed_schema_is_that_of_the_code() {
    assert_file(SCHEMA, |_| text());
}

#[test]
fn the_reference_has_the_tables_of_the_code() {
    assert_file(PAGE, |page| {
        let (before, rest) = page.split_once(MARKS[0]).expect("the first mark");
        let (_, after) = rest.split_once(MARKS[1]).expect("the second mark");
        format!("{before}{}\n{}\n{}{after}", MARKS[0], reference::tables(), MARKS[1])
    });
}

#[test]
fn every_kind_of_grant_is_a_key_of_a_mount() {
    let schema = annotated();
    let keys = &schema["properties"]["mounts"]["additionalProperties"]["properties"];
    for kind in KINDS {
        assert!(keys[kind.name]["description"].is_string(), "no description of {}", kind.name);
    }
}

#[test]
fn every_key_has_a_description_and_every_table_refuses_other_keys() {
    fn check(path: &str, schema: &Value) {
        match schema {
            Value::Object(object) => {
                if let Some(properties) = object.get("properties").and_then(Value::as_object) {
                    assert_eq!(schema["additionalProperties"], false, "{path} takes unknown keys");
                    for (key, property) in properties {
                        // A secret's table has one key, and the text is that of the form.
                        let text = property["description"].as_str().or(schema["description"].as_str());
                        let text = text.unwrap_or_default();
                        assert!(text.ends_with('.'), "{path}.{key} has the description {text:?}");
                    }
                }
                object.iter().for_each(|(key, inner)| check(&format!("{path}/{key}"), inner));
            }
            Value::Array(values) => values.iter().for_each(|inner| check(path, inner)),
            _ => {}
        }
    }
    check("", &annotated());
}

#[test]
fn no_word_of_rust_or_json_is_in_the_schema() {
    for word in ["null", "uint", "Option", "crate::", "x-bounds", "x-kind", "$ref"] {
        assert!(!text().contains(&format!("\"{word}\"")), "{word}");
    }
}
