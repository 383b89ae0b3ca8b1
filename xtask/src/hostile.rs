//! Runs the hostile table, writes the results into the documentation, and proves that each guard is needed.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::build;
use crate::shell::{self, Shell};

/// The page with the table.
const PAGE: &str = "docs/measurements/containment.md";

/// The lines before and after the table.
const MARKS: (&str, &str) = ("<!-- table: cargo xtask hostile -->", "<!-- end of table -->");

/// Builds everything, runs every row, and writes the table.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    build::run(shell)?;
    program(shell, &[])?;
    let found = shell.target.join("hostile.json");
    let found: Value = serde_json::from_str(&fs::read_to_string(found)?)?;
    let page = shell.root.join(PAGE);
    let text = fs::read_to_string(&page)?;
    fs::write(page, with_table(&text, &table(&found))?)?;
    println!("the table is in {PAGE}");
    Ok(())
}

/// Builds a belljar whose guards can be switched off, and runs each row without its guard. Each row must fail.
pub(crate) fn prove_guards(shell: &Shell) -> Result<()> {
    build::unguarded(shell)?;
    program(shell, &["--prove-guards"])
}

/// Runs the integration tests and the table with other values of `isolation` than the default. The results must be the
/// same.
pub(crate) fn isolated(shell: &Shell) -> Result<()> {
    let unguarded = build::unguarded(shell)?;
    for isolation in ["none", "mount"] {
        for tests in ["integration", "hostile"] {
            let mut cargo = shell.cargo(["test"]);
            cargo.args(shell.profile()).args(["--package", "belljar-tests", "--test", tests, "--"]);
            // Skip the areas about clients and languages. They do not test how a call enters the sandbox.
            for area in ["clients::", "conformance::", "languages::"].iter().filter(|_| tests == "integration") {
                cargo.args(["--skip", area]);
            }
            cargo.env("BELLJAR_TEST_TARGET", &shell.target).env("BELLJAR_TEST_HOST", &unguarded);
            cargo.env("BELLJAR_TEST_UNGUARDED", &unguarded);
            shell::run(cargo.env("BELLJAR_ISOLATION", isolation))?;
        }
    }
    Ok(())
}

fn program(shell: &Shell, arguments: &[&str]) -> Result<()> {
    let mut cargo = shell.cargo(["test", "--package", "belljar-tests", "--test", "hostile"]);
    cargo.env("BELLJAR_TEST_TARGET", &shell.target).env("BELLJAR_TEST_HOST", shell.built("belljar"));
    shell::run(cargo.args(shell.profile()).arg("--").args(arguments))
}

/// `text` with another table between the marks.
fn with_table(text: &str, table: &str) -> Result<String> {
    let parts = text.split_once(MARKS.0).and_then(|(before, rest)| Some((before, rest.split_once(MARKS.1)?.1)));
    let (before, after) = parts.with_context(|| format!("{PAGE} lacks \"{}\" or \"{}\"", MARKS.0, MARKS.1))?;
    Ok(format!("{before}{}\n{table}{}{after}", MARKS.0, MARKS.1))
}

/// The table: one line for each row, with its results alone and together with the others.
fn table(found: &Value) -> String {
    let rows = |key: &str| found[key].as_array().map(Vec::as_slice).unwrap_or_default().to_vec();
    let together = rows("together");
    let mut lines = String::from(
        "| row | what is tried | alone | together | time | witness | memory | what the client saw | what stops it |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows("alone") {
        let beside = together.iter().find(|other| other["id"] == row["id"]);
        let cells = [
            text(&row["id"]),
            text(&row["attack"]),
            outcome(Some(&row)),
            outcome(beside),
            row["seconds"].as_f64().map_or_else(String::new, |seconds| format!("{seconds:.1} s")),
            witness(&row),
            row["peak"].as_u64().map_or_else(String::new, |bytes| format!("+{} MiB", bytes >> 20)),
            text(&row["saw"]),
            text(&row["stops"]),
        ];
        lines += &format!("| {} |\n", cells.join(" | "));
    }
    lines += "\nNot run:\n\n| row | why |\n|---|---|\n";
    for row in rows("absent") {
        lines += &format!("| {} | {} |\n", text(&row["id"]), text(&row["why"]));
    }
    lines
}

/// The witness's slow reads, as a ratio to its slow reads alone, and in milliseconds if they are judged or excused.
fn witness(row: &Value) -> String {
    let Some(ratio) = row["witness"].as_f64() else { return String::new() };
    let time = row["witness_ms"].as_f64().map_or_else(String::new, |ms| format!(" ({ms:.1} ms)"));
    match row["slow_witness"].as_str() {
        Some(why) => format!("{ratio:.1}x{time}, not judged: {why}"),
        None if row["witness_judged"] == true => format!("{ratio:.1}x{time}"),
        None => format!("{ratio:.1}x"),
    }
}

fn outcome(row: Option<&Value>) -> String {
    match row.map(|row| (row["skipped"].is_string(), row["contained"] == true)) {
        None => "",
        Some((true, _)) => "not here",
        Some((false, true)) => "contained",
        Some((false, false)) => "**RED**",
    }
    .to_owned()
}

/// A text without characters that would end a table cell or begin a tag.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_table_replaces_the_old_one() {
        let old = format!("before\n{}\nold\n{}\nafter\n", MARKS.0, MARKS.1);
        let found = json!({
            "alone": [{ "id": "CPU-01", "attack": "a|b", "contained": true, "seconds": 0.51, "saw": "limit time",
                "stops": "belljar: time", "witness": 1.24, "peak": 3 << 20 },
                { "id": "XPL-01", "attack": "a", "contained": true, "witness": 2.0, "witness_ms": 3.21, "witness_judged": true }],
            "together": [{ "id": "CPU-01", "contained": false }],
            "absent": [{ "id": "NET-21", "why": "needs HTTP grants" }],
        });
        let new = with_table(&old, &table(&found)).unwrap();
        let row = "| CPU-01 | a\\|b | contained | **RED** | 0.5 s | 1.2x | +3 MiB | limit time | belljar: time |\n";
        assert!(new.starts_with("before\n<!-- table") && new.contains(row), "{new}");
        assert!(new.contains("| 2.0x (3.2 ms) |"), "{new}");
        assert!(new.ends_with(&format!("| NET-21 | needs HTTP grants |\n{}\nafter\n", MARKS.1)), "{new}");
        assert!(!new.contains("old"));
        assert!(with_table("no marks", "").is_err());
    }
}
