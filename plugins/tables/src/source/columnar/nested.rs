//! Puts nested values together from leaf columns, by their definition and repetition levels.

use std::fmt::Write as _;

use belljar_guest::{Error, Result};
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::schema::types::Type;

use super::leaf::Leaf;
use crate::cell::Value;

/// The deepest nesting that is read.
const DEEPEST: usize = 64;

/// A field of the schema.
#[derive(Debug)]
pub(crate) struct Node {
    /// The definition level from which the field is present. `None` for a required field.
    optional: Option<i16>,
    /// The number of the first leaf below, counted within the file.
    pub(crate) first: usize,
    /// The number of leaves below.
    pub(crate) leaves: usize,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Leaf,
    Record(Vec<(String, Node)>),
    /// A repeated field, with the definition level of an element and the repetition level of a further one.
    List(i16, i16, Box<Node>),
    Map(i16, i16, Box<Node>, Box<Node>),
}

impl Node {
    /// The node of a top-level field. `first` is the number of its first leaf.
    pub(crate) fn of(field: &Type, first: usize) -> Result<Node> {
        node(field, first, 0, 0, 0)
    }

    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self.shape, Shape::Leaf)
    }

    /// The value of the current record. `leaves` are the leaves below, and move to the next record.
    pub(crate) fn read(&self, leaves: &mut [Leaf]) -> Value {
        if self.is_leaf() {
            return match leaves.first_mut().map(Leaf::take) {
                Some(Value::Text(text)) if text.is_empty() => Value::Empty,
                value => value.unwrap_or_default(),
            };
        }
        let mut json = String::new();
        match self.write(self.first, leaves, &mut json) {
            Some(()) => Value::Json(json),
            None => Value::Empty,
        }
    }

    /// Writes the current value as JSON. `None` for an absent value. `base` is the number of the first of `leaves`.
    fn write(&self, base: usize, leaves: &mut [Leaf], out: &mut String) -> Option<()> {
        let own = self.first - base..self.first - base + self.leaves;
        let first = own.start;
        if self.optional.is_some_and(|level| leaves.get(first).is_some_and(|leaf| leaf.definition() < level)) {
            pass(leaves.get_mut(own)?);
            return None;
        }
        match &self.shape {
            Shape::Leaf => json(&leaves.get_mut(first)?.take(), out),
            Shape::Record(fields) => {
                out.push('{');
                for (at, (name, field)) in fields.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(&text(name));
                    out.push(':');
                    if field.write(base, leaves, out).is_none() {
                        out.push_str("null");
                    }
                }
                out.push('}');
            }
            Shape::List(present, again, element) => {
                out.push('[');
                if leaves.get(first)?.definition() < *present {
                    pass(leaves.get_mut(own)?);
                } else {
                    loop {
                        if element.write(base, leaves, out).is_none() {
                            out.push_str("null");
                        }
                        if leaves.get(first)?.repetition() != *again {
                            break;
                        }
                        out.push(',');
                    }
                }
                out.push(']');
            }
            Shape::Map(present, again, key, value) => {
                out.push('{');
                if leaves.get(first)?.definition() < *present {
                    pass(leaves.get_mut(own)?);
                } else {
                    loop {
                        let mut name = String::new();
                        key.write(base, leaves, &mut name);
                        // A key of JSON is a text.
                        match name.starts_with('"') {
                            true => out.push_str(&name),
                            false => out.push_str(&text(&name)),
                        }
                        out.push(':');
                        if value.write(base, leaves, out).is_none() {
                            out.push_str("null");
                        }
                        if leaves.get(first)?.repetition() != *again {
                            break;
                        }
                        out.push(',');
                    }
                }
                out.push('}');
            }
        }
        Some(())
    }
}

/// Steps over an absent value in all leaves.
fn pass(leaves: &mut [Leaf]) {
    for leaf in leaves {
        leaf.take();
    }
}

fn text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

fn json(value: &Value, out: &mut String) {
    match value {
        Value::Empty => out.push_str("null"),
        Value::Number(number) | Value::Json(number) => out.push_str(number),
        Value::Boolean(truth) => drop(write!(out, "{truth}")),
        Value::Text(other) | Value::Moment(other) | Value::Error(other) => out.push_str(&text(other)),
    }
}

fn node(field: &Type, first: usize, definition: i16, repetition: i16, depth: usize) -> Result<Node> {
    let info = field.get_basic_info();
    if depth > DEEPEST {
        return Err(Error::failed(format_args!("a column is nested deeper than {DEEPEST} levels")));
    }
    match info.has_repetition().then(|| info.repetition()) {
        Some(Repetition::OPTIONAL) => {
            let mut inner = content(field, first, definition + 1, repetition, depth)?;
            inner.optional = Some(definition + 1);
            Ok(inner)
        }
        // Not below a list or map: a list of required elements.
        Some(Repetition::REPEATED) => {
            let element = content(field, first, definition + 1, repetition + 1, depth)?;
            Ok(list(element, definition + 1, repetition + 1))
        }
        _ => content(field, first, definition, repetition, depth),
    }
}

fn list(element: Node, definition: i16, repetition: i16) -> Node {
    let (first, leaves) = (element.first, element.leaves);
    Node { optional: None, first, leaves, shape: Shape::List(definition, repetition, Box::new(element)) }
}

/// The node of a field, without its own repetition.
fn content(field: &Type, first: usize, definition: i16, repetition: i16, depth: usize) -> Result<Node> {
    let info = field.get_basic_info();
    if field.is_primitive() {
        return Ok(Node { optional: None, first, leaves: 1, shape: Shape::Leaf });
    }
    let fields = field.get_fields();
    let is_list = info.converted_type() == ConvertedType::LIST || info.logical_type_ref() == Some(&LogicalType::List);
    let is_map = matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
        || info.logical_type_ref() == Some(&LogicalType::Map);
    let repeated = match fields {
        [only] if only.get_basic_info().has_repetition() => {
            Some(only).filter(|only| only.get_basic_info().repetition() == Repetition::REPEATED)
        }
        _ => None,
    };
    if let Some(repeated) = repeated.filter(|_| is_list || is_map) {
        let (inner_definition, inner_repetition) = (definition + 1, repetition + 1);
        let inner = if repeated.is_primitive() { &[] } else { repeated.get_fields() };
        if is_map && let [key, value] = inner {
            let key = node(key, first, inner_definition, inner_repetition, depth + 1)?;
            let value = node(value, first + key.leaves, inner_definition, inner_repetition, depth + 1)?;
            let leaves = key.leaves + value.leaves;
            let shape = Shape::Map(inner_definition, inner_repetition, Box::new(key), Box::new(value));
            return Ok(Node { optional: None, first, leaves, shape });
        }
        // The rules of the format for lists of older programs: a repeated group of one field is the element itself if its
        // name says so.
        let element = match inner {
            [only] if !(repeated.name() == "array" || repeated.name() == format!("{}_tuple", field.name())) => {
                node(only, first, inner_definition, inner_repetition, depth + 1)?
            }
            _ => content(repeated, first, inner_definition, inner_repetition, depth + 1)?,
        };
        return Ok(list(element, inner_definition, inner_repetition));
    }
    let mut named = Vec::with_capacity(fields.len());
    let mut leaves = 0;
    for child in fields {
        let inner = node(child, first + leaves, definition, repetition, depth + 1)?;
        leaves += inner.leaves;
        named.push((child.name().to_owned(), inner));
    }
    Ok(Node { optional: None, first, leaves, shape: Shape::Record(named) })
}
