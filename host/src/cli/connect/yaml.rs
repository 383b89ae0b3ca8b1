//! Edits YAML by whole lines: finds one block of a table, puts lines before it, or takes its lines out.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Value};

use super::entry::Node;
use super::format_error::FormatError;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// Words that YAML does not read as text.
const TYPED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// One server of the table.
struct Server {
    name: String,
    /// The first line, counted from 0, and the line after the last one.
    lines: (usize, usize),
    value: Value,
}

/// The table of servers.
enum Servers {
    /// There is none.
    Absent,
    /// The key is on this line, without servers.
    Empty { line: usize },
    /// A block with servers, indented by so many spaces.
    Block { indent: usize, servers: Vec<Server> },
}

/// The events of a text, with the end of the last one that shows.
struct Events<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// The line after the last one with a value, counted from 0.
    end: usize,
}

impl<'t> Events<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), FormatError> {
        loop {
            let next = self.parser.next().unwrap_or(Ok((Event::StreamEnd, Span::default())));
            let (event, span) = next.map_err(|error| FormatError::Malformed(error.to_string()))?;
            if matches!(event, Event::Scalar(..) | Event::Alias(_) | Event::SequenceEnd | Event::MappingEnd)
                && !span.is_empty()
            {
                // Lines count from 1. An end in column 0 is the break of the line before.
                let end = if span.end.col() == 0 { span.end.line().saturating_sub(1) } else { span.end.line() };
                self.end = self.end.max(end);
            }
            if !matches!(event, Event::Nothing | Event::StreamStart | Event::DocumentStart(_)) {
                return Ok((event, span));
            }
        }
    }

    /// The value that begins with `event`.
    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Value, FormatError> {
        if depth > MAX_DEPTH {
            return Err(FormatError::Malformed(format!("it is nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(match event {
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => {
                let mut all = Vec::new();
                loop {
                    match self.next()?.0 {
                        Event::SequenceEnd => break Value::Array(all),
                        event => all.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut all = Map::new();
                loop {
                    match self.next()?.0 {
                        Event::MappingEnd => break Value::Object(all),
                        key => {
                            let key = self.value(key, depth + 1)?;
                            let event = self.next()?.0;
                            let value = self.value(event, depth + 1)?;
                            all.insert(key.as_str().map_or_else(|| key.to_string(), str::to_owned), value);
                        }
                    }
                }
            }
            Event::StreamEnd | Event::DocumentEnd => {
                return Err(FormatError::Malformed("it ends too early".to_owned()));
            }
            _ => Value::Null,
        })
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    match text {
        _ if style != ScalarStyle::Plain => text.into(),
        "" | "~" | "null" => Value::Null,
        "true" => true.into(),
        "false" => false.into(),
        number => number.parse::<i64>().map_or_else(|_| number.into(), Value::from),
    }
}

fn find(text: &str, section: &str) -> Result<Servers, FormatError> {
    let unexpected = |key: &str| FormatError::Unexpected { key: key.to_owned(), expected: "a block of lines" };
    let mut events = Events { parser: Parser::new_from_str(text), end: 0 };
    match events.next()?.0 {
        Event::StreamEnd | Event::DocumentEnd => return Ok(Servers::Absent),
        Event::Scalar(text, ..) if text.is_empty() => return Ok(Servers::Absent),
        Event::MappingStart(..) if !text.trim_start().starts_with('{') => {}
        _ => return Err(unexpected("the whole file")),
    }
    let mut found = Servers::Absent;
    loop {
        let (key, at) = events.next()?;
        if matches!(key, Event::MappingEnd) {
            break;
        }
        let is_section = matches!(&key, Event::Scalar(name, ..) if name == section);
        events.value(key, 0)?;
        let (event, span) = events.next()?;
        if !is_section {
            events.value(event, 0)?;
            continue;
        }
        let line = at.start.line().saturating_sub(1);
        found = match event {
            Event::MappingStart(..) if text.chars().nth(span.start.index()) != Some('{') => block(&mut events)?,
            event => {
                let value = events.value(event, 0)?;
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                // Only a line such as `extensions:` or `extensions: {}` is replaced.
                let own = text.lines().nth(line).unwrap_or_default().trim_end();
                if !is_empty || ![format!("{section}:"), format!("{section}: {{}}")].iter().any(|one| one == own) {
                    return Err(unexpected(section));
                }
                Servers::Empty { line }
            }
        };
    }
    // Only the first document of a file is edited.
    match (events.next()?.0, events.next()?.0) {
        (Event::DocumentEnd, Event::StreamEnd) => Ok(found),
        _ => Err(unexpected("the whole file")),
    }
}

/// Reads the block of servers to its end.
fn block(events: &mut Events<'_>) -> Result<Servers, FormatError> {
    let (mut indent, mut servers) = (0, Vec::<Server>::new());
    loop {
        let (key, span) = events.next()?;
        if matches!(key, Event::MappingEnd) {
            return Ok(Servers::Block { indent, servers });
        }
        let line = span.start.line().saturating_sub(1);
        indent = span.start.col();
        let name = match events.value(key, 0)? {
            Value::String(name) => name,
            other => other.to_string(),
        };
        let event = events.next()?.0;
        let value = events.value(event, 0)?;
        servers.push(Server { name, lines: (line, events.end.max(line + 1)), value });
    }
}

pub(super) fn get(text: &str, section: &str, name: &str) -> Result<Option<Value>, FormatError> {
    Ok(match find(text, section)? {
        Servers::Block { servers, .. } => servers.into_iter().find(|own| own.name == name).map(|own| own.value),
        Servers::Absent | Servers::Empty { .. } => None,
    })
}

pub(super) fn set(text: &str, section: &str, name: &str, server: &Node) -> Result<String, FormatError> {
    Ok(match find(text, section)? {
        Servers::Absent => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{end}{section}:\n{}", lines(name, server, 2))
        }
        Servers::Empty { line } => replace(text, (line, line + 1), &format!("{section}:\n{}", lines(name, server, 2))),
        Servers::Block { indent, servers } => {
            let own = servers.iter().find(|own| own.name == name).map(|own| own.lines);
            let first = servers.first().map_or(0, |own| own.lines.0);
            replace(text, own.unwrap_or((first, first)), &lines(name, server, indent))
        }
    })
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, FormatError> {
    let Servers::Block { servers, .. } = find(text, section)? else { return Ok(text.to_owned()) };
    Ok(match servers.iter().find(|own| own.name == name) {
        Some(own) => replace(text, own.lines, ""),
        None => text.to_owned(),
    })
}

/// `text` with other lines in place of those from the first number up to the second one.
fn replace(text: &str, (from, to): (usize, usize), new: &str) -> String {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let part = |range: std::ops::Range<usize>| all.get(range).unwrap_or_default().concat();
    let to = to.min(all.len());
    format!("{}{new}{}", part(0..from.min(to)), part(to..all.len()))
}

/// The lines of a server.
fn lines(name: &str, server: &Node, indent: usize) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !TYPED.iter().any(|word| name.eq_ignore_ascii_case(word));
    let key = if is_plain { name.to_owned() } else { quoted(name) };
    let mut out = format!("{:indent$}{key}:", "");
    write_value(&mut out, server, indent);
    out
}

fn write_value(out: &mut String, node: &Node, indent: usize) {
    let deeper = indent + 2;
    match node {
        Node::Text(text) => *out += &format!(" {}\n", quoted(text)),
        Node::Number(number) => *out += &format!(" {number}\n"),
        Node::Bool(is_true) => *out += &format!(" {is_true}\n"),
        Node::List(all) => {
            out.push('\n');
            for own in all {
                *out += &format!("{:deeper$}-", "");
                write_value(out, own, deeper);
            }
        }
        Node::Map(all) => {
            out.push('\n');
            for (key, own) in all {
                *out += &format!("{:deeper$}{key}:", "");
                write_value(out, own, deeper);
            }
        }
    }
}

/// A text in double quotes. YAML reads the strings of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
