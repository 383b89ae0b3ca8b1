//! Shows that each row can go red: it is run with its guards off, in a build that can do without them, and must not be
//! contained then.

use std::process::ExitCode;
use std::time::Instant;

use belljar_tests::places;

use crate::row::{Row, Stops};
use crate::runner::{self, Verdict};
use crate::scene::Unguarded;
use crate::table;

/// Runs each row that has guards without them.
pub(crate) fn run(rows: &[&Row]) -> ExitCode {
    let began = Instant::now();
    let binary = places::target().join("unguarded/belljar");
    if !binary.is_file() {
        println!("{} is missing: `cargo xtask test --prove-guards` builds it", binary.display());
        return ExitCode::FAILURE;
    }
    let (guarded, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().filter(|row| row.needs.is_none()).partition(|row| matches!(row.stops, Stops::Guards(_)));
    println!(
        "\n{} rows, each with its guards off: it must go red\n{:<9} {:<24} what came through",
        guarded.len(),
        "row",
        "guards off"
    );
    let off = |row: &Row| match row.stops {
        Stops::Guards(guards) => guards.join(","),
        _ => String::new(),
    };
    let row_of = |verdict: &Verdict| guarded.iter().find(|row| row.id == verdict.id && row.attack == verdict.attack);
    let named = |verdict: &Verdict| row_of(verdict).map(|row| off(row)).unwrap_or_default();
    let tell = |verdict: &Verdict| {
        let came = match (is_red(verdict), verdict.is_contained()) {
            (true, _) => table::brief(&verdict.wrong.join("; ")),
            (false, true) => format!("GREEN: {}", verdict.saw),
            (false, false) => format!("did not start: {}", verdict.wrong.join("; ")),
        };
        println!("{:<9} {:<24} {came}", verdict.id, named(verdict));
    };
    let unguarded = |row: &Row| Some(Unguarded { binary: binary.clone(), off: off(row) });
    let verdicts = runner::alone(&guarded, unguarded, tell);
    println!("\n{} rows that no switch of belljar's decides", others.len());
    for row in &others {
        println!("{:<9} {}", row.id, table::stops(row));
    }
    let green = verdicts.iter().filter(|verdict| !is_red(verdict)).count();
    let word = if green == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {green} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
        verdicts.len() - green,
        began.elapsed().as_secs_f64()
    );
    if green == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the attack came through: what did not start proves nothing.
fn is_red(verdict: &Verdict) -> bool {
    verdict.started && !verdict.is_contained()
}
