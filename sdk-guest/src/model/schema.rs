//! JSON Schemas of Rust types, in as few words as possible: a model reads them before each conversation.

use schemars::JsonSchema;
use schemars::Schema;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Map, Value, json};

/// The keywords that combine schemas. `additionalProperties` does not see the properties of the combined ones.
const COMBINATORS: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "unevaluatedProperties"];

/// The schema of a tool's arguments: an object without further properties.
pub(super) fn arguments<T: JsonSchema>() -> Value {
    let mut schema = caller_side::<T>();
    close(&mut schema);
    object(schema)
}

/// The schema of a form: an object.
pub(super) fn form<T: JsonSchema>() -> Value {
    object(caller_side::<T>())
}

/// The schema of a structured result: an object.
pub(super) fn output<T: JsonSchema>() -> Value {
    object(root::<T>(Contract::Serialize))
}

/// The schema of a type that a caller writes.
fn caller_side<T: JsonSchema>() -> Schema {
    let mut schema = root::<T>(Contract::Deserialize);
    RecursiveTransform(absent_instead_of_null).transform(&mut schema);
    schema
}

/// The schema of a type, without references, and without words that say nothing to a model.
fn root<T: JsonSchema>(contract: Contract) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The tool has a name and a description of its own.
    schema.remove("title");
    schema.remove("description");
    RecursiveTransform(without_rust_formats).transform(&mut schema);
    schema
}

/// Says that the root is an object, if nothing says what it is.
fn object(mut schema: Schema) -> Value {
    schema.ensure_object().entry("type").or_insert_with(|| "object".into());
    schema.to_value()
}

/// Refuses properties that the schema does not name. Leaves a schema as it is that accepts any object.
fn close(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("type") == Some(&json!("object")) && !COMBINATORS.iter().any(|word| object.contains_key(*word)) {
        object.entry("properties").or_insert_with(|| Map::new().into());
        object.entry("additionalProperties").or_insert(false.into());
    }
}

/// Removes the formats that name a Rust type of numbers. The limits of the type are in `minimum` and `maximum`.
fn without_rust_formats(schema: &mut Schema) {
    let names_number = |format: &str| ["int", "uint", "float", "double"].iter().any(|start| format.starts_with(start));
    if schema.get("format").and_then(Value::as_str).is_some_and(names_number) {
        schema.remove("format");
    }
}

/// Removes `null` from optional properties: the caller leaves them out.
fn absent_instead_of_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        if let Some(property) = property.as_object_mut() {
            remove_null(property);
        }
    }
}

fn remove_null(property: &mut Map<String, Value>) {
    if property.get("default") == Some(&Value::Null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let null = json!({ "type": "null" });
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        choices.retain(|choice| *choice != null);
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            property.remove("anyOf");
            // The description of the property is nearer than that of its type.
            for (key, value) in only {
                property.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
