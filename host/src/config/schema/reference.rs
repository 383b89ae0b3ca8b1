//! The tables of `docs/reference/configuration.md`, made from the JSON schema.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::value::{BOUNDS, KIND};
use super::annotated;

/// The tables, one section for each table of the file.
pub(super) fn tables() -> String {
    let mut out = String::new();
    section(&mut out, "", &annotated());
    out.trim_end().to_owned() + "\n"
}

/// The section of one table, and the sections of the tables in it. `path` is empty for the top level.
fn section(out: &mut String, path: &str, table: &Value) {
    if path.is_empty() {
        out.push_str("## Top level\n\n");
    }
    let Some(properties) = table["properties"].as_object() else { return };
    let rows: Vec<_> = properties.iter().filter(|(_, schema)| !is_section(schema)).collect();
    // A table that has only tables has no keys of its own.
    if !rows.is_empty() {
        out.push_str("| Key | Type | Default | Bounds | Description | Example |\n|---|---|---|---|---|---|\n");
        rows.iter().for_each(|(key, schema)| row(out, key, schema));
        out.push('\n');
    }
    for (key, schema) in properties {
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let description = schema["description"].as_str().unwrap_or_default();
        if schema["properties"].is_object() {
            let _ = write!(out, "## `[{inner}]`\n\n{description}\n\n");
            match inner.as_str() {
                "mounts.NAME.limits" => out.push_str("The keys are those of [`[limits]`](#limits).\n\n"),
                _ => section(out, &inner, schema),
            }
        } else if schema["items"]["properties"].is_object() {
            let _ = write!(out, "## `[[{inner}]]`\n\n{description}\n\n");
            section(out, &inner, &schema["items"]);
        } else if schema["additionalProperties"]["properties"].is_object() {
            let _ = write!(out, "## `[{inner}.NAME]`\n\n{description}\n\n");
            section(out, &format!("{inner}.NAME"), &schema["additionalProperties"]);
        } else if let Some(forms) = forms(&schema["additionalProperties"]) {
            let _ = write!(out, "## `[{inner}]`\n\n{description}\n\n");
            out.push_str("Each value has one of these forms:\n\n");
            for form in forms {
                out.push_str(&self::form(form));
            }
            out.push('\n');
        }
    }
}

/// Whether a property has a section of its own.
fn is_section(schema: &Value) -> bool {
    let values = &schema["additionalProperties"];
    [schema, &schema["items"], values].iter().any(|schema| schema["properties"].is_object()) || forms(values).is_some()
}

/// The alternative forms of a value.
fn forms(schema: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"].iter().find_map(|key| schema[key].as_array())
}

/// One form of a value, as a line of a list.
fn form(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else { return format!("* {}\n", type_of(schema)) };
    let keys = properties.iter().map(|(key, schema)| {
        let description =
            schema["description"].as_str().map(|text| format!(": {}", text.trim_end_matches('.'))).unwrap_or_default();
        format!("`{key}` ({}){description}", type_of(schema))
    });
    let description = schema["description"].as_str().map(|text| format!(" {text}")).unwrap_or_default();
    format!("* a table with {}.{description}\n", keys.collect::<Vec<_>>().join("; "))
}

/// One row of a table.
fn row(out: &mut String, key: &str, schema: &Value) {
    let default = match (&schema["default"], schema["x-taplo"]["docs"]["defaultValue"].as_str()) {
        (_, Some(words)) => words.to_owned(),
        (Value::Null, None) => "none".to_owned(),
        (value, None) => format!("`{}`", toml(value)),
    };
    let bounds = schema[BOUNDS].as_str().unwrap_or_default();
    let description = schema["description"].as_str().unwrap_or_default();
    let examples = schema["examples"].as_array().map(Vec::as_slice).unwrap_or_default();
    let examples: Vec<String> = examples.iter().map(|example| format!("`{key} = {}`", toml(example))).collect();
    let cells =
        [format!("`{key}`"), type_of(schema), default, bounds.to_owned(), description.to_owned(), examples.join(", ")];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// The type of a value, in words.
fn type_of(schema: &Value) -> String {
    if let Some(kind) = schema[KIND].as_str() {
        return kind.to_owned();
    }
    let words = schema["enum"].as_array().map(|words| words.iter().map(toml).collect::<Vec<_>>());
    let words = words.or_else(|| {
        let forms = forms(schema)?;
        forms.iter().map(|form| form.get("const").map(toml)).collect::<Option<Vec<_>>>()
    });
    if let Some(words) = words {
        return words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match schema["type"].as_str() {
        Some("string") => "text".to_owned(),
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("array") => format!("array of {}", type_of(&schema["items"])),
        Some("object") => format!("table of {}", type_of(&schema["additionalProperties"])),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// A JSON value as TOML.
fn toml(value: &Value) -> String {
    toml::Value::try_from(value).unwrap().to_string()
}
