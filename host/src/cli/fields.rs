//! Fields of a flat JSON Schema, as a person types them: the flags of `belljar call`, and forms on the terminal.
//!
//! The schema is a provider's. Its texts are cleaned before they are shown.

use std::fmt;

use serde_json::{Map, Value};

use crate::model::{Prompt, text};

/// The most characters of a name, a choice or a default that is shown.
pub(super) const MAX_NAME_CHARS: usize = 80;

/// The most characters of a description that is shown.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// References that are followed before a schema counts as unknown.
const MAX_REFERENCES: usize = 8;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    /// A string.
    Text,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// Anything else: the value is typed as JSON.
    Json,
}

impl FieldType {
    fn of(schema: &Value) -> Self {
        match type_name(schema) {
            Some("string") => Self::Text,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            // A list of choices names no type if each choice is a text.
            None if choices(schema).iter().any(|choice| choice.value.is_string()) => Self::Text,
            _ => Self::Json,
        }
    }

    /// The value that `typed` stands for.
    fn parse(self, typed: &str) -> Result<Value, String> {
        let wrong = || format!("expected {self}");
        match self {
            Self::Text => Ok(typed.into()),
            Self::Integer => {
                let whole = typed.parse::<i64>().map(Value::from).or_else(|_| typed.parse::<u64>().map(Value::from));
                whole.map_err(|_| wrong())
            }
            Self::Number => {
                let number: Option<Value> = serde_json::from_str(typed).ok();
                number.filter(Value::is_number).ok_or_else(wrong)
            }
            Self::Boolean => match typed.to_lowercase().as_str() {
                "true" | "yes" | "y" => Ok(true.into()),
                "false" | "no" | "n" => Ok(false.into()),
                _ => Err(wrong()),
            },
            Self::Json => serde_json::from_str(typed).map_err(|_| wrong()),
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Integer => "a whole number such as 5",
            Self::Number => "a number such as 0.5",
            Self::Boolean => "true or false",
            Self::Json => "JSON such as [1] or \"text\"",
        })
    }
}

/// One of the values that a field may have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// The value.
    pub(super) value: Value,
    /// The text for people.
    label: String,
}

impl Choice {
    /// The value as it is typed.
    fn typed(&self) -> String {
        shown(&self.value)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = text::excerpt(&self.typed(), MAX_NAME_CHARS);
        match self.label.is_empty() || self.label == self.typed() {
            true => f.write_str(&value),
            false => write!(f, "{value} ({})", text::excerpt(&self.label, MAX_NAME_CHARS)),
        }
    }
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// The name, as the schema has it.
    pub(super) name: String,
    /// The title, or else nothing; cleaned.
    pub(super) title: String,
    /// The description; cleaned.
    pub(super) description: String,
    /// The type of the value, or of each value of a list.
    pub(super) kind: FieldType,
    /// True if the value is a list.
    pub(super) is_list: bool,
    /// True if it must have a value.
    pub(super) is_required: bool,
    /// The only values. Empty: any.
    pub(super) choices: Vec<Choice>,
    /// The value if none is given.
    pub(super) default: Option<Value>,
}

/// A value as a person types it: a text without its quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The type that a schema names, without "null".
fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(all) => {
            let mut named = all.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            named.next().filter(|_| named.next().is_none())
        }
        one => one.as_str(),
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn choices(schema: &Value) -> Vec<Choice> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let labels = schema.get("enumNames").and_then(Value::as_array);
        let label = |at: usize| labels.and_then(|all| all.get(at)).and_then(Value::as_str).unwrap_or_default();
        let all = values.iter().enumerate().filter(|(_, value)| !value.is_null());
        return all.map(|(at, value)| Choice { value: value.clone(), label: label(at).to_owned() }).collect();
    }
    let branches = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)).and_then(Value::as_array);
    let choice = |branch: &Value| {
        let label = branch.get("title").and_then(Value::as_str).unwrap_or_default();
        Some(Choice { value: branch.get("const")?.clone(), label: label.to_owned() })
    };
    branches.and_then(|all| all.iter().map(choice).collect()).unwrap_or_default()
}

/// The schema itself: behind its references, and without the branch for "null".
fn resolved<'s>(mut schema: &'s Value, root: &'s Map<String, Value>) -> &'s Value {
    for _ in 0..MAX_REFERENCES {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|one| one.strip_prefix("#/"));
        let target = reference.and_then(|path| {
            let mut steps = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
            let first = root.get(&steps.next()?)?;
            steps.try_fold(first, |at, step| at.get(&step))
        });
        let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)).and_then(Value::as_array);
        let only = branches.filter(|all| all.iter().any(is_null)).and_then(|all| {
            let mut others = all.iter().filter(|one| !is_null(one));
            others.next().filter(|_| others.next().is_none())
        });
        let Some(next) = target.or(only) else { break };
        schema = next;
    }
    schema
}

impl Field {
    /// The fields of an object's schema, the required ones first.
    pub(super) fn all_of(schema: &Map<String, Value>) -> Vec<Self> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut all: Vec<_> = fields.map(|(name, field)| Self::of(name, field, schema, is_required(name))).collect();
        all.sort_by_key(|field| !field.is_required);
        all
    }

    /// The arguments of a prompt.
    pub(super) fn of_prompt(prompt: &Prompt) -> Vec<Self> {
        let argument = |one: &crate::model::PromptArgument| Self {
            name: one.name.clone(),
            title: text::excerpt(one.title.as_deref().unwrap_or_default(), MAX_NAME_CHARS),
            description: text::excerpt(one.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION_CHARS),
            kind: FieldType::Text,
            is_list: false,
            is_required: one.required,
            choices: Vec::new(),
            default: None,
        };
        prompt.arguments.iter().map(argument).collect()
    }

    fn of(name: &str, outer: &Value, root: &Map<String, Value>, is_required: bool) -> Self {
        let schema = resolved(outer, root);
        let is_list = type_name(schema) == Some("array");
        let one = match is_list {
            true => schema.get("items").map_or(&Value::Null, |items| resolved(items, root)),
            false => schema,
        };
        let told = |key: &str, max| {
            let told = [outer, schema].iter().find_map(|from| from.get(key).and_then(Value::as_str));
            text::excerpt(told.unwrap_or_default(), max)
        };
        Self {
            name: name.to_owned(),
            title: told("title", MAX_NAME_CHARS),
            description: told("description", MAX_DESCRIPTION_CHARS),
            kind: FieldType::of(one),
            is_list,
            is_required,
            choices: choices(one),
            default: [outer, schema].iter().find_map(|from| from.get("default")).filter(|one| !one.is_null()).cloned(),
        }
    }

    /// The value that `typed` stands for. Of a list: one of its values.
    ///
    /// # Errors
    /// What was expected instead. The text begins with "expected".
    pub(super) fn parse(&self, typed: &str) -> Result<Value, String> {
        if self.choices.is_empty() {
            return self.kind.parse(typed);
        }
        let found = self.choices.iter().find(|choice| choice.typed() == typed);
        found.map(|choice| choice.value.clone()).ok_or_else(|| format!("expected {}", self.expected()))
    }

    /// What a value must be: the type, or the choices.
    pub(super) fn expected(&self) -> String {
        let choices: Vec<String> = self.choices.iter().map(ToString::to_string).collect();
        match choices.as_slice() {
            [] => self.kind.to_string(),
            [only] => only.clone(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    /// The default as it is typed; cleaned.
    pub(super) fn shown_default(&self) -> Option<String> {
        self.default.as_ref().map(|value| text::excerpt(&shown(value), MAX_NAME_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: Value) -> Field {
        let root = json!({ "type": "object", "properties": { "x": schema }, "$defs": {
            "Colour": { "enum": ["red", "green"], "description": "A colour" },
            "a/b": { "type": "integer" },
        }});
        Field::all_of(root.as_object().unwrap()).remove(0)
    }

    #[test]
    fn a_field_has_the_type_of_its_schema() {
        for (schema, kind, is_list) in [
            (json!({ "type": "string" }), FieldType::Text, false),
            (json!({ "type": ["null", "integer"] }), FieldType::Integer, false),
            (json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] }), FieldType::Number, false),
            (json!({ "type": "array", "items": { "type": "boolean" } }), FieldType::Boolean, true),
            (
                json!({ "anyOf": [{ "type": "array", "items": { "$ref": "#/$defs/Colour" } }, { "type": "null" }] }),
                FieldType::Text,
                true,
            ),
            (json!({ "$ref": "#/$defs/a~1b" }), FieldType::Integer, false),
            (json!({ "$ref": "#/$defs/none" }), FieldType::Json, false),
            (json!({ "type": ["string", "integer"] }), FieldType::Json, false),
            (json!({ "type": "object" }), FieldType::Json, false),
            (json!({ "type": "array" }), FieldType::Json, true),
            (json!(true), FieldType::Json, false),
            (json!({ "oneOf": [{ "const": "r", "title": "Red" }] }), FieldType::Text, false),
        ] {
            let field = field(schema.clone());
            assert_eq!((field.kind, field.is_list), (kind, is_list), "{schema}");
        }
    }

    #[test]
    fn a_value_is_typed_without_quotes() {
        let parse = |schema: Value, typed: &str| field(schema).parse(typed);
        assert_eq!(parse(json!({ "type": "string" }), "5"), Ok(json!("5")));
        assert_eq!(parse(json!({ "type": "integer" }), "-5"), Ok(json!(-5)));
        assert_eq!(parse(json!({ "type": "integer" }), "18446744073709551615"), Ok(json!(u64::MAX)));
        assert_eq!(parse(json!({ "type": "integer" }), "5.5").unwrap_err(), "expected a whole number such as 5");
        assert_eq!(parse(json!({ "type": "number" }), "5e-1"), Ok(json!(0.5)));
        for wrong in ["", "NaN", "true", "\"5\"", "1 2"] {
            assert!(parse(json!({ "type": "number" }), wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse(json!({ "type": "boolean" }), "No"), Ok(json!(false)));
        assert!(parse(json!({ "type": "boolean" }), "maybe").is_err());
        assert_eq!(parse(json!({ "type": "object" }), "{\"a\":[1]}"), Ok(json!({ "a": [1] })));
        assert!(parse(json!({}), "plain").is_err());
    }

    #[test]
    fn a_choice_is_one_of_the_values_of_the_schema() {
        let colour = field(json!({ "$ref": "#/$defs/Colour", "default": "green" }));
        assert_eq!(colour.parse("red"), Ok(json!("red")));
        assert_eq!(colour.parse("blue").unwrap_err(), "expected red or green");
        assert_eq!((colour.description.as_str(), colour.shown_default().as_deref()), ("A colour", Some("green")));
        let named = field(json!({ "type": "integer", "enum": [1, 2], "enumNames": ["one", "two"] }));
        assert_eq!((named.parse("2"), named.expected()), (Ok(json!(2)), "1 (one) or 2 (two)".to_owned()));
        let of_list = field(json!({ "type": "array", "items": { "anyOf": [{ "const": "r", "title": "Red" }] } }));
        assert_eq!((of_list.parse("r"), of_list.is_list), (Ok(json!("r")), true));
    }

    #[test]
    fn texts_of_a_schema_are_cleaned() {
        let field = field(
            json!({ "type": "string", "title": "a\u{1b}[2Jb", "description": "x\ny\u{202e}z", "default": "\u{7}d", "enum": ["\u{1b}e"] }),
        );
        assert_eq!((field.title.as_str(), field.description.as_str()), ("a[2Jb", "x yz"));
        assert_eq!((field.shown_default().unwrap(), field.expected()), ("d".to_owned(), "e".to_owned()));
    }
}
