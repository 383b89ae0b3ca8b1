//! JSON Schemas of providers: of the arguments of tools, and of structured results.
//!
//! A schema is a program that a stranger wrote. It is therefore bounded before it is compiled: nothing is fetched, no
//! schema refers to itself, and patterns have linear time. The work of a check is at most the number of values times the
//! number of subschemas, and that product is bounded too.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

use crate::model::bounds::{MAX_SCHEMA, MAX_SCHEMA_DEPTH, MAX_SCHEMA_PARTS, MAX_SCHEMA_PATTERNS, MAX_SCHEMA_WORK};
use crate::model::text;

/// The most memory of one compiled pattern, in bytes. The class `\w` takes about a tenth.
const PATTERN_BYTES: usize = 1 << 20;

/// The most violations that an error names.
const MAX_VIOLATIONS: usize = 3;

/// The most characters of one violation.
const MAX_VIOLATION_CHARS: usize = 200;

/// Dialects that are understood, without the fragment at the end.
const DIALECTS: [&str; 3] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
];

/// Why a schema is refused. The text continues "the schema ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It has too many bytes.
    #[error("has {bytes} bytes; the limit is {}", MAX_SCHEMA.get())]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It is no JSON, or nested too deeply for a JSON parser.
    #[error("is not JSON: {0}")]
    NotJson(String),
    /// Its root does not describe an object.
    #[error("does not have \"type\": \"object\" at its root")]
    NotAnObject,
    /// It is nested too deeply.
    #[error("is nested more than {} levels deep", MAX_SCHEMA_DEPTH.get())]
    TooDeep,
    /// With every reference replaced by its target, it has too many parts.
    #[error("has more than {} parts when its references are followed", MAX_SCHEMA_PARTS.get())]
    TooLarge,
    /// It has too many patterns.
    #[error("has more than {} patterns", MAX_SCHEMA_PATTERNS.get())]
    TooManyPatterns,
    /// It names a dialect that is not supported.
    #[error("has the unknown dialect {0}; expected JSON Schema 2020-12")]
    Dialect(String),
    /// It uses a keyword that would need other documents, or the order of evaluation.
    #[error("uses \"{0}\", which is not supported; use \"$ref\" with \"#/$defs/NAME\"")]
    Keyword(&'static str),
    /// A reference leads outside of the schema, or nowhere.
    #[error("refers to {0}; expected a place in the schema itself, such as \"#/$defs/NAME\"")]
    Reference(String),
    /// A reference leads to a part that contains it.
    #[error("refers to itself at {0}; recursive schemas are not supported")]
    Recursive(String),
    /// It has hidden or reordering characters in a place where they cannot be removed without changing what it says.
    #[error("has hidden characters in {0}; expected them nowhere, or only in titles and descriptions")]
    Hidden(String),
    /// It does not compile.
    #[error("is invalid: {0}")]
    Invalid(String),
}

/// How a document breaks a schema: the violations with their places, in one line. The texts of the document are cut and
/// cleaned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violations(String);

/// A checked schema.
pub struct Schema {
    object: Map<String, Value>,
    /// The parts of the schema, with every reference replaced by its target.
    parts: usize,
    /// The compiled schema. `None` if it has patterns, which take much memory: then it is compiled for each check.
    validator: Option<Validator>,
}

impl Schema {
    /// Reads and checks a schema.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn parse(json: &str) -> Result<Self, SchemaError> {
        if json.len() > MAX_SCHEMA.get() {
            return Err(SchemaError::TooLong { bytes: json.len() });
        }
        let not_json = |error: serde_json::Error| SchemaError::NotJson(text::excerpt(&error.to_string(), 120));
        let mut schema: Value = serde_json::from_str(json).map_err(not_json)?;
        clean(&mut schema)?;
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        let Value::Object(object) = schema else { return Err(SchemaError::NotAnObject) };
        if !is_object {
            return Err(SchemaError::NotAnObject);
        }
        if let Some(dialect) = object.get("$schema") {
            let known = dialect.as_str().is_some_and(|uri| DIALECTS.contains(&uri.trim_end_matches('#')));
            if !known {
                return Err(SchemaError::Dialect(text::quoted(dialect.as_str().unwrap_or_default(), 80)));
            }
        }
        let root = Value::Object(object);
        let mut walk = Walk::new(&root)?;
        let parts = walk.parts(&root, 0)?;
        let validator = compile(&root)?;
        let validator = (walk.patterns == 0).then_some(validator);
        let Value::Object(object) = root else { return Err(SchemaError::NotAnObject) };
        Ok(Self { object, parts, validator })
    }

    /// True if clients must repeat some of the arguments in HTTP headers (`x-mcp-header`, SEP-2243).
    pub fn has_headers(&self) -> bool {
        fn has(schema: &Map<String, Value>) -> bool {
            let fields = schema.get("properties").and_then(Value::as_object);
            let mut fields = fields.into_iter().flatten().filter_map(|(_, field)| field.as_object());
            fields.any(|field| field.contains_key("x-mcp-header") || has(field))
        }
        has(&self.object)
    }

    /// The schema as JSON.
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// Checks `value` against the schema.
    ///
    /// # Errors
    /// The violations with their places.
    pub fn check(&self, value: &Value) -> Result<(), Violations> {
        let values = count(value);
        if values.saturating_mul(self.parts) > MAX_SCHEMA_WORK.get() {
            let why = format!("there are {values} values, which is too many for a check against this schema");
            return Err(Violations(why));
        }
        match &self.validator {
            Some(validator) => violations(validator, value),
            None => {
                let root = Value::Object(self.object.clone());
                violations(&compile(&root).map_err(|error| Violations(error.to_string()))?, value)
            }
        }
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "schema of {} parts", self.parts)
    }
}

/// Keywords whose texts are for people, and mean nothing to a check.
const TEXTS: [&str; 3] = ["title", "description", "$comment"];

/// Cleans the texts for people. Clients show them, and models read them, like the description of the tool.
///
/// # Errors
/// If another text, such as the name of an argument or a choice, has hidden characters.
fn clean(value: &mut Value) -> Result<(), SchemaError> {
    // Without line breaks and tabs, which any text may have.
    let plain = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    let shown = |text: &str| {
        let plain = plain(text);
        let shown = text::excerpt(&plain, usize::MAX);
        (shown != plain).then_some(shown)
    };
    let refuse = |text: &str| shown(text).map_or(Ok(()), |_| Err(SchemaError::Hidden(text::quoted(text, 80))));
    match value {
        Value::String(text) => refuse(text),
        Value::Array(items) => items.iter_mut().try_for_each(clean),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(key, value)| {
            refuse(key)?;
            match value {
                Value::String(text) if TEXTS.contains(&key.as_str()) => {
                    shown(text).into_iter().for_each(|clean| *text = clean);
                    Ok(())
                }
                value => clean(value),
            }
        }),
        _ => Ok(()),
    }
}

fn compile(root: &Value) -> Result<Validator, SchemaError> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let options = jsonschema::options().should_validate_formats(false).with_pattern_options(patterns);
    options.build(root).map_err(|error| SchemaError::Invalid(text::excerpt(&error.to_string(), MAX_VIOLATION_CHARS)))
}

/// The first violations, each with its place.
fn violations(validator: &Validator, value: &Value) -> Result<(), Violations> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let one = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the whole".to_owned() } else { text::quoted(&place, 120) };
        format!("{place}: {}", text::excerpt(&error.to_string(), MAX_VIOLATION_CHARS))
    };
    let mut all: Vec<String> = validator.iter_errors(value).take(MAX_VIOLATIONS + 1).map(one).collect();
    if all.len() > MAX_VIOLATIONS {
        all.truncate(MAX_VIOLATIONS);
        all.push("and more".to_owned());
    }
    Err(Violations(all.join("; ")))
}

/// The number of values in a document.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>() + 1,
        Value::Object(fields) => fields.values().map(count).sum::<usize>() + 1,
        _ => 1,
    }
}

/// A walk through a schema that follows its references.
struct Walk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// The parts below each target, once they are known. `None` while they are being counted: a reference to such a
    /// target is recursive.
    targets: HashMap<*const Value, Option<usize>>,
    patterns: usize,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Result<Self, SchemaError> {
        let mut walk = Self { root, anchors: HashMap::new(), targets: HashMap::new(), patterns: 0 };
        walk.scan(root, 0)?;
        Ok(walk)
    }

    /// Finds anchors, counts patterns and refuses unsupported keywords. Visits each place once.
    fn scan(&mut self, value: &'a Value, depth: usize) -> Result<(), SchemaError> {
        if depth > MAX_SCHEMA_DEPTH.get() {
            return Err(SchemaError::TooDeep);
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.scan(item, depth + 1)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    match (key.as_str(), value) {
                        ("$dynamicRef", Value::String(_)) => return Err(SchemaError::Keyword("$dynamicRef")),
                        ("$recursiveRef", Value::String(_)) => return Err(SchemaError::Keyword("$recursiveRef")),
                        ("$id", Value::String(_)) if depth > 0 => return Err(SchemaError::Keyword("$id")),
                        ("pattern", Value::String(_)) => self.patterns += 1,
                        ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
                        _ => {}
                    }
                    self.scan(value, depth + 1)?;
                }
                if let Some(Value::String(anchor)) = fields.get("$anchor").or_else(|| fields.get("$dynamicAnchor")) {
                    self.anchors.insert(anchor, value);
                }
                match self.patterns > MAX_SCHEMA_PATTERNS.get() {
                    true => Err(SchemaError::TooManyPatterns),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The number of parts at and below `value`, with references replaced by their targets.
    fn parts(&mut self, value: &'a Value, followed: usize) -> Result<usize, SchemaError> {
        if followed > MAX_SCHEMA_DEPTH.get() {
            return Err(SchemaError::TooDeep);
        }
        let address = std::ptr::from_ref(value);
        match self.targets.get(&address) {
            Some(Some(parts)) => return Ok(*parts),
            Some(None) => return Err(SchemaError::Recursive("the place of a \"$ref\"".to_owned())),
            None => {}
        }
        let mut parts = 1usize;
        match value {
            Value::Array(items) => {
                for item in items {
                    parts = parts.saturating_add(self.parts(item, followed)?);
                }
            }
            Value::Object(fields) => {
                self.targets.insert(address, None);
                for (key, field) in fields {
                    match (key.as_str(), field) {
                        ("$ref", Value::String(reference)) => {
                            let target = self.target(reference)?;
                            let of_target = self.parts(target, followed + 1).map_err(|error| match error {
                                SchemaError::Recursive(_) => SchemaError::Recursive(text::quoted(reference, 80)),
                                error => error,
                            })?;
                            parts = parts.saturating_add(of_target);
                        }
                        // Their parts count where they are referred to, and once here.
                        _ => parts = parts.saturating_add(self.parts(field, followed)?),
                    }
                }
                self.targets.insert(address, Some(parts));
            }
            _ => {}
        }
        if parts > MAX_SCHEMA_PARTS.get() {
            return Err(SchemaError::TooLarge);
        }
        Ok(parts)
    }

    fn target(&self, reference: &str) -> Result<&'a Value, SchemaError> {
        let unknown = || SchemaError::Reference(text::quoted(reference, 80));
        let fragment = reference.strip_prefix('#').ok_or_else(unknown)?;
        let decoded = percent_encoding::percent_decode_str(fragment).decode_utf8().map_err(|_| unknown())?;
        match decoded.starts_with('/') || decoded.is_empty() {
            true => self.root.pointer(&decoded).ok_or_else(unknown),
            false => self.anchors.get(&*decoded).copied().ok_or_else(unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(schema: Value) -> Result<Schema, SchemaError> {
        Schema::parse(&schema.to_string())
    }

    #[test]
    fn arguments_are_checked_and_violations_name_their_place() {
        let schema = parse(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "home", "type": "object", "properties": { "city": { "type": "string", "pattern": "^[A-Z]" } } } },
            "properties": { "month": { "type": "integer", "maximum": 12 }, "to": { "$ref": "#/$defs/address" }, "by": { "$ref": "#home" } },
            "required": ["month"],
            "additionalProperties": false
        }))
        .unwrap();
        assert_eq!(schema.check(&json!({ "month": 2, "to": { "city": "Bonn" } })), Ok(()));
        for (wrong, place) in [
            (json!({ "month": 13 }), "\"/month\": 13 is greater"),
            (json!({ "month": 1, "to": { "city": "bonn" } }), "\"/to/city\""),
            (json!({ "month": 1, "by": { "city": 5 } }), "\"/by/city\""),
            (json!({}), "the whole: \"month\" is a required"),
            (json!({ "month": 1, "x": 1 }), "the whole: Additional"),
        ] {
            let why = schema.check(&wrong).unwrap_err().to_string();
            assert!(why.contains(place), "{wrong}: {why}");
        }
    }

    #[test]
    fn schemas_that_cost_too_much_or_reach_out_are_refused() {
        let doubling: Map<String, Value> = (0..20)
            .map(|n| (format!("d{n}"), json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }, { "$ref": format!("#/$defs/d{}", n + 1) }] })))
            .chain([("d20".to_owned(), json!(true))])
            .collect();
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
        let patterns: Vec<Value> = (0..40).map(|n| json!({ "pattern": format!("a{n}") })).collect();
        for (schema, why) in [
            (json!({ "type": "object", "$defs": doubling, "$ref": "#/$defs/d0" }), "parts"),
            (json!({ "type": "object", "properties": { "a": { "$ref": "#" } } }), "refers to itself"),
            (
                json!({ "type": "object", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
                "refers to itself",
            ),
            (json!({ "type": "object", "allOf": [deep] }), "levels deep"),
            (json!({ "type": "object", "anyOf": patterns }), "patterns"),
            (json!({ "type": "object", "$ref": "https://evil.example/s" }), "https://evil.example/s"),
            (json!({ "type": "object", "$ref": "file:///etc/passwd" }), "file:///etc/passwd"),
            (json!({ "type": "object", "$ref": "#/nowhere" }), "#/nowhere"),
            (json!({ "type": "object", "properties": { "a": { "$id": "x:y", "$ref": "#" } } }), "\"$id\""),
            (json!({ "type": "object", "properties": { "a": { "$dynamicRef": "#a" } } }), "\"$dynamicRef\""),
            (json!({ "type": "object", "$schema": "https://evil.example/dialect" }), "unknown dialect"),
            (json!({ "type": "array" }), "\"type\": \"object\""),
            (json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }), "invalid"),
            (json!({ "type": "object", "properties": { "a": { "pattern": "(a{1000}){1000}" } } }), "invalid"),
            (json!({ "type": "object", "properties": { "a": { "type": "text" } } }), "invalid"),
            (json!(true), "\"type\": \"object\""),
        ] {
            let error = parse(schema.clone()).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(why), "{schema}: {error}");
        }
        assert!(matches!(Schema::parse("{"), Err(SchemaError::NotJson(_))));
        let long = json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA.get()) });
        assert!(matches!(parse(long), Err(SchemaError::TooLong { .. })));
    }

    #[test]
    fn hidden_characters_are_removed_from_texts_and_refused_elsewhere() {
        let field =
            json!({ "type": "string", "title": "a\u{202e}b", "description": "c\u{1b}[31m\nd", "default": "x\ny" });
        let schema = parse(json!({ "type": "object", "properties": { "a": field } })).unwrap();
        let field = &schema.object()["properties"]["a"];
        assert_eq!((&field["title"], &field["description"]), (&json!("ab"), &json!("c[31m d")));
        assert_eq!(field["default"], "x\ny");
        for hidden in [
            json!({ "type": "object", "properties": { "a\u{200b}": {} } }),
            json!({ "type": "object", "properties": { "a": { "enum": ["x\u{202e}"] } } }),
            json!({ "type": "object", "properties": { "a": { "default": { "b": "\u{1b}" } } } }),
            json!({ "type": "object", "required": ["a\u{e0041}"] }),
        ] {
            let error = parse(hidden.clone()).map(|_| ()).unwrap_err();
            assert!(matches!(error, SchemaError::Hidden(_)), "{hidden}: {error}");
        }
    }

    #[test]
    fn the_work_of_a_check_is_bounded() {
        let parts: Vec<Value> = (0..1000).map(|n| json!({ "minimum": n })).collect();
        let schema =
            parse(json!({ "type": "object", "properties": { "a": { "items": { "anyOf": parts } } } })).unwrap();
        assert_eq!(schema.check(&json!({ "a": [2000] })), Ok(()));
        let why = schema.check(&json!({ "a": vec![1; 100_000] })).unwrap_err().to_string();
        assert!(why.contains("too many"), "{why}");
    }

    #[test]
    fn a_pattern_takes_linear_time() {
        let schema = parse(json!({ "type": "object", "properties": { "a": { "pattern": "^(a+)+$" } } })).unwrap();
        assert!(schema.check(&json!({ "a": format!("{}b", "a".repeat(100_000)) })).is_err());
    }
}
