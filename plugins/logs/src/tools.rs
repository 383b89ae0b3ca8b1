//! The tool `search`: the newest entries of a log that match. Its arguments are those of a reference.

use belljar_guest::{Block, Error, Link, Result, Tool, ToolResult, ToolSet, Tools, reference};
use serde::Deserialize;

use crate::query::Query;
use crate::tail::Tail;
use crate::{Logs, TEXT};

/// Lines of a result when the call has no `limit`. A model has to read them.
const LINES: usize = 100;

/// The most lines of a result.
const MAX_LINES: usize = 1000;

/// The most text of a result, in bytes. A model has to read it, so it is less than that of a read.
pub(crate) const MAX_BYTES: usize = 96 * 1024;

/// The most logs that an error names.
const MAX_NAMED: usize = 20;

/// The schema of [`Search`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"log":{"type":"string","description":"Path; needed if there are several"},"text":{"type":"string","description":"Ignoring case"},"regex":{"type":"string","description":"Must match a line"},"level":{"type":"string","description":"This or worse: debug, info, warn, error, fatal"},"since":{"type":"string","description":"15m, 2h, 1d ago, or RFC 3339"},"until":{"type":"string","description":"As since"},"before":{"type":"string","description":"From the note of an earlier result"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Lines; 100 by default"}},"additionalProperties":false}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    log: Option<String>,
    text: Option<String>,
    regex: Option<String>,
    before: Option<String>,
    level: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
}

impl Tools for Logs {
    fn tools() -> ToolSet<Self> {
        let search = Tool::reading("search", "The newest entries of a log file, all or those that match.");
        ToolSet::new().tool_with_schemas(search.input(INPUT), Logs::search)
    }
}

impl Logs {
    fn search(&self, asked: Search) -> Result<ToolResult> {
        let limit = asked.limit.unwrap_or(LINES);
        if !(1..=MAX_LINES).contains(&limit) {
            return Err(Error::invalid(format_args!("\"limit\" is {limit}: expected a number from 1 to {MAX_LINES}")));
        }
        let path = self.named("log", asked.log.as_deref())?;
        let (lines, given) =
            (limit.to_string(), [asked.since, asked.until, asked.level, asked.text, asked.regex, asked.before]);
        let [since, until, level, text, regex, before] =
            given.each_ref().map(|value| value.as_deref().unwrap_or_default());
        let parameters = [
            ("lines", &*lines),
            ("since", since),
            ("until", until),
            ("level", level),
            ("text", text),
            ("regex", regex),
            ("before", before),
        ];
        let place = reference_of(&path, &parameters);
        let tail = self.tail(&Query::parse(&place, &self.calendar, limit)?, MAX_BYTES)?;
        Ok(ToolResult::text(shown(&tail)).block(Block::link(Link::new(place).name(path).mime_type(TEXT))))
    }

    /// The path of the log in the argument `name`. Only one of several has to be named.
    pub(crate) fn named(&self, name: &str, path: Option<&str>) -> Result<String> {
        let path = path.map(|path| path.trim_matches('/')).filter(|path| !path.is_empty());
        if let Some(path) = path
            && self.store.find(path).map(|_| true).or_else(|error| match error {
                Error::NotFound => Ok(false),
                other => Err(other),
            })?
        {
            return Ok(path.to_owned());
        }
        let known = self.store.logs()?.logs;
        if let (None, [only]) = (path, known.as_slice()) {
            return Ok(only.path.clone());
        }
        let quoted: Vec<String> = known.iter().take(MAX_NAMED).map(|log| format!("\"{}\"", log.path)).collect();
        let more = if known.len() > MAX_NAMED { ", ..." } else { "" };
        let expected = match quoted.as_slice() {
            [] => "a log, but there is none".to_owned(),
            some => format!("one of {}{more}", some.join(", ")),
        };
        Err(match path {
            Some(path) => Error::invalid(format_args!("\"{name}\" is \"{path}\": expected {expected}")),
            None => Error::invalid(format_args!("\"{name}\" is missing: expected {expected}")),
        })
    }
}

/// The reference of a read of a log. Leaves out empty parameters.
pub(crate) fn reference_of(path: &str, parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .filter(|(_, value)| !value.is_empty())
        // In a query, "&" ends a value.
        .map(|(key, value)| format!("{key}={}", reference::encode_segment(value).replace('&', "%26")))
        .collect();
    format!("{}?{}", reference::encode(path), pairs.join("&"))
}

/// The newest lines that fit into a result, the oldest of them first.
pub(crate) fn shown(tail: &Tail) -> String {
    let mut left = MAX_BYTES;
    let fitting = tail.lines.iter().rev().take_while(|line| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    });
    let lines = tail.lines.get(tail.lines.len() - fitting.count()..).unwrap_or_default();
    let left_out = tail.lines.len() - lines.len();
    let mut text = String::new();
    if left_out > 0 {
        text.push_str(&format!("[logs: {left_out} older lines are left out: too much text]\n"));
    } else if let Some(note) = &tail.note {
        text.push_str(&format!("[logs: {note}]\n"));
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    if lines.is_empty() {
        text.push_str("no entries\n");
    }
    text
}
