//! What a bench hands over: rows of figures, as JSON, so that one run of many programs becomes one table.
//!
//! It owns the format, the spread and the ratios, the aims ([`verdict`]) and the tables ([`tables`]). It must not know how
//! anything is measured.
//!
//! Rows of one *group* were measured in the same rounds: only they may be compared, and they are compared round by round.

pub mod tables;
pub mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

/// The environment variable that names the file which a program hands its figures over in.
pub const FILE: &str = "BELLJAR_BENCH_JSON";

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it was measured together with, in the same rounds.
    pub group: String,
    /// What it is, unique in its group.
    pub row: String,
    /// What the figures count: `us` (of processor time, for one request), `ms`, `MiB`, `requests/s` ...
    pub unit: String,
    /// The figure of each round, in order.
    pub rounds: Vec<f64>,
    /// Half of the rounds are below this.
    pub median: f64,
    /// A quarter of the rounds is below this.
    pub low: f64,
    /// A quarter of the rounds is above this.
    pub high: f64,
    /// What a reader has to know beside the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A figure with the middle half of the rounds around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median: half of the rounds are below this.
    pub value: f64,
    /// A quarter of the rounds is below this.
    pub low: f64,
    /// A quarter of the rounds is above this.
    pub high: f64,
}

/// Figures of one program, in the order in which they are to be shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The rows.
    pub rows: Vec<Row>,
    /// Versions of what was measured: name to version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// What should have been measured and could not be, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One run of all programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The day, as 2026-11-22.
    pub date: String,
    /// What it ran on: the processor's model, how many there are, the kernel. No names.
    pub machine: BTreeMap<String, String>,
    /// What was measured.
    #[serde(flatten)]
    pub record: Record,
}

/// The value below which `share` of `values` lie; not a number where there are none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let at = (share * (sorted.len().saturating_sub(1)) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

impl Row {
    /// A row of these rounds, kept to four digits.
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

    /// The median and the middle half of the rounds.
    pub fn spread(&self) -> Spread {
        spread(&self.rounds)
    }

    /// How many times `base` this is, round by round: the median and the middle half of the ratios.
    pub fn over(&self, base: &Row) -> Spread {
        self.against(base, |own, base| own / base)
    }

    /// How much more than `base` this is, in the same way.
    pub fn above(&self, base: &Row) -> Spread {
        self.against(base, |own, base| own - base)
    }

    fn against(&self, base: &Row, how: impl Fn(f64, f64) -> f64) -> Spread {
        let rounds: Vec<f64> = self.rounds.iter().zip(&base.rounds).map(|(own, base)| how(*own, *base)).collect();
        spread(&rounds)
    }
}

/// The median and the middle half of `rounds`. The median lies within the middle half, because both are of the same rounds.
fn spread(rounds: &[f64]) -> Spread {
    Spread { value: quantile(rounds, 0.5), low: quantile(rounds, 0.25), high: quantile(rounds, 0.75) }
}

/// Four digits are more than any of these figures has, and keep the file readable.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

impl Record {
    /// Nothing yet.
    pub fn new() -> Record {
        Record::default()
    }

    /// Adds a row; `rounds` has the figure of each round, in order, or a single one of what was measured once.
    ///
    /// Where two rows of a group are compared, their rounds are, one by one: measure them in turns.
    pub fn row(&mut self, group: &str, row: &str, unit: &str, rounds: &[f64]) -> &mut Record {
        self.rows.push(Row::new(group, row, unit, rounds));
        self
    }

    /// Adds a remark to the last row.
    pub fn note(&mut self, note: &str) -> &mut Record {
        if let Some(row) = self.rows.last_mut() {
            row.note = Some(note.to_owned());
        }
        self
    }

    /// Says that something could not be measured. In the table it is a line of its own, in CI a failure.
    pub fn missing(&mut self, what: &str) {
        self.missing.push(what.to_owned());
    }

    /// Says which version of something was measured.
    pub fn version(&mut self, of: &str, version: &str) {
        self.versions.insert(of.to_owned(), version.to_owned());
    }

    /// A row by its group and name.
    pub fn find(&self, group: &str, row: &str) -> Option<&Row> {
        self.rows.iter().find(|one| one.group == group && one.row == row)
    }

    /// The groups, in the order in which they first came.
    pub fn groups(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !all.contains(&row.group.as_str()) {
                all.push(&row.group);
            }
        }
        all
    }

    /// The rows of a group.
    pub fn group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.group == group)
    }

    /// Adds what another program handed over.
    pub fn extend(&mut self, other: Record) {
        self.rows.extend(other.rows);
        self.versions.extend(other.versions);
        self.missing.extend(other.missing);
    }

    /// Writes the figures into the file that [`FILE`] names; does nothing where it names none.
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

/// Writes figures as JSON: a line for each row, so that a difference between two runs can be read.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, figures: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(figures)?;
    // The figures of a row on one line.
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

/// Reads figures: a [`Record`] or a [`Run`].
///
/// # Errors
/// There is no such file, or it holds something else.
pub fn read<T: for<'a> Deserialize<'a>>(file: &Path) -> io::Result<T> {
    Ok(serde_json::from_str(&fs::read_to_string(file)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_back_as_they_were_written() {
        let mut record = Record::new();
        record.row("a", "b", "us", &[1.0, 123.456, 2.0]).note("c");
        record.row("a", "one", "ms", &[0.000_123_456]);
        record.version("wasmtime", "48.0.8");
        let run = Run { date: "2026-11-22".to_owned(), machine: BTreeMap::new(), record };
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
    fn ratios_are_taken_round_by_round_and_the_median_lies_within_the_middle_half() {
        let own = Row::new("g", "own", "us", &[2.0, 20.0, 200.0, 2.2, 2.4]);
        let base = Row::new("g", "base", "us", &[1.0, 10.0, 100.0, 1.0, 1.0]);
        let over = own.over(&base);
        assert!((over.value - 2.0).abs() < 1e-9 && (over.low - 2.0).abs() < 1e-9 && (over.high - 2.2).abs() < 1e-9);
        assert!((own.above(&base).value - 1.4).abs() < 1e-9);
        // The medians of the two rows have the ratio 12, which no round has.
        let (own, base) =
            (Row::new("g", "own", "us", &[12.0, 1.0, 30.0]), Row::new("g", "base", "us", &[1.0, 10.0, 1.0]));
        let over = own.over(&base);
        assert!(over.low <= over.value && over.value <= over.high, "{over:?}");
        assert!(quantile(&[], 0.5).is_nan());
    }
}
