//! The ends of log files as resources: the last lines, or the entries since a time, of a level, or of a day.
//!
//! This module implements the provider. It is the only module that knows resources and the list. `query` parses references.
//! `store` finds logs, and `rotation` groups the files of one log. `source` reads a file from its end. `tail` selects
//! entries; `line` parses them with `time` and `level`. `revision` hashes names, sizes and times of files. `tools`
//! and `prompts` give the same entries to models and people.

mod encoding;
mod level;
mod line;
mod overview;
mod parts;
mod prompts;
mod query;
mod revision;
mod rotation;
mod source;
mod store;
mod tail;
mod time;
mod tools;
mod unpack;

use std::time::{Duration, SystemTime};

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions, Suggestions,
    Template, reference,
};
use jiff::Timestamp;

use query::{Place, Query};
use source::Budget;
use store::{Log, LogFile, Store};
use tail::{LastLine, Tail};
use time::Calendar;

/// The provider.
#[derive(Debug)]
pub struct Logs {
    store: Store,
    calendar: Calendar,
    /// Lines per read when the reference has no `lines`.
    lines: usize,
}

/// Logs per page of the list.
const PAGE: usize = 1000;

/// The longest reference that the host accepts, in bytes.
const MAX_REFERENCE_BYTES: usize = 2 * 1024;

/// How many times a read starts again because the log was rotated or truncated meanwhile. The last attempt is returned.
const ATTEMPTS: usize = 8;

/// How long after the last write a last line without a line end is left out: a program may still be writing it.
const UNFINISHED: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain";

const TAIL: &str = "{+path}{?lines,since,until,level,text,regex,before,bytes}";

const DAY: &str = "by-date/{date}/{+path}{?lines,until,level,text,regex,before}";

impl Provider for Logs {
    fn open() -> Result<Self> {
        let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Logs::over(
            Store::new(store::granted(), &setting("IGNORE").unwrap_or_default())?,
            setting("LINES").as_deref(),
            setting("ZONE").as_deref(),
            Timestamp::now(),
        )
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Logs".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("The last lines of log files, by number, time, level and text")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let found = self.store.logs()?;
        let mut resources: Vec<Resource> = found.logs.iter().filter_map(|log| self.resource(log)).collect();
        resources.sort_by(|one, other| one.reference.cmp(&other.reference));
        if found.cut {
            log_cut();
        }
        Ok(Page::of(resources, cursor, PAGE))
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new(TAIL).name("tail").title("The end of a log").mime_type(TEXT).description(format!(
                "The last lines of the log at {{path}}: at most {{lines}} of them (default {}, maximum {}). {{since}} and \
                 {{until}} limit the time (2026-11-21T10:00:00Z, or a duration ago: 15m, 2h, 1d). {{level}} selects entries \
                 of at least that level (trace, debug, info, warn, error, fatal). {{text}} selects entries that contain \
                 it, {{regex}} those with a line that matches. A stack trace belongs to its entry. {{before}} continues \
                 an earlier read. {{lines}} as 1-200, 201- or -50, and {{bytes}} as 0-65535 or -1024, give the file as it is.",
                self.lines,
                query::MAX_LINES
            )),
            Template::new(DAY).name("day").title("A day of a log").mime_type(TEXT).description(
                "The entries of the log at {path} on the day {date} (2026-11-21), from all its files, rotated ones too. \
                 {lines}, {until}, {level}, {text}, {regex} and {before} select entries as in the template \"tail\"",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        self.contents(reference, tail::MAX_TEXT_BYTES)
    }
}

impl Completion for Logs {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        let by_date = match template {
            TAIL => false,
            DAY => true,
            _ => return Err(Error::invalid(format_args!("no template \"{template}\""))),
        };
        let value = argument.value.as_str();
        Ok(match argument.name.as_str() {
            "path" => {
                let found = self.store.logs()?;
                Suggestions::starting_with(value, found.logs.iter().map(|log| log.path.as_str()))
            }
            "lines" => Suggestions::starting_with(value, ["50", "200", "1000", "10000"]),
            "until" | "regex" | "before" => Suggestions::default(),
            "bytes" if !by_date => Suggestions::starting_with(value, ["0-65535", "-65536"]),
            "since" if !by_date => Suggestions::starting_with(value, ["15m", "1h", "6h", "1d", "7d"]),
            "level" => Suggestions::starting_with(value, level::NAMES.map(|(name, _)| name)),
            "text" => Suggestions::default(),
            "date" if by_date => Suggestions::starting_with(value, self.days(resolved)?),
            name => return Err(Error::invalid(format_args!("no variable \"{name}\" in \"{template}\""))),
        })
    }
}

impl Revisions for Logs {
    fn catalog_revision(&self) -> Result<String> {
        Ok(revision::of_list(&self.store.logs()?))
    }

    /// The revision of the log's files. A read with a relative `since` also changes as time passes; that is no new revision.
    fn resource_revision(&self, reference: &str) -> Result<String> {
        if reference.is_empty() {
            return Ok(revision::of(&self.store.logs()?.logs));
        }
        let query = Query::parse(reference, &self.calendar, self.lines)?;
        Ok(revision::of_log(&self.store.find(&query.path)?))
    }
}

impl Logs {
    fn over(store: Store, lines: Option<&str>, zone: Option<&str>, now: Timestamp) -> Result<Self> {
        let zone = zone.unwrap_or("UTC");
        let zone = time::zone(zone).ok_or_else(|| {
            Error::failed(format_args!("ZONE is \"{zone}\": expected a name such as Europe/Berlin, UTC, or +01:00"))
        })?;
        let lines = match lines {
            None => 200,
            Some(lines) => query::number(lines).ok_or_else(|| {
                let most = query::MAX_LINES;
                Error::failed(format_args!("LINES is \"{lines}\": expected a number from 1 to {most}"))
            })?,
        };
        Ok(Logs { store, calendar: Calendar { zone, now }, lines })
    }

    /// The list's entry for a log. It has neither size nor time, because the list would change with every written line.
    /// `None` if the reference is longer than the host accepts.
    fn resource(&self, log: &Log) -> Option<Resource> {
        let reference = reference::encode(&log.path);
        let name = log.path.rsplit_once('/').map_or(log.path.as_str(), |(_, name)| name);
        let resource =
            Resource::new(reference).name(name).mime_type(TEXT).description(format!("The last {} lines", self.lines));
        (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
    }

    /// A read without a range, of at most `most` bytes of lines.
    fn contents(&self, reference: &str, most: usize) -> Result<Reading> {
        if reference.is_empty() {
            return Ok(overview::contents(&self.store.logs()?).into());
        }
        let query = Query::parse(reference, &self.calendar, self.lines)?;
        let tail = self.tail(&query, most)?;
        // Not cacheable: clients read a log for new entries. Revisions make repeated reads cheap.
        Ok(contents(reference, &tail).into())
    }

    /// Reads the entries that a query selects. Reads again if the files were rotated or truncated meanwhile.
    fn tail(&self, query: &Query, most: usize) -> Result<Tail> {
        let mut budget = Budget::new();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let is_last = attempt == ATTEMPTS;
            let log = match self.store.find(&query.path) {
                // A rotation may be renaming the file at this moment.
                Err(Error::NotFound) if attempt < 3 => continue,
                log => log?,
            };
            if !log.is_text() {
                return Err(Error::failed(format_args!("\"{}\" is binary: only text logs can be read", query.path)));
            }
            // In a log under constant change, the last line may be incomplete in every attempt.
            let is_fresh = attempt > 2 || log.files.first().is_some_and(is_fresh);
            let last_line = if is_fresh { LastLine::LeftOut } else { LastLine::Given };
            let tail = tail::read(&log, query, &self.calendar, last_line, most, &mut budget)?;
            let stayed = |after: Log| if tail.unfinished { after == log } else { is_continued(&log, &after) };
            let is_whole = !tail.changed && self.store.find(&query.path).is_ok_and(stayed);
            if is_whole || is_last || !budget.is_ample() {
                return Ok(tail);
            }
        }
    }

    /// The days of the log named by the argument `path`, or of all logs.
    fn days(&self, resolved: &[Argument]) -> Result<Vec<String>> {
        let path = resolved.iter().find(|argument| argument.name == "path").map(|argument| argument.value.as_str());
        let logs = match path.filter(|path| !path.is_empty()) {
            Some(path) => match self.store.find(path) {
                Ok(log) => vec![log],
                Err(Error::NotFound) => Vec::new(),
                Err(error) => return Err(error),
            },
            None => self.store.logs()?.logs,
        };
        let mut days: Vec<String> =
            logs.iter().flat_map(|log| tail::days(log, &self.calendar, Suggestions::MAX)).collect();
        days.sort_unstable_by(|one, other| other.cmp(one));
        days.dedup();
        Ok(days)
    }
}

/// True if a file was written to just now.
fn is_fresh(file: &LogFile) -> bool {
    let age = file.modified.and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_none_or(|age| age < UNFINISHED)
}

/// True if a log was at most appended to: its newest file may have grown, the others are unchanged.
fn is_continued(before: &Log, after: &Log) -> bool {
    match (before.files.split_first(), after.files.split_first()) {
        (Some((old, rest)), Some((new, rest_after))) => {
            old.name == new.name && old.size <= new.size && rest == rest_after
        }
        _ => false,
    }
}

fn contents(reference: &str, tail: &Tail) -> Contents {
    let mut text = String::new();
    if let Some(note) = &tail.note {
        text.push_str(&format!("[logs: {note}]\n"));
    }
    for line in &tail.lines {
        text.push_str(line);
        text.push('\n');
    }
    let before = tail.before.as_ref().map(Place::encoded);
    let about = serde_json::json!({
        "files": tail.files, "lines": tail.lines.len(), "note": tail.note, "before": before
    });
    Contents::text(reference, text).mime_type(TEXT).meta("logs/tail", about.to_string())
}

/// Writes a message to the operator: stderr goes to the host's log.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
fn log_cut() {
    eprintln!(
        "the list of logs is cut after {} directory entries: grant a smaller directory, or set IGNORE",
        store::MAX_ENTRIES
    );
}

/// Entries for fuzzing: each runs a parser over a stranger's bytes.
#[doc(hidden)]
pub mod fuzzing {
    use std::io::{Cursor, Read as _};

    use crate::encoding::Encoding;
    use crate::line::{self, ParsedLine};
    use crate::query::Query;
    use crate::rotation::Name;
    use crate::time::Calendar;
    use crate::unpack;

    /// A calendar in UTC.
    fn calendar() -> Calendar {
        Calendar { zone: jiff::tz::TimeZone::UTC, now: jiff::Timestamp::UNIX_EPOCH }
    }

    /// Level, time and text of each line.
    pub fn lines(bytes: &[u8]) {
        let text = Encoding::of(bytes).decoded(bytes).map_or_else(|| bytes.to_vec(), String::into_bytes);
        for line in text.split(|byte| *byte == b'\n') {
            let text = line::clean(line, 0);
            let parsed = ParsedLine::of(&text);
            let _ = (parsed.level_with(Some("SEVERE: x")), parsed.time(&calendar(), jiff::Timestamp::UNIX_EPOCH));
        }
    }

    /// The names of files.
    pub fn names(bytes: &[u8]) {
        let name = String::from_utf8_lossy(bytes);
        let _ = (Name::parse(&name), Name::unread(&name));
    }

    /// References with all parameters.
    pub fn references(bytes: &[u8]) {
        let _ = Query::parse(&String::from_utf8_lossy(bytes), &calendar(), 1);
    }

    /// Compressed files.
    pub fn packed(bytes: &[u8]) {
        if let Ok(reader) = unpack::reader(Cursor::new(bytes)) {
            let _ = reader.take(1 << 20).read_to_end(&mut Vec::new());
        }
    }
}

belljar_guest::export!(Logs: Completion, Revisions, Parts, Tools, Prompts);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
