//! Hostile rows about JSON Schemas: a schema is a program of a stranger, which belljar compiles and runs.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::expect::cut;
use crate::provider_tools::{call_of, listed, names, notices, refused, tools};
use crate::row::{Row, Stops};

/// A row whose mount has a tool with each of these schemas, and a good one. Only the good one may be listed.
fn refuses(id: &'static str, attack: &'static str, schemas: Vec<Value>, why: &'static str) -> Row {
    let count = schemas.len();
    let bad = schemas.into_iter().enumerate().map(|(n, schema)| match n % 2 {
        0 => json!({ "name": format!("bad{n}"), "input": schema }),
        _ => json!({ "name": format!("bad{n}"), "output": schema }),
    });
    let all: Vec<Value> = bad.chain([json!({ "name": "good" })]).collect();
    tools(id, attack, Value::from(all)).act(move |context| {
        assert_eq!(names(&listed(context, "")), [format!("{}_good", context.name(""))], "listed tools");
        let said = notices(context, "tools/list");
        assert!(said.contains(why), "{said}");
        for n in 0..count {
            refused(&call_of(context, "", &format!("bad{n}"), json!({})), "no-tool");
        }
        cut(&said)
    })
}

/// A schema with one argument.
fn argument(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema } })
}

pub(crate) fn rows() -> Vec<Row> {
    let level = |n: usize| {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        (format!("d{n}"), json!({ "allOf": [next, next] }))
    };
    let doubling: Map<String, Value> = (0..16).map(level).chain([("d16".to_owned(), json!(true))]).collect();
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
    let patterns: Vec<Value> = (0..40).map(|n| json!({ "pattern": format!("a{n}") })).collect();
    let minima: Vec<Value> = (0..1000).map(|n| json!({ "minimum": n })).collect();
    vec![
        refuses(
            "TOOL-41",
            "schemas that lead to other places: a server, a file, the metadata of a cloud",
            [
                "http://{listener}/schema",
                "https://{listener}/schema",
                "file://{canary}",
                "//{listener}/schema",
                "http://169.254.169.254/latest",
                "{canary}",
            ]
            .into_iter()
            .map(|place| argument(json!({ "$ref": place })))
            .collect(),
            "expected a place in the schema itself",
        )
        .stopped(Stops::Structure("a reference outside of the schema is refused, and belljar has no code that follows it")),
        refuses(
            "TOOL-42",
            "schemas that refer to themselves, directly and in a circle",
            vec![
                argument(json!({ "$ref": "#" })),
                json!({ "type": "object", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
                json!({ "type": "object", "$defs": { "a": { "$anchor": "x", "items": { "$ref": "#x" } } } }),
                argument(json!({ "items": { "$ref": "#/properties/a" } })),
                argument(json!({ "items": { "$ref": "#/properties/%61" } })),
            ],
            "refers to itself",
        )
        .stopped(Stops::Structure("a walk through the schema finds each circle before it is compiled")),
        refuses(
            "TOOL-43",
            "keywords whose meaning depends on the way to them, and schemas within schemas",
            vec![
                argument(json!({ "$dynamicRef": "#x" })),
                argument(json!({ "$recursiveRef": "#" })),
                argument(json!({ "$id": "http://{listener}/x", "$ref": "#" })),
            ],
            "is not supported",
        )
        .stopped(Stops::Structure("these keywords are refused")),
        refuses(
            "TOOL-44",
            "a schema of which each part refers twice to the next: 65,536 parts",
            vec![json!({ "type": "object", "$defs": doubling, "$ref": "#/$defs/d0" })],
            "parts",
        )
        .stopped_by(&["schema"]),
        refuses("TOOL-45", "a schema of 100 levels", vec![json!({ "type": "object", "allOf": [deep] })], "levels deep")
            .stopped_by(&["schema"]),
        refuses(
            "TOOL-46",
            "a schema of 33 KiB",
            vec![json!({ "type": "object", "description": "x".repeat(33 << 10) })],
            "the limit is 32768",
        )
        .stopped_by(&["schema"]),
        refuses("TOOL-47", "a schema with 40 patterns", vec![json!({ "type": "object", "anyOf": patterns })], "patterns")
            .stopped_by(&["schema"]),
        refuses(
            "TOOL-48",
            "texts that are no schema: unknown dialects, no object, no JSON, wrong keywords, patterns that take a gigabyte",
            vec![
                json!({ "type": "object", "$schema": "https://evil.example/dialect" }),
                json!({ "type": "object", "$schema": 7 }),
                json!({ "type": "array" }),
                json!({ "properties": {} }),
                json!("{"),
                json!("true"),
                json!("null"),
                json!(""),
                json!("{\"type\":\"object\"} {}"),
                argument(json!({ "type": "text" })),
                argument(json!({ "pattern": "(" })),
                argument(json!({ "pattern": "(a{1000}){1000}" })),
                argument(json!({ "pattern": "(?=a)b" })),
            ],
            "the schema of its",
        )
        .stopped(Stops::Structure("a schema is parsed and compiled when it is listed")),
        tools(
            "TOOL-49",
            "a pattern that takes exponential time in other engines, and an argument for it",
            json!([{ "name": "attack", "input": argument(json!({ "type": "string", "pattern": "^(a+)+$" })) },
                { "name": "names", "input": { "type": "object", "patternProperties": { "^(([a-z])+.)+[A-Z]([a-z])+$": {} }, "additionalProperties": false } }]),
        )
        .act(|context| {
            let began = Instant::now();
            let long = format!("{}!", "a".repeat(100_000));
            let said = refused(&call_of(context, "", "attack", json!({ "a": long })), "bad-argument");
            refused(&call_of(context, "", "names", json!({ long: 1 })), "bad-argument");
            assert!(began.elapsed() < Duration::from_secs(10), "after {:?}", began.elapsed());
            said
        })
        .stopped(Stops::Structure("patterns are matched in linear time")),
        tools(
            "TOOL-50",
            "100,000 values against a schema of 1,000 parts",
            json!([{ "name": "attack", "input": argument(json!({ "items": { "anyOf": minima } })) }]),
        )
        .act(|context| {
            let fine = call_of(context, "", "attack", json!({ "a": [2000] }));
            assert!(fine.is_ok(), "{fine:?}");
            let answer = call_of(context, "", "attack", json!({ "a": vec![-1; 100_000] }));
            let said = refused(&answer, "bad-argument");
            assert!(said.contains("too many"), "{said}");
            said
        })
        .stopped_by(&["schema"]),
    ]
}
