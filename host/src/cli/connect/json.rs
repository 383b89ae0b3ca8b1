//! Edits JSON with comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::entry::Node;
use super::format_error::FormatError;

/// JSON with comments and trailing commas, as clients read it.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse(text: &str) -> Result<CstRootNode, FormatError> {
    CstRootNode::parse(text, &OPTIONS).map_err(|error| FormatError::Malformed(error.to_string()))
}

/// The table of servers. `None` if it is missing.
fn table(root: &CstRootNode, section: &str) -> Result<Option<CstObject>, FormatError> {
    let odd = |key: &str| FormatError::Unexpected { key: key.to_owned(), expected: "an object { .. }" };
    let Some(value) = root.value() else { return Ok(None) };
    let whole = value.as_object().ok_or_else(|| odd("the whole file"))?;
    let Some(property) = whole.get(section) else { return Ok(None) };
    property.object_value().map(Some).ok_or_else(|| odd(section))
}

pub(super) fn get(text: &str, section: &str, name: &str) -> Result<Option<Value>, FormatError> {
    let root = parse(text)?;
    let found = table(&root, section)?.and_then(|servers| servers.get(name)?.value()?.to_serde_value());
    Ok(found)
}

pub(super) fn set(text: &str, section: &str, name: &str, server: &Node) -> Result<String, FormatError> {
    let root = parse(text)?;
    table(&root, section)?;
    let is_new = root.value().is_none();
    let servers = root.object_value_or_set().object_value_or_set(section);
    match servers.get(name) {
        Some(own) => own.set_value(input(server)),
        None => drop(servers.append(name, input(server))),
    }
    let text = root.to_string();
    Ok(if is_new { text.trim().to_owned() + "\n" } else { text })
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, FormatError> {
    let root = parse(text)?;
    if let Some(own) = table(&root, section)?.and_then(|servers| servers.get(name)) {
        own.remove();
    }
    Ok(root.to_string())
}

fn input(node: &Node) -> CstInputValue {
    match node {
        Node::Text(text) => CstInputValue::String(text.clone()),
        Node::Number(number) => CstInputValue::Number(number.to_string()),
        Node::Bool(is_true) => CstInputValue::Bool(*is_true),
        Node::List(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Node::Map(all) => CstInputValue::Object(all.iter().map(|(key, own)| ((*key).to_owned(), input(own))).collect()),
    }
}
