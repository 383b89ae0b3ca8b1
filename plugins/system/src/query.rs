//! Parses the parameters of a reference.

use belljar_guest::{Error, Result, reference};

use crate::part::Part;

/// Processes in an answer when the reference has no `limit`.
pub(crate) const DEFAULT_LIMIT: usize = 100;

/// The most processes in an answer: as many as the host lists.
pub(crate) const MAX_LIMIT: usize = 4096;

/// The form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Json,
    Table,
}

impl Format {
    pub(crate) const WORDS: [&'static str; 2] = ["json", "table"];
}

/// The order of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Memory,
    Cpu,
    Name,
}

impl Sort {
    pub(crate) const WORDS: [&'static str; 3] = ["memory", "cpu", "name"];
}

/// The parsed parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) format: Format,
    pub(crate) sort: Sort,
    pub(crate) limit: usize,
    /// A part of the names of the wanted processes, in lower case. Empty: all.
    pub(crate) name: String,
}

impl Query {
    /// Parses the text after the `?` of a reference to this part.
    pub(crate) fn parse(part: Part, text: &str) -> Result<Query> {
        let mut query =
            Query { format: Format::default(), sort: Sort::default(), limit: DEFAULT_LIMIT, name: String::new() };
        for (key, value) in reference::parameters(text)? {
            // A client that fills in a template may leave a variable empty.
            if value.is_empty() {
                continue;
            }
            match (key.as_str(), part) {
                ("format", _) => query.format = format(&value)?,
                ("sort", Part::Processes) => query.sort = sort(&value)?,
                ("limit", Part::Processes) => query.limit = limit(&value)?,
                ("name", Part::Processes) => query.name = value.to_lowercase(),
                (_, Part::Processes) => return Err(unknown(&key, "\"sort\", \"limit\", \"name\" or \"format\"")),
                _ => return Err(unknown(&key, "\"format\"")),
            }
        }
        Ok(query)
    }
}

fn unknown(key: &str, expected: &str) -> Error {
    Error::invalid(format_args!("no parameter \"{key}\": expected {expected}"))
}

fn format(value: &str) -> Result<Format> {
    match value {
        "json" => Ok(Format::Json),
        "table" => Ok(Format::Table),
        _ => Err(Error::invalid(format_args!("\"format\" is \"{value}\": expected \"json\" or \"table\""))),
    }
}

fn sort(value: &str) -> Result<Sort> {
    match value {
        "memory" => Ok(Sort::Memory),
        "cpu" => Ok(Sort::Cpu),
        "name" => Ok(Sort::Name),
        _ => Err(Error::invalid(format_args!("\"sort\" is \"{value}\": expected \"memory\", \"cpu\" or \"name\""))),
    }
}

fn limit(value: &str) -> Result<usize> {
    let wrong = || Error::invalid(format_args!("\"limit\" is \"{value}\": expected a number from 1 to {MAX_LIMIT}"));
    value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(wrong)
}
