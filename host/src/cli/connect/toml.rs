//! Edits TOML.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::entry::Node;
use super::format_error::FormatError;
use crate::config::EditableToml;

fn parse(text: &str) -> Result<EditableToml, FormatError> {
    EditableToml::parse(text).map_err(|error| FormatError::Malformed(error.to_string().trim_end().to_owned()))
}

fn odd(key: &str) -> FormatError {
    FormatError::Unexpected { key: key.to_owned(), expected: "a table" }
}

/// The table of servers. `None` if it is missing.
fn table<'d>(document: &'d mut DocumentMut, section: &str) -> Result<Option<&'d mut dyn TableLike>, FormatError> {
    match document.get_mut(section) {
        None => Ok(None),
        Some(servers) => servers.as_table_like_mut().map(Some).ok_or_else(|| odd(section)),
    }
}

pub(super) fn get(text: &str, section: &str, name: &str) -> Result<Option<Value>, FormatError> {
    let mut text = parse(text)?;
    let Some(servers) = table(&mut text.document, section)? else { return Ok(None) };
    let Some(own) = servers.get(name) else { return Ok(None) };
    Ok(Some(read(own)))
}

/// A value as JSON. Values that belljar never writes become null.
fn read(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return Value::Object(table.iter().map(|(key, own)| (key.to_owned(), read(own))).collect());
    }
    if let Some(list) = item.as_array() {
        return list.iter().map(|own| own.as_str().map_or(Value::Null, Value::from)).collect();
    }
    let number = || item.as_integer().map(Value::from);
    item.as_str().map(Value::from).or_else(number).or_else(|| item.as_bool().map(Value::from)).unwrap_or_default()
}

pub(super) fn set(text: &str, section: &str, name: &str, server: &Node) -> Result<String, FormatError> {
    let mut text = parse(text)?;
    let is_first = text.document.is_empty();
    if table(&mut text.document, section)?.is_none() {
        let mut servers = Table::new();
        servers.set_implicit(true);
        text.document.insert(section, Item::Table(servers));
    }
    let Some(servers) = table(&mut text.document, section)? else { return Err(odd(section)) };
    if servers.get(name).is_none() {
        let mut own = Table::new();
        own.decor_mut().set_prefix(if is_first { "" } else { "\n" });
        servers.insert(name, Item::Table(own));
    }
    let own = servers.get_mut(name).and_then(Item::as_table_like_mut).ok_or_else(|| odd(name))?;
    let Node::Map(fields) = server else { return Err(odd(name)) };
    let old: Vec<String> = own.iter().map(|(key, _)| key.to_owned()).collect();
    for key in old.iter().filter(|key| ["command", "args", "url"].contains(&key.as_str())) {
        if !fields.iter().any(|(new, _)| new == key) {
            own.remove(key);
        }
    }
    for (key, field) in fields {
        own.insert(key, item(field));
    }
    Ok(text.to_text())
}

fn item(node: &Node) -> Item {
    match node {
        Node::Text(text) => value(text),
        Node::Number(number) => value(i64::from(*number)),
        Node::Bool(is_true) => value(*is_true),
        Node::List(all) => value(all.iter().filter_map(|own| item(own).into_value().ok()).collect::<Array>()),
        Node::Map(all) => {
            let mut table = Table::new();
            all.iter().for_each(|(key, own)| drop(table.insert(key, item(own))));
            Item::Table(table)
        }
    }
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, FormatError> {
    let mut text = parse(text)?;
    if let Some(servers) = table(&mut text.document, section)? {
        servers.remove(name);
    }
    Ok(text.to_text())
}
