//! The results of the suite, as a table for people and as JSON for the documentation.

use std::time::Duration;

use serde_json::{Value, json};

use crate::absent::ABSENT;
use crate::row::{Row, Stops};
use crate::runner::Verdict;

/// The guards or the mechanism that stop the attack, in words.
pub(crate) fn stops(row: &Row) -> String {
    match row.stops {
        Stops::Guards([]) => "nothing".to_owned(),
        Stops::Guards(guards) => format!("belljar: {}", guards.join(", ")),
        Stops::Wasmtime(how) => format!("wasmtime: {how}"),
        Stops::Kernel(how) => format!("kernel: {how}"),
        Stops::Structure(why) => format!("structure: {why}"),
    }
}

/// The heading of [`line`].
pub(crate) fn heading() -> String {
    format!(
        "{:<9} {:<10} {:>7} {:>9} {:>8} {:>8}  {}",
        "row", "verdict", "time", "witness", "kept", "peak", "the client saw"
    )
}

/// One row for a terminal.
pub(crate) fn line(verdict: &Verdict) -> String {
    if let Some(missing) = verdict.skipped {
        return format!("{:<9} SKIPPED    {missing}", verdict.id);
    }
    let outcome = if verdict.is_contained() { "contained" } else { "RED" };
    let ratio = verdict.ratio.map_or_else(String::new, |ratio| format!("{ratio:.1}x"));
    let grown = verdict.grown.map_or_else(String::new, |grown| format!("{:+} MiB", grown >> 20));
    let peak = verdict.peak.map_or_else(String::new, |peak| format!("+{} MiB", peak >> 20));
    let summary = if verdict.is_contained() { brief(&verdict.saw) } else { verdict.wrong.join("; ") };
    format!(
        "{:<9} {outcome:<10} {:>6.2}s {ratio:>9} {grown:>8} {peak:>8}  {summary}",
        verdict.id,
        verdict.took.as_secs_f64()
    )
}

/// The first 110 characters of a text, on one line.
pub(crate) fn brief(saw: &str) -> String {
    let line = saw.replace('\n', " ");
    let mut short: String = line.chars().take(110).collect();
    if short.len() < line.len() {
        short += " ...";
    }
    short
}

/// All verdicts as JSON, for the documentation.
pub(crate) fn json(rows: &[&Row], alone: &[Verdict], together: &[Verdict], seed: u64) -> Value {
    let about = |verdict: &Verdict| {
        let row = rows.iter().find(|row| row.id == verdict.id && row.attack == verdict.attack);
        json!({
            "id": verdict.id,
            "attack": row.map(|row| row.attack),
            "stops": row.map(|row| stops(row)),
            "contained": verdict.is_contained(),
            "skipped": verdict.skipped,
            "wrong": verdict.wrong,
            "saw": brief(&verdict.saw),
            "seconds": verdict.took.as_secs_f64(),
            "witness": verdict.ratio,
            "witness_ms": verdict.witness.map(|witness| witness.as_secs_f64() * 1000.0),
            "witness_judged": row.is_some_and(|row| row.is_judged()),
            "slow_witness": row.and_then(|row| row.slow_witness),
            "grown": verdict.grown,
            "peak": verdict.peak,
            "late_ms": verdict.late.as_millis(),
        })
    };
    let all = |verdicts: &[Verdict]| verdicts.iter().map(about).collect::<Vec<_>>();
    let absent: Vec<Value> = ABSENT.iter().map(|(id, why)| json!({ "id": id, "why": why })).collect();
    json!({ "seed": seed, "absent": absent, "alone": all(alone), "together": all(together), "overshoot_p99_ms": overshoot(alone).as_millis() })
}

/// How long after their deadline answers came: the 99th percentile of the rows that compute or wait.
pub(crate) fn overshoot(verdicts: &[Verdict]) -> Duration {
    let waits = |verdict: &&Verdict| ["CPU", "BLK"].iter().any(|class| verdict.id.starts_with(class));
    let late: Vec<_> = verdicts.iter().filter(waits).map(|verdict| verdict.late).collect();
    crate::oracle::percentile(&late, 99)
}
