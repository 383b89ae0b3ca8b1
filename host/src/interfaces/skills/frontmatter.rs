//! The frontmatter of a `SKILL.md`: YAML between two lines `---`, as JSON.
//!
//! A client parses the same bytes again and compares. Whatever two YAML parsers may read in different ways is therefore
//! refused, with its line. The rest is YAML 1.2 with the core schema. Anchors, aliases and tags are refused because they
//! make values large or typed. This module knows neither files nor guests.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use serde_json::{Map, Value};

use crate::model::bounds::{MAX_FRONTMATTER, MAX_FRONTMATTER_DEPTH, MAX_FRONTMATTER_NODES};
use crate::model::{Guard, text};

mod block;
mod problem;
mod scalar;

pub use problem::{FrontmatterError, FrontmatterProblem};
use problem::{FrontmatterProblem as Problem, MAX_NAME};

/// The line before and after the YAML.
const FENCE: &str = "---";

/// The frontmatter of a skill.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontmatter {
    /// The name of the skill.
    pub name: String,
    /// The description of the skill.
    pub description: String,
    /// All other fields.
    pub others: Map<String, Value>,
    /// The length of the YAML in bytes.
    pub yaml_bytes: usize,
}

impl Frontmatter {
    /// Reads the frontmatter at the beginning of `file`.
    ///
    /// # Errors
    /// The first rule that it breaks, with the line.
    pub fn parse(file: &str) -> Result<Self, FrontmatterError> {
        let yaml = between_fences(file)?;
        let mut fields = Builder::new(yaml).read()?;
        let mut take = |key: &'static str| match fields.remove(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(at(line_of_key(yaml, key), Problem::NoText(key))),
            None => Err(at(1, Problem::Missing(key))),
        };
        let (name, description) = (take("name")?, take("description")?);
        if is_strict() && !is_name(&name) {
            return Err(at(line_of_key(yaml, "name"), Problem::Name(text::quoted(&name, 100))));
        }
        Ok(Self { name, description, others: fields, yaml_bytes: yaml.len() })
    }
}

/// True if what parsers read in different ways is refused.
fn is_strict() -> bool {
    Guard::Frontmatter.is_on()
}

/// True if `name` is a valid name of a skill.
pub fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// An error in this line of the YAML, which begins in the second line of the file.
fn at(line_of_yaml: usize, problem: Problem) -> FrontmatterError {
    FrontmatterError { line: line_of_yaml + 1, problem }
}

/// The line of the YAML with this top-level key. The first line if it is written in another way.
fn line_of_key(yaml: &str, key: &str) -> usize {
    let is_key = |line: &str| line.trim_start_matches(['"', '\'']).starts_with(key);
    yaml.lines().position(is_key).map_or(1, |line| line + 1)
}

/// The YAML between the fences. Checks its length and its characters.
fn between_fences(file: &str) -> Result<&str, FrontmatterError> {
    let without_break = |line: &str| line.strip_suffix("\r\n").or(line.strip_suffix('\n')).unwrap_or(line).len();
    let mut lines = file.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.get(..without_break(first)) != Some(FENCE) {
        return Err(FrontmatterError { line: 1, problem: Problem::NoBegin });
    }
    let (begin, mut end) = (first.len(), first.len());
    for (number, line) in lines.enumerate() {
        let number = number + 1;
        let content = line.get(..without_break(line)).unwrap_or_default();
        if content == FENCE {
            return Ok(file.get(begin..end).unwrap_or_default());
        }
        end += line.len();
        if end - begin > MAX_FRONTMATTER.get() {
            return Err(at(number, Problem::TooLong));
        }
        // A carriage return that ends no line is a line break for some parsers only.
        let is_bad = |c: &char| *c == '\u{feff}' || (*c != '\t' && !text::is_visible(*c));
        if let Some(bad) = content.chars().find(is_bad).filter(|_| is_strict()) {
            return Err(at(number, Problem::Character(bad.into())));
        }
    }
    Err(FrontmatterError { line: 1, problem: Problem::NoEnd })
}

/// A sequence or mapping that is being read.
enum Open {
    Sequence(Vec<Value>),
    /// The mapping, and the key whose value comes next.
    Mapping(Map<String, Value>, Option<String>),
}

/// Builds the JSON from the events of the parser, without recursion.
struct Builder<'y> {
    yaml: &'y str,
    open: Vec<Open>,
    nodes: usize,
    documents: usize,
    root: Option<Value>,
}

impl<'y> Builder<'y> {
    fn new(yaml: &'y str) -> Self {
        Self { yaml, open: Vec::new(), nodes: 0, documents: 0, root: None }
    }

    fn read(mut self) -> Result<Map<String, Value>, FrontmatterError> {
        for event in Parser::new_from_str(self.yaml) {
            let (event, span) = event.map_err(|error| syntax(&error))?;
            let line = span.start.line().max(1);
            if let Event::Scalar(value, style @ (ScalarStyle::Folded | ScalarStyle::Literal), ..) = &event
                && is_strict()
            {
                block::check(self.yaml, line, *style, value).map_err(|(line, why)| at(line, Problem::Block(why)))?;
            }
            self.event(event).map_err(|problem| at(line, problem))?;
        }
        match self.root {
            Some(Value::Object(fields)) => Ok(fields),
            _ => Err(at(1, Problem::NoMapping)),
        }
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), Problem> {
        let is_strict = is_strict();
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(is_explicit) => {
                self.documents += 1;
                if is_explicit || self.documents > 1 { Err(Problem::Documents) } else { Ok(()) }
            }
            Event::Alias(_) if is_strict => Err(Problem::Anchor),
            Event::Alias(_) => self.value(Value::Null),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor > 0 && is_strict =>
            {
                Err(Problem::Anchor)
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_))
                if is_strict =>
            {
                Err(Problem::Tag)
            }
            Event::Scalar(value, style, ..) => {
                let is_hidden = |c: &char| !matches!(*c, '\n' | '\t') && !text::is_visible(*c);
                if let Some(hidden) = value.chars().find(is_hidden).filter(|_| is_strict) {
                    return Err(Problem::Character(hidden.into()));
                }
                let value = match style {
                    ScalarStyle::Plain => scalar::resolve(&value)?,
                    _ => Value::String(value.into_owned()),
                };
                match self.open.last_mut() {
                    Some(Open::Mapping(map, key @ None)) => {
                        *key = Some(key_of(map, value, style)?);
                        self.count()
                    }
                    _ => self.value(value),
                }
            }
            Event::SequenceStart(..) => self.begin(Open::Sequence(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Mapping(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let whole = match self.open.pop() {
                    Some(Open::Sequence(values)) => Value::Array(values),
                    Some(Open::Mapping(map, _)) => Value::Object(map),
                    None => return Err(Problem::NoMapping),
                };
                self.place(whole)
            }
        }
    }

    fn count(&mut self) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > MAX_FRONTMATTER_NODES.get() { Err(Problem::Nodes) } else { Ok(()) }
    }

    fn begin(&mut self, open: Open) -> Result<(), Problem> {
        if matches!(self.open.last(), Some(Open::Mapping(_, None))) {
            return Err(Problem::Key);
        }
        self.count()?;
        self.open.push(open);
        if self.open.len() > MAX_FRONTMATTER_DEPTH.get() { Err(Problem::Depth) } else { Ok(()) }
    }

    fn value(&mut self, value: Value) -> Result<(), Problem> {
        self.count()?;
        self.place(value)
    }

    /// Puts a value into what is open.
    fn place(&mut self, value: Value) -> Result<(), Problem> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::Sequence(values)) => values.push(value),
            Some(Open::Mapping(map, key)) => {
                let key = key.take().ok_or(Problem::Key)?;
                map.insert(key, value);
            }
        }
        Ok(())
    }
}

/// The key of the next value of `map`.
fn key_of(map: &Map<String, Value>, key: Value, style: ScalarStyle) -> Result<String, Problem> {
    let Value::String(key) = key else { return Err(Problem::Key) };
    if key == "<<" && style == ScalarStyle::Plain {
        return Err(Problem::Merge);
    }
    if map.contains_key(&key) && is_strict() {
        return Err(Problem::Duplicate(text::quoted(&key, 100)));
    }
    Ok(key)
}

fn syntax(error: &ScanError) -> FrontmatterError {
    at(error.marker().line().max(1), Problem::Syntax(text::excerpt(error.info(), 200)))
}

#[cfg(test)]
mod tests;
