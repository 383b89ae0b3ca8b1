//! The lines of the record, and their sums.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::cli::table;
use crate::grants::KINDS;
use crate::model::error::show_bytes;
use crate::model::{MountName, text};
use crate::telemetry::REFUSED_AT_THE_DOOR;

/// Different refusals that are kept by name. Further ones are only counted: a provider invents as many as it likes.
const MAX_REFUSALS: usize = 1000;

/// Refusals that the text shows.
const SHOWN_REFUSALS: usize = 20;

/// The outcomes of requests that a rule, or the lack of a credential, refused.
const REFUSED: [&str; 3] = ["denied", "insufficient-scope", "unauthenticated"];

/// What a line of the record says. `docs/reference/record.md` explains the fields.
#[derive(Deserialize)]
pub(super) struct RecordLine<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) caller: Option<CallerOfLine<'a>>,
    /// The client's request, in the line that stands for one.
    #[serde(default)]
    request: Option<IgnoredAny>,
    #[serde(borrow, default)]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) mount: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    outcome: Option<Cow<'a, str>>,
    #[serde(default)]
    calls: Option<u64>,
    #[serde(default)]
    usage: UsageOfLine,
    #[serde(borrow, default)]
    denials: Vec<DenialOfLine<'a>>,
    /// The number of lost records, in a line that stands for them.
    #[serde(default)]
    pub(super) lost: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct CallerOfLine<'a> {
    #[serde(borrow)]
    principal: Cow<'a, str>,
    #[serde(borrow, default)]
    client: Option<Cow<'a, str>>,
}

impl CallerOfLine<'_> {
    /// True if the principal or the client contains `part`.
    pub(super) fn contains(&self, part: &str) -> bool {
        self.principal.contains(part) || self.client.as_deref().is_some_and(|client| client.contains(part))
    }
}

#[derive(Default, Deserialize)]
struct UsageOfLine {
    #[serde(default)]
    cpu_micros: u64,
    #[serde(default)]
    memory: u64,
    #[serde(default)]
    bytes: u64,
}

#[derive(Deserialize)]
struct DenialOfLine<'a> {
    #[serde(borrow)]
    grant: Cow<'a, str>,
    #[serde(borrow)]
    what: Cow<'a, str>,
    times: u64,
}

impl<'a> RecordLine<'a> {
    /// Parses a line. `None` if it is no line of the record.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// When the call ended.
    pub(super) fn time(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339(&self.time).ok()
    }

    /// The requests of clients that the line stands for.
    fn requests(&self) -> u64 {
        match self.operation.as_deref() {
            Some(operation) if REFUSED_AT_THE_DOOR.contains(&operation) => self.calls(),
            _ => u64::from(self.request.is_some()),
        }
    }

    /// The calls of providers that the line stands for; for requests that were refused at the front door, their number.
    fn calls(&self) -> u64 {
        self.calls.unwrap_or(1)
    }

    /// True if something was refused.
    pub(super) fn is_denied(&self) -> bool {
        !self.denials.is_empty() || self.outcome.as_deref().is_some_and(|outcome| REFUSED.contains(&outcome))
    }

    /// True if the call did not end well.
    pub(super) fn has_failed(&self) -> bool {
        self.outcome.as_deref().is_some_and(|outcome| outcome != "ok")
    }
}

/// The sums of some calls.
#[derive(Default)]
struct Sums {
    requests: u64,
    calls: u64,
    failed: u64,
    denied: u64,
    cpu: u64,
    memory: u64,
    bytes: u64,
}

impl Sums {
    fn add(&mut self, line: &RecordLine<'_>) {
        self.requests += line.requests();
        self.calls += line.calls();
        // A line for several calls has the outcome of the last one.
        self.failed += u64::from(line.has_failed());
        self.denied += u64::from(line.is_denied());
        self.cpu += line.usage.cpu_micros;
        self.memory = self.memory.max(line.usage.memory);
        self.bytes += line.usage.bytes;
    }

    fn to_json(&self) -> Value {
        json!({
            "requests": self.requests, "calls": self.calls, "failed": self.failed, "denied": self.denied,
            "cpu_micros": self.cpu, "memory": self.memory, "bytes": self.bytes,
        })
    }

    fn to_cells(&self) -> [String; 7] {
        [
            self.requests.to_string(),
            self.calls.to_string(),
            self.failed.to_string(),
            self.denied.to_string(),
            humantime::format_duration(Duration::from_millis(self.cpu / 1000)).to_string(),
            show_bytes(self.memory),
            show_bytes(self.bytes),
        ]
    }
}

/// The sums of all selected lines.
#[derive(Default)]
pub(super) struct Summary {
    first: Option<String>,
    last: Option<String>,
    all: Sums,
    mounts: BTreeMap<String, Sums>,
    callers: BTreeMap<String, Sums>,
    outcomes: BTreeMap<String, u64>,
    /// How often, by mount, kind of grant, and what was asked for.
    refusals: BTreeMap<(String, String, String), u64>,
    refusals_dropped: u64,
    lost: u64,
    unreadable: u64,
}

/// Text of the record for a terminal.
fn shown(text: &str) -> String {
    text::excerpt(text, 200)
}

impl Summary {
    /// Counts a line that is no line of the record.
    pub(super) fn add_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &RecordLine<'_>) {
        if let Some(lost) = line.lost {
            self.lost += lost;
            return;
        }
        // RFC 3339 in UTC: the order of the texts is that of the times.
        if self.first.as_deref().is_none_or(|first| *line.time < *first) {
            self.first = Some(line.time.to_string());
        }
        if self.last.as_deref().is_none_or(|last| *line.time > *last) {
            self.last = Some(line.time.to_string());
        }
        let mount = line.mount.as_deref().unwrap_or_default();
        self.all.add(line);
        self.mounts.entry(mount.to_owned()).or_default().add(line);
        if let Some(caller) = &line.caller {
            let client = caller.client.as_deref().map(|client| format!(" ({client})")).unwrap_or_default();
            self.callers.entry(format!("{}{client}", caller.principal)).or_default().add(line);
        }
        let outcome = line.outcome.as_deref().unwrap_or_default();
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
        for denial in &line.denials {
            let key = (mount.to_owned(), denial.grant.to_string(), denial.what.to_string());
            if self.refusals.len() < MAX_REFUSALS || self.refusals.contains_key(&key) {
                *self.refusals.entry(key).or_default() += denial.times;
            } else {
                self.refusals_dropped += denial.times;
            }
        }
    }

    /// The refusals, most frequent first.
    fn refusals(&self) -> Vec<(&(String, String, String), u64)> {
        let mut all: Vec<_> = self.refusals.iter().map(|(key, times)| (key, *times)).collect();
        all.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        all
    }

    /// The sums for programs.
    pub(super) fn to_json(&self) -> Value {
        let table = |table: &BTreeMap<String, Sums>| {
            table.iter().map(|(name, sums)| (name.clone(), sums.to_json())).collect::<serde_json::Map<_, _>>()
        };
        let refusals = self.refusals().into_iter().map(
            |((mount, grant, what), times)| json!({ "mount": mount, "grant": grant, "what": what, "times": times }),
        );
        json!({
            "first": self.first, "last": self.last, "total": self.all.to_json(), "outcomes": self.outcomes,
            "mounts": table(&self.mounts), "callers": table(&self.callers), "denials": refusals.collect::<Vec<_>>(),
            "denials_dropped": self.refusals_dropped, "lost": self.lost, "unreadable": self.unreadable,
        })
    }

    /// The sums for people.
    pub(super) fn to_text(&self) -> String {
        let mut out = String::new();
        match (&self.first, &self.last) {
            (Some(first), Some(last)) => {
                let _ = writeln!(
                    out,
                    "{} requests and {} calls from {} to {}",
                    self.all.requests,
                    self.all.calls,
                    shown(first),
                    shown(last)
                );
            }
            _ => out.push_str("No call in the record fits.\n"),
        }
        for (title, table) in [("MOUNT", &self.mounts), ("CALLER", &self.callers)] {
            if !table.is_empty() {
                out.push('\n');
                rows(&mut out, title, table);
            }
        }
        let failures: Vec<String> = self
            .outcomes
            .iter()
            .filter(|(outcome, _)| *outcome != "ok")
            .map(|(outcome, times)| format!("{} {times}", shown(outcome)))
            .collect();
        if !failures.is_empty() {
            let _ = writeln!(out, "\nFailures: {}", failures.join(", "));
        }
        self.write_refusals(&mut out);
        if self.lost > 0 {
            let _ = writeln!(out, "\n{} records were lost: the disk did not take them in time.", self.lost);
        }
        if self.unreadable > 0 {
            let _ = writeln!(
                out,
                "\n{} lines are not of the record; somebody else wrote or changed them.",
                self.unreadable
            );
        }
        out
    }

    fn write_refusals(&self, out: &mut String) {
        let all = self.refusals();
        if all.is_empty() {
            return;
        }
        out.push_str("\nRefused:\n");
        for ((mount, grant, what), times) in all.iter().take(SHOWN_REFUSALS) {
            let _ = writeln!(out, "  {times} x {}: {} {}", shown(mount), shown(grant), shown(what));
        }
        let hidden = all.len().saturating_sub(SHOWN_REFUSALS);
        if hidden > 0 || self.refusals_dropped > 0 {
            let _ = writeln!(out, "  and {hidden} more; to see them: --json");
        }
        let kinds: BTreeSet<(&str, &str)> =
            all.iter().map(|((mount, grant, _), _)| (mount.as_str(), grant.as_str())).collect();
        for (mount, grant) in kinds {
            // Somebody may paste the command. A forged line can name any mount.
            let Ok(mount) = MountName::new(mount) else { continue };
            let kind = KINDS.iter().find(|kind| kind.name == grant);
            if let Some(command) = kind.and_then(|kind| kind.command(mount.as_str(), None)) {
                let _ = writeln!(out, "To allow \"{mount}\" such access: {command}");
            }
        }
    }
}

/// A table with a row for each name, aligned.
fn rows(out: &mut String, title: &str, all: &BTreeMap<String, Sums>) {
    const HEADS: [&str; 7] = ["REQUESTS", "CALLS", "FAILED", "REFUSED", "CPU", "MEMORY", "BYTES"];
    let name = |name: &str| if name.is_empty() { "(none)".to_owned() } else { text::excerpt(name, 40) };
    let mut names = vec![title.to_owned()];
    let mut cells = vec![HEADS.map(str::to_owned)];
    for (key, sums) in all {
        names.push(name(key));
        cells.push(sums.to_cells());
    }
    let first = table::width(&names, usize::MAX);
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|column| table::width(cells.iter().filter_map(|row| row.get(column)), usize::MAX))
        .collect();
    for (name, row) in names.iter().zip(&cells) {
        let _ = write!(out, "{name:<first$}");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(out, "  {cell:>width$}");
        }
        out.push('\n');
    }
}
