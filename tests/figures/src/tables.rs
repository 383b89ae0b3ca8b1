//! Tables of figures in Markdown: a table for each group, and one table of all servers.

use std::fmt::Write as _;

use crate::verdict::{names, verdicts};
use crate::{Record, Row, Run, Spread};

/// The lines before and after the generated part of a page.
pub const MARKS: [&str; 2] =
    ["<!-- figures: `cargo xtask bench --publish` writes from here -->", "<!-- figures: to here -->"];

/// A function that generates a part of a page from a run.
pub type Part = fn(&Run) -> String;

/// The pages with figures, as paths from the repository's root, each with the function that generates its part.
pub const PAGES: [(&str, Part); 2] = [("docs/measurements/performance.md", page), ("README.md", sentence)];

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
    let machine: Vec<String> = run.machine.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let versions: Vec<String> =
        run.record.versions.iter().map(|(program, version)| format!("{program} {version}")).collect();
    let mut text = format!("Run of {}. {}.\n\n{}.\n", run.date, machine.join("; "), versions.join(", "));
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

/// The sentence of the README, with three figures of one read. Empty if the run has no row of belljar.
pub fn sentence(run: &Run) -> String {
    const GROUP: &str = "HTTP, 1 KiB text";
    let with_workers = run.record.find(GROUP, names::BELLJAR).map(|row| (row, ""));
    let without = || run.record.find(GROUP, names::UNISOLATED).map(|row| (row, ", with `isolation = \"none\"`"));
    let Some((ours, how)) = with_workers.or_else(without) else { return String::new() };
    let times = |name| run.record.find(GROUP, name).map_or("-".to_owned(), |row| number(row.over(ours).value) + "x");
    format!(
        "One HTTP read of 1 KiB, in a fresh sandbox{how}, takes {} us of processor time; FastMCP takes {} as much, \
         server-everything {}.\n",
        number(ours.median),
        times(names::FASTMCP),
        times(names::EVERYTHING)
    )
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
    fn the_readme_has_three_figures() {
        let run = Run { record: record(), ..Run::default() };
        let expected = "One HTTP read of 1 KiB, in a fresh sandbox, takes 110 us of processor time; FastMCP takes 10.0x as \
                        much, server-everything -.\n";
        assert_eq!(sentence(&run), expected);
        assert_eq!(sentence(&Run::default()), "");
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
