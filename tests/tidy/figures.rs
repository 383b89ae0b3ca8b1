//! The figures in the documents are those of `docs/bench.json`, which a run wrote: nobody can polish one by hand.

use std::fs;

use belljar_figures::{Row, Run, read, tables};
use belljar_tests::places;

use crate::none;

/// What is wrong with the figures in `text`.
fn violation(path: &str, text: &str, generated: &str) -> Option<String> {
    match tables::between_marks(text, generated) {
        None => Some(format!("{path} has no place for figures: {}", tables::MARKS.join(" and "))),
        Some(right) if right != text => {
            Some(format!("{path} does not say what docs/bench.json says: run \"cargo xtask bench --redraw\""))
        }
        Some(_) => None,
    }
}

/// Rows whose figures are not those of their rounds.
fn miscounted(run: &Run) -> Vec<String> {
    let wrong =
        |row: &&Row| **row != Row { note: row.note.clone(), ..Row::new(&row.group, &row.row, &row.unit, &row.rounds) };
    run.record.rows.iter().filter(wrong).map(|row| format!("docs/bench.json: {}, {}", row.group, row.row)).collect()
}

fn published() -> Run {
    read(&places::repository().join("docs/bench.json")).unwrap()
}

#[test]
fn the_documents_say_what_was_measured() {
    let run = published();
    assert!(run.record.rows.len() > 20, "a run has figures");
    let text = |page: &str| fs::read_to_string(places::repository().join(page)).unwrap();
    none(tables::PAGES.iter().filter_map(|(page, part)| violation(page, &text(page), &part(&run))));
}

#[test]
fn medians_are_of_their_rounds() {
    none(miscounted(&published()));
}

#[test]
fn a_polished_figure_is_found() {
    let mut run = Run::default();
    run.record.row("HTTP, 1 KiB text", "belljar", "us", &[100.0, 101.0, 102.0]);
    let page = format!("a\n{}\n{}{}\nb\n", tables::MARKS[0], tables::page(&run), tables::MARKS[1]);
    assert_eq!(violation("a.md", &page, &tables::page(&run)), None);
    assert!(violation("a.md", &page.replace("101", "91"), &tables::page(&run)).is_some());
    assert!(violation("a.md", "no marks", &tables::page(&run)).is_some());
    assert_eq!(miscounted(&run), Vec::<String>::new());
    run.record.rows[0].median = 91.0;
    assert_eq!(miscounted(&run).len(), 1);
}
