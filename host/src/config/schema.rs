//! The JSON schema of `belljar.toml`, made from the structs of `config/file.rs` and from the list of grants. Editors complete
//! and check the file with it. `docs/reference/belljar.schema.json` is a copy of [`text`].

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::file::File;
use super::value::{BOUNDS, KIND};

/// The schema as JSON text, with a line break at its end.
pub fn text() -> String {
    let mut schema = annotated();
    walk(&mut schema, &print_bounds);
    format!("{schema:#}\n")
}

/// The schema with [`BOUNDS`] and [`KIND`].
fn annotated() -> Value {
    // Draft 7 is the newest one that the editors' plugins for TOML read. They show the description of a subschema only where
    // it stands, not behind a reference.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<File>());
    walk(&mut schema, &remove_null);
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "belljar.toml".into());
    }
    schema
}

/// Calls `change` for every object of a JSON value, inner ones first.
fn walk(value: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(|value| walk(value, change));
            change(object);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| walk(value, change)),
        _ => {}
    }
}

/// Removes null: TOML has no null, and schemars allows it for every `Option`. Joins the lines of the description.
fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.retain(|alternative| !is_null(alternative));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.entry(key).or_insert(value);
            }
        }
    }
}

/// Moves the bounds into the description: JSON schema has no bounds for text such as `"5s"`.
fn print_bounds(schema: &mut Map<String, Value>) {
    schema.remove(KIND);
    if let Some(Value::String(bounds)) = schema.remove(BOUNDS)
        && let Some(Value::String(description)) = schema.get_mut("description")
    {
        description.push_str(&format!(" Bounds: {bounds}."));
    }
}
