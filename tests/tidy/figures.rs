//! Checks that the figures in the documents are equal to the figures in `docs/measurements/bench.json`. A run of the
//! benches writes this file. So a figure that was changed by hand is found.

use std::fs;

use belljar_figures::{Row, Run, read, tables};
use belljar_tests::places;

use crate::assert_none;

/// The difference between the figures in `text` and the generated ones.
fn violation(path: &str, text: &str, generated: &str) -> Option<String> {
    match tables::between_marks(text, generated) {
        None => Some(format!("{path} lacks the marks around its figures: {}", tables::MARKS.join(" and "))),
        Some(right) if right != text => Some(format!(
            "the figures in {path} are not those of docs/measurements/bench.json: run \"cargo xtask bench --redraw\""
        )),
        Some(_) => None,
    }
}

/// Rows whose median, low or high does not follow from their rounds.
fn inconsistent_rows(run: &Run) -> Vec<String> {
    let is_wrong =
        |row: &&Row| **row != Row { note: row.note.clone(), ..Row::new(&row.group, &row.row, &row.unit, &row.rounds) };
    run.record
        .rows
        .iter()
        .filter(is_wrong)
        .map(|row| format!("docs/measurements/bench.json: {}, {}", row.group, row.row))
        .collect()
}

/// The run whose figures the documents contain.
fn published() -> Run {
    read(&places::repository().join("docs/measurements/bench.json")).unwrap()
}

#[test]
fn the_documents_contain_the_measured_figures() {
    let run = published();
    assert!(run.record.rows.len() > 20, "a run has figures");
    let text = |page: &str| fs::read_to_string(places::repository().join(page)).unwrap();
    assert_none(tables::PAGES.iter().filter_map(|(page, part)| violation(page, &text(page), &part(&run))));
}

#[test]
fn each_row_follows_from_its_rounds() {
    assert_none(inconsistent_rows(&published()));
}

#[test]
fn a_changed_figure_is_found() {
    let mut run = Run::default();
    run.record.row("HTTP, 1 KiB text", "belljar", "us", &[100.0, 101.0, 102.0]);
    let page = format!("a\n{}\n{}{}\nb\n", tables::MARKS[0], tables::page(&run), tables::MARKS[1]);
    assert_eq!(violation("a.md", &page, &tables::page(&run)), None);
    assert!(violation("a.md", &page.replace("101", "91"), &tables::page(&run)).is_some());
    assert!(violation("a.md", "no marks", &tables::page(&run)).is_some());
    assert_eq!(inconsistent_rows(&run), Vec::<String>::new());
    run.record.rows[0].median = 91.0;
    assert_eq!(inconsistent_rows(&run).len(), 1);
}
