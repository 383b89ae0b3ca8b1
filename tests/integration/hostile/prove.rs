//! Proves that each row can fail. Runs each row with its guards off, in a build of belljar whose guards can be switched
//! off. The attack must then succeed.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use belljar_tests::places;

use crate::row::{Row, Stops};
use crate::runner::{self, Verdict};
use crate::running_site::Unguarded;
use crate::table;

/// True if this program runs rows with their guards off.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// True if this program runs rows with their guards off. Expected events are then usually missing, so waits are short.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// Runs each row that has guards, with these guards off. Fails if a row is still contained, or does not start.
pub(crate) fn run(rows: &[&Row]) -> ExitCode {
    IS_RUNNING.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let binary = places::target().join("unguarded/belljar");
    if !binary.is_file() {
        println!("{} is missing: `cargo xtask test --prove-guards` builds it", binary.display());
        return ExitCode::FAILURE;
    }
    let (guarded, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().filter(|row| row.needs.is_none()).partition(|row| matches!(row.stops, Stops::Guards(_)));
    println!(
        "\n{} rows, each with its guards off: the attack must succeed\n{:<9} {:<24} result",
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
    let report = |verdict: &Verdict| {
        let result = match (is_red(verdict), verdict.is_contained()) {
            (true, _) => table::brief(&verdict.wrong.join("; ")),
            (false, true) => format!("GREEN: {}", verdict.saw),
            (false, false) => format!("did not start: {}", verdict.wrong.join("; ")),
        };
        println!("{:<9} {:<24} {result}", verdict.id, named(verdict));
    };
    let unguarded = |row: &Row| Some(Unguarded { binary: binary.clone(), off: off(row) });
    let verdicts = runner::alone(&guarded, unguarded, report);
    println!("\n{} rows without guards that belljar can switch off", others.len());
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

/// True if the attack succeeded. A row that did not start proves nothing, so it is not red.
fn is_red(verdict: &Verdict) -> bool {
    verdict.started && !verdict.is_contained()
}
