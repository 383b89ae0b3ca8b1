//! A table of the file that is emptied key by key, so that what is left over was not understood.

use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};
use toml_edit::{Item, TableLike};

use crate::model::text;

/// A size, written as a number of bytes or as `"64MiB"`.
pub(super) struct Bytes(pub(super) u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bytesize::ByteSize::deserialize(deserializer).map(|size| Self(size.as_u64()))
    }
}

/// A time, written as `"5s"`.
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map(Self).map_err(|error| {
            let units = "write a number and a unit: \"500ms\", \"5s\", \"2m\"";
            serde::de::Error::custom(format!("{error}; {units}"))
        })
    }
}

/// A part of a processor, written as `"150%"`.
pub(super) struct Percent(pub(super) u64);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_suffix('%').ok_or_else(|| serde::de::Error::custom("\"%\" is missing"))?;
        number.trim_end().parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A table, with its path for messages and the keys that were asked for.
pub(super) struct Section {
    /// The whole file, to say where something stands in it.
    source: Rc<str>,
    path: Vec<String>,
    table: Table,
    known: Vec<String>,
}

impl Section {
    /// The whole file.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        // The message shows the line it is about; nothing in that line may reach the terminal as more than text.
        let shown = |error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            if let Some((key, word)) = bare_word(source, at) {
                let (key, word) = (text::excerpt(key, 80), text::excerpt(word, 80));
                let (line, column) = position(source, at);
                return format!(
                    "line {line}, column {column}: {key} = {word}: text stands in quotation marks; write  {key} = \"{word}\""
                );
            }
            error.to_string().trim_end().lines().map(|line| text::excerpt(line, 200)).collect::<Vec<_>>().join("\n")
        };
        let table = source.parse::<Table>().map_err(shown)?;
        Ok(Self { source: source.into(), path: Vec::new(), table, known: Vec::new() })
    }

    /// The path as a prefix of a key: `mounts.notes.limits.`
    pub(super) fn path(&self) -> String {
        self.path.iter().map(|part| format!("{}.", text::excerpt(part, 80))).collect()
    }

    /// The last part of the path, fit to be shown.
    pub(super) fn shown(&self) -> String {
        text::excerpt(self.path.last().map_or("", String::as_str), 80)
    }

    /// Where `key` of this table stands in the file: `line 3, column 1: `. Empty where that is not known.
    pub(super) fn at(&self, key: &str) -> String {
        let Ok(document) = toml_edit::Document::parse(&*self.source) else { return String::new() };
        let mut table: &dyn TableLike = document.as_table();
        for part in &self.path {
            let Some(inner) = table.get(part).and_then(Item::as_table_like) else { return String::new() };
            table = inner;
        }
        let Some((written, item)) = table.get_key_value(key) else { return String::new() };
        let Some(span) = written.span().or_else(|| item.span()) else { return String::new() };
        let (line, column) = position(&self.source, span.start);
        format!("line {line}, column {column}: ")
    }

    /// What is wrong with the value of `key`.
    pub(super) fn wrong(&self, key: &str, why: impl std::fmt::Display) -> String {
        format!("{}{}{}{why}", self.at(key), self.path(), text::excerpt(key, 80))
    }

    /// The keys that are left.
    pub(super) fn keys(&self) -> Vec<String> {
        self.table.keys().cloned().collect()
    }

    /// Takes a key's value out.
    pub(super) fn remove(&mut self, key: &str) -> Option<Value> {
        self.known.push(key.to_owned());
        self.table.remove(key)
    }

    /// Takes a key's value out and reads it.
    pub(super) fn take<T: DeserializeOwned>(&mut self, key: &str, expected: &str) -> Result<Option<T>, String> {
        let Some(value) = self.remove(key) else { return Ok(None) };
        let shown = text::excerpt(&value.to_string(), 80);
        value.try_into().map(Some).map_err(|error: toml::de::Error| {
            self.wrong(key, format_args!(" = {shown}: expected {expected} ({})", text::excerpt(error.message(), 200)))
        })
    }

    /// Takes a table out.
    pub(super) fn section(&mut self, key: &str) -> Result<Option<Self>, String> {
        match self.remove(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(self.below(key, table))),
            Some(other) => {
                let at = format!("{}{}", self.path(), text::excerpt(key, 80));
                Err(self.wrong(key, format_args!(": expected a table, [{at}], and found a {}", other.type_str())))
            }
        }
    }

    /// Takes a table of tables out.
    pub(super) fn sections(&mut self, key: &str) -> Result<Vec<(String, Self)>, String> {
        let Some(mut section) = self.section(key)? else { return Ok(Vec::new()) };
        section
            .keys()
            .into_iter()
            .map(|name| match section.section(&name)? {
                Some(inner) => Ok((name, inner)),
                None => Err(section.wrong(&name, ": expected a table")),
            })
            .collect()
    }

    fn below(&self, key: &str, table: Table) -> Self {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Self { source: Rc::clone(&self.source), path, table, known: Vec::new() }
    }

    /// Whatever is left was not understood. `more` are valid keys that were not asked for one by one.
    pub(super) fn finish(self, more: &[&str]) -> Result<(), String> {
        let Some(unknown) = self.table.keys().next() else { return Ok(()) };
        let known = || self.known.iter().map(String::as_str).chain(more.iter().copied());
        let nearest = known().min_by_key(|key| strsim::osa_distance(unknown, key));
        let mut all: Vec<&str> = known().collect();
        all.sort_unstable();
        all.dedup();
        let cure = match nearest {
            Some(near) if strsim::osa_distance(unknown, near) <= near.len().div_ceil(3) => {
                format!("did you mean \"{near}\"?")
            }
            _ => format!("the keys here are {}", all.join(", ")),
        };
        let at = self.at(unknown);
        Err(format!("{at}unknown key \"{}{}\"; {cure}", self.path(), text::excerpt(unknown, 80)))
    }
}

/// The line and the column of a place in a text, counted from 1.
fn position(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

/// Key and value of the line at `at`, where the value is a word without quotation marks.
fn bare_word(source: &str, at: usize) -> Option<(&str, &str)> {
    let start = source.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = source.get(start..)?.lines().next()?;
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim();
    let first = value.chars().next()?;
    let is_word =
        !value.contains(['"', '\'', '[', ']', '{', '}', '=', ',']) && (first.is_alphabetic() || "~/.".contains(first));
    // Numbers and dates with a mistake in them are another matter.
    (is_word && !key.trim().is_empty()).then(|| (key.trim(), value))
}
