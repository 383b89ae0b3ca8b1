//! The results of benches: rows of figures as JSON. Several bench programs can add rows to one table.
//!
//! This crate owns the format, the computation of spreads and ratios, the targets ([`verdict`]) and the tables
//! ([`tables`]). It measures nothing.
//!
//! Rows of one *group* were measured in the same rounds. Only rows of one group are compared, round by round.

pub mod tables;
pub mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

/// The environment variable with the path of the file into which a program writes its figures.
pub const FILE: &str = "BELLJAR_BENCH_JSON";

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The group: the rows that were measured in the same rounds.
    pub group: String,
    /// The name of the row, unique in its group.
    pub row: String,
    /// The unit of the figures: `us` (of processor time, for one request), `ms`, `MiB`, `requests/s` ...
    pub unit: String,
    /// The figure of each round, in order.
    pub rounds: Vec<f64>,
    /// The median of the rounds.
    pub median: f64,
    /// The first quartile: a quarter of the rounds is below this figure.
    pub low: f64,
    /// The third quartile: a quarter of the rounds is above this figure.
    pub high: f64,
    /// A note for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The median of the rounds, with the first and the third quartile. Half of the rounds lie between the quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub value: f64,
    /// The first quartile: a quarter of the rounds is below this figure.
    pub low: f64,
    /// The third quartile: a quarter of the rounds is above this figure.
    pub high: f64,
}

/// The figures of one bench program. Tables show the rows in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The rows.
    pub rows: Vec<Row>,
    /// The versions of the measured programs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// The measurements that were not possible, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One run of bench programs, with the figures of earlier runs that it did not measure again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The day, as 2026-11-22.
    pub date: String,
    /// The machine: model and number of processors, kernel. No host name.
    pub machine: BTreeMap<String, String>,
    /// The earlier runs from which groups were kept, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierRun>,
    /// The figures.
    #[serde(flatten)]
    pub record: Record,
}

/// The groups that were kept from an earlier run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// The day of that run.
    pub date: String,
    /// The machine of that run.
    pub machine: BTreeMap<String, String>,
    /// The names of the groups.
    pub groups: Vec<String>,
}

impl Run {
    /// Adds the groups of `before` that this run did not measure. All rows of a group are from one run. The groups keep the
    /// order in which `before` has them.
    pub fn keeping(self, before: Run) -> Run {
        let is_kept = |group: &str| !self.record.has(group);
        let older = before.earlier.iter().flat_map(|run| &run.groups);
        let own = before.record.groups().into_iter().filter(|group| !older.clone().any(|one| one == group));
        let own = EarlierRun {
            groups: own.map(str::to_owned).collect(),
            date: before.date.clone(),
            machine: before.machine.clone(),
        };
        let mut earlier: Vec<EarlierRun> = [own].into_iter().chain(before.earlier.iter().cloned()).collect();
        earlier.iter_mut().for_each(|run| run.groups.retain(|group| is_kept(group)));
        earlier.retain(|run| !run.groups.is_empty());
        let mut record = Record { rows: Vec::new(), ..self.record.clone() };
        for group in before.record.groups() {
            let source = if is_kept(group) { &before.record } else { &self.record };
            record.rows.extend(source.group(group).cloned());
        }
        let is_new = |row: &&Row| !before.record.has(&row.group);
        record.rows.extend(self.record.rows.iter().filter(is_new).cloned());
        for (program, version) in before.record.versions {
            record.versions.entry(program).or_insert(version);
        }
        Run { earlier, record, ..self }
    }
}

/// The quantile `share` of `values`, from 0 to 1. NaN if `values` is empty.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the float is an index into the sorted values"
    )]
    let at = (share * (sorted.len().saturating_sub(1)) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

impl Row {
    /// Creates a row. Rounds the figures to four digits.
    pub fn new(group: &str, row: &str, unit: &str, rounds: &[f64]) -> Row {
        let rounds: Vec<f64> = rounds.iter().copied().map(four_digits).collect();
        let mut row = Row {
            group: group.to_owned(),
            row: row.to_owned(),
            unit: unit.to_owned(),
            rounds,
            median: 0.0,
            low: 0.0,
            high: 0.0,
            note: None,
        };
        let spread = row.spread();
        (row.median, row.low, row.high) = (spread.value, spread.low, spread.high);
        row
    }

    /// The median and the quartiles of the rounds.
    pub fn spread(&self) -> Spread {
        spread(&self.rounds)
    }

    /// The ratio to `base`: the ratio of each round, and of these the median and the quartiles.
    pub fn over(&self, base: &Row) -> Spread {
        self.against(base, |own, base| own / base)
    }

    /// The difference to `base`: the difference of each round, and of these the median and the quartiles.
    pub fn above(&self, base: &Row) -> Spread {
        self.against(base, |own, base| own - base)
    }

    fn against(&self, base: &Row, how: impl Fn(f64, f64) -> f64) -> Spread {
        let rounds: Vec<f64> = self.rounds.iter().zip(&base.rounds).map(|(own, base)| how(*own, *base)).collect();
        spread(&rounds)
    }
}

/// The median and the quartiles of `rounds`. The median lies between the quartiles, because all are computed from the
/// same rounds.
fn spread(rounds: &[f64]) -> Spread {
    Spread { value: quantile(rounds, 0.5), low: quantile(rounds, 0.25), high: quantile(rounds, 0.75) }
}

/// Rounds to four digits. The benches are less precise than four digits, and longer figures are hard to read.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

impl Record {
    /// An empty record.
    pub fn new() -> Record {
        Record::default()
    }

    /// Adds a row. `rounds` has the figure of each round, in order, or a single figure.
    ///
    /// The rows of a group are compared round by round. So measure all rows of a group in each round.
    pub fn row(&mut self, group: &str, row: &str, unit: &str, rounds: &[f64]) -> &mut Record {
        self.rows.push(Row::new(group, row, unit, rounds));
        self
    }

    /// Adds a note to the last row.
    pub fn note(&mut self, note: &str) -> &mut Record {
        if let Some(row) = self.rows.last_mut() {
            row.note = Some(note.to_owned());
        }
        self
    }

    /// Notes that a measurement was not possible. The page shows this on its own line. In CI, this is a failure.
    pub fn missing(&mut self, what: &str) {
        self.missing.push(what.to_owned());
    }

    /// Notes the version of a measured program.
    pub fn version(&mut self, of: &str, version: &str) {
        self.versions.insert(of.to_owned(), version.to_owned());
    }

    /// A row by its group and name.
    pub fn find(&self, group: &str, row: &str) -> Option<&Row> {
        self.rows.iter().find(|one| one.group == group && one.row == row)
    }

    /// The groups, in the order of their first rows.
    pub fn groups(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !all.contains(&row.group.as_str()) {
                all.push(&row.group);
            }
        }
        all
    }

    fn has(&self, group: &str) -> bool {
        self.rows.iter().any(|row| row.group == group)
    }

    /// The rows of a group.
    pub fn group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.group == group)
    }

    /// Adds the record of another program.
    pub fn extend(&mut self, other: Record) {
        self.rows.extend(other.rows);
        self.versions.extend(other.versions);
        self.missing.extend(other.missing);
    }

    /// Writes the figures into the file that [`FILE`] names. Does nothing if the variable is not set.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn hand_over(&self) -> io::Result<()> {
        match env::var_os(FILE) {
            Some(file) => write(&PathBuf::from(file), self),
            None => Ok(()),
        }
    }
}

/// Writes figures as JSON. Keeps the rounds of a row on one line, so that a person can read the difference between two
/// runs.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, figures: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(figures)?;
    // Join the lines of `rounds`.
    let mut flat = String::with_capacity(text.len());
    while let Some((head, rest)) = text.split_once("\"rounds\": [") {
        let (rounds, tail) = rest.split_once(']').unwrap_or((rest, ""));
        let rounds: Vec<&str> = rounds.split(',').map(str::trim).collect();
        flat.push_str(&format!("{head}\"rounds\": [{}]", rounds.join(", ")));
        text = tail.to_owned();
    }
    flat.push_str(&text);
    flat.push('\n');
    fs::write(file, flat)
}

/// Reads a file of figures: a [`Record`] or a [`Run`].
///
/// # Errors
/// If the file does not exist, or has another format.
pub fn read<T: for<'a> Deserialize<'a>>(file: &Path) -> io::Result<T> {
    Ok(serde_json::from_str(&fs::read_to_string(file)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_figures_are_read_back_unchanged() {
        let mut record = Record::new();
        record.row("a", "b", "us", &[1.0, 123.456, 2.0]).note("c");
        record.row("a", "one", "ms", &[0.000_123_456]);
        record.version("wasmtime", "48.0.8");
        let run = Run { date: "2026-11-22".to_owned(), record, ..Run::default() };
        let file = env::temp_dir().join(format!("belljar-figures-{}.json", std::process::id()));
        write(&file, &run).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let back: Run = read(&file).unwrap();
        let as_record: Record = read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(back, run);
        assert_eq!(as_record, run.record, "a run is a record with a date");
        assert!(text.contains("\"rounds\": [1.0, 123.5, 2.0]"), "{text}");
        let row = back.record.find("a", "b").unwrap();
        assert_eq!((row.median, row.low, row.high), (2.0, 2.0, 123.5));
    }

    #[test]
    fn groups_that_were_not_measured_again_are_kept_with_their_date() {
        let run = |date: &str, rows: &[(&str, f64)]| {
            let mut record = Record::new();
            for (group, figure) in rows {
                record.row(group, "own", "us", &[*figure]);
            }
            Run { date: date.to_owned(), record, ..Run::default() }
        };
        let first = run("2026-11-22", &[("a", 1.0), ("b", 1.0), ("c", 1.0)]);
        let second = run("2026-11-23", &[("b", 2.0), ("d", 2.0)]).keeping(first);
        let third = run("2026-11-24", &[("d", 3.0), ("c", 3.0)]).keeping(second);
        let figures: Vec<_> = third.record.rows.iter().map(|row| (row.group.as_str(), row.median)).collect();
        assert_eq!(figures, [("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 3.0)]);
        let earlier: Vec<_> = third.earlier.iter().map(|run| (run.date.as_str(), run.groups.join(","))).collect();
        assert_eq!(earlier, [("2026-11-23", "b".to_owned()), ("2026-11-22", "a".to_owned())]);
        assert_eq!(third.date, "2026-11-24");
    }

    #[test]
    fn ratios_are_computed_round_by_round_and_the_median_lies_between_the_quartiles() {
        let own = Row::new("g", "own", "us", &[2.0, 20.0, 200.0, 2.2, 2.4]);
        let base = Row::new("g", "base", "us", &[1.0, 10.0, 100.0, 1.0, 1.0]);
        let over = own.over(&base);
        assert!((over.value - 2.0).abs() < 1e-9 && (over.low - 2.0).abs() < 1e-9 && (over.high - 2.2).abs() < 1e-9);
        assert!((own.above(&base).value - 1.4).abs() < 1e-9);
        // The ratio of the two medians is 12. No single round has this ratio.
        let (own, base) =
            (Row::new("g", "own", "us", &[12.0, 1.0, 30.0]), Row::new("g", "base", "us", &[1.0, 10.0, 1.0]));
        let over = own.over(&base);
        assert!(over.low <= over.value && over.value <= over.high, "{over:?}");
        assert!(quantile(&[], 0.5).is_nan());
    }
}
