//! Tests of the schemas, in the words that a model reads.

use serde::{Deserialize, Serialize};

use super::*;

/// A comment that clients do not see.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Flight {
    /// Where it begins
    from: String,
    #[schemars(range(min = 1, max = 9))]
    seats: u8,
    class: Option<Class>,
    #[serde(default)]
    price: Option<f64>,
    back: Option<Back>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Class {
    Economy,
    First,
}

/// The way back
#[derive(Deserialize, Serialize, JsonSchema)]
struct Back {
    day: u64,
}

#[test]
fn arguments_are_closed_and_short() {
    let expected = json!({
        "type": "object",
        "properties": {
            "from": { "type": "string", "description": "Where it begins" },
            "seats": { "type": "integer", "minimum": 1, "maximum": 9 },
            "class": { "type": "string", "enum": ["economy", "first"] },
            "price": { "type": "number" },
            "back": {
                "type": "object",
                "description": "The way back",
                "properties": { "day": { "type": "integer", "minimum": 0 } },
                "required": ["day"],
            },
        },
        "required": ["from", "seats"],
        "additionalProperties": false,
    });
    assert_eq!(arguments::<Flight>(), expected);
}

#[test]
fn a_result_says_which_values_may_be_null() {
    let schema = output::<Flight>();
    let class = json!({ "type": ["string", "null"], "enum": ["economy", "first", null] });
    assert_eq!(schema["properties"]["class"], class);
    assert_eq!(schema["required"], json!(["from", "seats", "class", "price", "back"]));
    assert_eq!(schema.get("additionalProperties"), None);
}

#[test]
fn every_root_is_an_object() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "by", rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Search {
        Name { name: String },
        Number { number: u32 },
    }

    assert_eq!(arguments::<Value>(), json!({ "type": "object" }));
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(arguments::<crate::NoArguments>(), none);
    let search = arguments::<Search>();
    assert_eq!((&search["type"], search["oneOf"].as_array().map(Vec::len)), (&json!("object"), Some(2)));
    // It would refuse the properties of the alternatives.
    assert_eq!(search.get("additionalProperties"), None);
    let map = arguments::<std::collections::BTreeMap<String, u8>>();
    assert_eq!(map["additionalProperties"]["type"], json!("integer"));
}
