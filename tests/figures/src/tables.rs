//! Tables of figures in Markdown: a table for each group, and one table of all servers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::verdict::{HTTP_16, STDIO_16, names, verdicts};
use crate::{EarlierRun, Record, Row, Run, Spread};

/// The lines before and after the generated part of a page.
pub const MARKS: [&str; 2] =
    ["<!-- figures: `cargo xtask bench --publish` writes from here -->", "<!-- figures: to here -->"];

/// A function that generates a part of a page from a run.
pub type Part = fn(&Run) -> String;

/// The pages with figures, as paths from the repository's root, each with the function that generates its part.
pub const PAGES: [(&str, Part); 2] = [("docs/measurements/performance.md", page), ("README.md", summary)];

/// Formats a figure: two decimal places below 10, one below 100, and none above.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// A ratio with its spread.
fn times(Spread { value, low, high }: Spread) -> String {
    #[expect(clippy::float_cmp, reason = "low and high are the same value if there was one round")]
    if low == high {
        return format!("{}x", number(value));
    }
    format!("{}x ({} - {})", number(value), number(low), number(high))
}

/// A figure with its spread, without its unit.
fn figure(row: &Row) -> String {
    let Spread { value, low, high } = row.spread();
    if row.rounds.len() < 2 {
        return number(value);
    }
    format!("{} ({} - {})", number(value), number(low), number(high))
}

/// The table of one group. The last column is the ratio of each row to the first row.
pub fn group(record: &Record, group: &str) -> String {
    let rows: Vec<&Row> = record.group(group).collect();
    let Some(first) = rows.first() else { return String::new() };
    let mut text = format!("| {group} | {}, median (middle half) | to the first |\n|---|---|---|\n", first.unit);
    for row in &rows {
        let ratio = if row.unit == first.unit { times(row.over(first)) } else { "-".to_owned() };
        let unit = if row.unit == first.unit { String::new() } else { format!(" {}", row.unit) };
        let _ = writeln!(text, "| {} | {}{unit} | {ratio} |", row.row, figure(row));
    }
    let notes: Vec<String> =
        rows.iter().filter_map(|row| row.note.as_ref().map(|note| format!("- {}: {note}", row.row))).collect();
    if !notes.is_empty() {
        let _ = write!(text, "\n{}\n", notes.join("\n"));
    }
    text
}

/// True for a group that compares servers with the same requests. The first row of such a group is belljar.
fn is_of_servers(record: &Record, group: &str) -> bool {
    record.group(group).next().is_some_and(|row| [names::BELLJAR, names::UNISOLATED].contains(&row.row.as_str()))
}

/// All servers in one table: belljar's processor time, and the ratio of each other server to it.
pub fn servers(record: &Record) -> String {
    let groups: Vec<&str> = record.groups().into_iter().filter(|group| is_of_servers(record, group)).collect();
    let mut columns: Vec<&str> = Vec::new();
    for row in groups.iter().flat_map(|group| record.group(group).skip(1)) {
        if !columns.contains(&row.row.as_str()) {
            columns.push(&row.row);
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut text = format!("| | belljar, us | {} |\n|---|---|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    for group in groups {
        let Some(ours) = record.group(group).next() else { continue };
        let cells: Vec<String> = columns
            .iter()
            .map(|column| record.find(group, column).map_or("-".to_owned(), |row| times(row.over(ours))))
            .collect();
        let _ = writeln!(text, "| {group} | {} | {} |", figure(ours), cells.join(" | "));
    }
    text
}

/// The table of targets and results.
pub fn verdict(record: &Record) -> String {
    let mut text = "| what is judged | aim | measured (middle half) | |\n|---|---|---|---|\n".to_owned();
    for verdict in verdicts(record) {
        let _ = writeln!(text, "| {} | {} | {} | {} |", verdict.what, verdict.aim, verdict.measured, verdict.word);
    }
    text
}

/// The date, the machine and the versions of a run.
pub fn provenance(run: &Run) -> String {
    let machine = |of: &BTreeMap<String, String>| {
        of.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>().join("; ")
    };
    let versions: Vec<String> =
        run.record.versions.iter().map(|(program, version)| format!("{program} {version}")).collect();
    let mut text = format!("Run of {}. {}.\n\n{}.\n", run.date, machine(&run.machine), versions.join(", "));
    if !run.earlier.is_empty() {
        text.push_str("\nThese groups were not measured again. They are of earlier runs:\n\n");
    }
    for EarlierRun { date, machine: of, groups } in &run.earlier {
        let _ = writeln!(text, "- of {date} ({}): {}", machine(of), groups.join("; "));
    }
    for missing in &run.record.missing {
        let _ = writeln!(text, "\n**Missing: {missing}.**");
    }
    text
}

/// The notes on the rows of the table of all servers. Equal notes appear once.
fn notes(record: &Record) -> String {
    let mut all: Vec<String> = Vec::new();
    for group in record.groups().into_iter().filter(|group| is_of_servers(record, group)) {
        for row in record.group(group) {
            let note = row.note.as_ref().map(|note| format!("- {}: {note}", row.row));
            all.extend(note.filter(|note| !all.contains(note)));
        }
    }
    all.join("\n") + "\n"
}

/// All figures of a run, for the page about performance.
pub fn page(run: &Run) -> String {
    let record = &run.record;
    let mut text = format!("{}\n### The aims\n\n{}", provenance(run), verdict(record));
    let _ = write!(text, "\n### Every server, the same question\n\n{}\n{}", servers(record), notes(record));
    text.push_str("\n### The rest\n");
    for name in record.groups().into_iter().filter(|group| !is_of_servers(record, group)) {
        let _ = write!(text, "\n{}", group(record, name));
    }
    text
}

/// The groups of the README's table, each with its name there.
const SUMMARY: [(&str, &str); 4] = [
    ("HTTP, 1 KiB text", "HTTP"),
    (HTTP_16, "HTTP, 16 clients"),
    ("stdio, 1 KiB text", "stdio"),
    (STDIO_16, "stdio, 16 in flight"),
];

/// The table of the README: a read of 1 KiB. Empty if the run has no row of belljar.
pub fn summary(run: &Run) -> String {
    let servers = [names::NATIVE, names::EVERYTHING, names::FASTMCP];
    let mut text = String::new();
    for (group, name) in SUMMARY {
        let Some(ours) = run.record.find(group, names::BELLJAR) else { continue };
        if text.is_empty() {
            text = format!("| | belljar | {} |\n|---|---|---|---|---|\n", servers.join(" | "));
        }
        let times =
            |server| run.record.find(group, server).map_or("-".to_owned(), |row| number(row.over(ours).value) + "x");
        let _ = writeln!(text, "| {name} | {} us | {} |", number(ours.median), servers.map(times).join(" | "));
    }
    text
}

/// Replaces the part of `page` between the marks by `generated`. `None` if the marks are missing.
pub fn between_marks(page: &str, generated: &str) -> Option<String> {
    let [begin, end] = MARKS;
    let (head, rest) = page.split_once(begin)?;
    let (_, tail) = rest.split_once(end)?;
    Some(format!("{head}{begin}\n{generated}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut record = Record::new();
        record.row("HTTP, 1 KiB text", "belljar", "us", &[110.0, 100.0, 105.0, 120.0, 130.0]);
        record.row("HTTP, 1 KiB text", "FastMCP", "us", &[1100.0, 1000.0, 2100.0, 2400.0, 1300.0]).note("one process");
        record.row("one process", "bare engine", "us", &[8.0]);
        record.row("one process", "memory", "MiB", &[3.0]);
        record
    }

    #[test]
    fn servers_share_one_table_and_each_other_group_has_its_own() {
        let record = record();
        assert_eq!(
            servers(&record),
            "| | belljar, us | FastMCP |\n|---|---|---|\n| HTTP, 1 KiB text | 110 (105 - 120) | 10.0x (10.0 - 20.0) |\n"
        );
        assert_eq!(
            group(&record, "one process"),
            "| one process | us, median (middle half) | to the first |\n|---|---|---|\n| bare engine | 8.00 | 1.00x |\n| memory | 3.00 MiB | - |\n"
        );
        let run = Run { record, ..Run::default() };
        assert!(page(&run).contains("- FastMCP: one process") && page(&run).contains("| bare engine |"));
    }

    #[test]
    fn the_readme_has_a_short_table() {
        let run = Run { record: record(), ..Run::default() };
        let expected = "| | belljar | rmcp, no sandbox | server-everything | FastMCP |\n|---|---|---|---|---|\n\
                        | HTTP | 110 us | - | - | 10.0x |\n";
        assert_eq!(summary(&run), expected);
        assert_eq!(summary(&Run::default()), "");
    }

    #[test]
    fn groups_of_an_earlier_run_are_named() {
        let before = Run { date: "2026-11-22".to_owned(), record: record(), ..Run::default() };
        let mut new = Run { date: "2026-11-23".to_owned(), ..Run::default() };
        new.record.row("HTTP, 1 KiB text", "belljar", "us", &[100.0]);
        let text = provenance(&new.keeping(before));
        assert!(text.contains("Run of 2026-11-23") && text.contains("- of 2026-11-22"), "{text}");
        assert!(text.contains("one process") && !text.contains("HTTP, 1 KiB text"), "{text}");
    }

    #[test]
    fn only_the_text_between_the_marks_is_replaced() {
        let [begin, end] = MARKS;
        let page = format!("a\n{begin}\nold\n{end}\nb\n");
        let expected = format!("a\n{begin}\nnew\n{end}\nb\n");
        assert_eq!(between_marks(&page, "new\n").as_deref(), Some(expected.as_str()));
        assert_eq!(between_marks("no marks", "new\n"), None);
    }
}
