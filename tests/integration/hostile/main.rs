//! The hostile table: attacks by a malicious provider, client or machine, each of which belljar must contain.
//!
//! A row is one attack. Each row runs against the real binary, alone and together with all others. The module `oracle` checks
//! the process from outside. The rows lie beside the tests of their area (`tests/integration/<area>/hostile_*.rs`). Rows are
//! data and share processes, so this program has a `main` function instead of `#[test]` functions:
//!
//! ```text
//! cargo test --release -p belljar-tests --test hostile                    every row, alone and together
//! cargo test --release -p belljar-tests --test hostile -- CPU MEM-01     rows whose id begins with CPU or MEM-01, alone
//! cargo test --release -p belljar-tests --test hostile -- --seed 7       the order in which they run together
//! cargo xtask test --prove-guards                                         each row with its guards off: the attack must succeed
//! ```
//!
//! Some rows measure times and memory. So `cargo test` runs this program only if it is named, and CI runs it while nothing
//! else runs.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports a failure by a panic, and this test prints a table"
)]

mod absent;
#[path = "../sandbox/hostile_advisories.rs"]
mod advisories;
#[path = "../consent/hostile_asking.rs"]
mod asking;
#[path = "../limits/hostile_blocking.rs"]
mod blocking;
#[path = "../reads/hostile_cancellation.rs"]
mod cancellation;
#[path = "../auth/cases.rs"]
mod cases;
#[path = "../support/component.rs"]
#[expect(dead_code, reason = "only the test program `integration` uses all of its items")]
mod component;
#[path = "../transport/hostile_connections.rs"]
mod connections;
#[path = "../consent/hostile_consent.rs"]
mod consent;
#[path = "../auth/hostile_credentials.rs"]
mod credentials;
#[path = "../sandbox/hostile_cross_mount.rs"]
mod cross_mount;
#[path = "../grants/database.rs"]
mod database;
mod expect;
#[path = "../grants/hostile_files.rs"]
mod files;
#[path = "../grants/hostile_http.rs"]
mod http_grants;
mod hung_file_system;
#[path = "../providers/hostile_images.rs"]
mod images;
#[path = "../catalog/hostile_lifecycle.rs"]
mod lifecycle;
#[path = "../lists/hostile_listing.rs"]
mod listing;
#[path = "../server/hostile_machine_failures.rs"]
mod machine_failures;
#[path = "../limits/hostile_memory.rs"]
mod memory;
#[path = "../transport/hostile_messages.rs"]
mod messages;
#[path = "../auth/mint.rs"]
mod mint;
#[path = "../grants/hostile_no_network.rs"]
mod no_network;
#[path = "../grants/hostile_oauth.rs"]
mod oauth;
#[path = "../auth/hostile_open_streams.rs"]
mod open_streams;
mod oracle;
#[path = "../auth/people.rs"]
mod people;
#[path = "../grants/hostile_postgres.rs"]
mod postgres_grants;
#[path = "../auth/hostile_principals.rs"]
mod principals;
#[path = "../limits/hostile_processor_time.rs"]
mod processor_time;
#[path = "../prompts/hostile_prompts.rs"]
mod prompts;
mod prove;
#[path = "../tools/hostile_tools.rs"]
mod provider_tools;
#[path = "../record/hostile_record.rs"]
mod record;
#[path = "../configuration/hostile_reload.rs"]
mod reload;
#[path = "../reads/hostile_results.rs"]
mod results;
mod row;
mod runner;
mod running_site;
#[path = "../tools/hostile_schemas.rs"]
mod schemas;
#[path = "../grants/hostile_secrets.rs"]
mod secrets;
#[path = "../skills/hostile_skills.rs"]
mod skills;
#[path = "../record/hostile_stalled_readers.rs"]
mod stalled_readers;
#[path = "../subscriptions/hostile_subscriptions.rs"]
mod subscriptions;
#[path = "../grants/hostile_system.rs"]
mod system_grants;
mod table;
#[path = "../grants/hostile_tcp.rs"]
mod tcp_grants;
#[path = "../auth/hostile_tokens.rs"]
mod tokens;
#[path = "../tools/hostile_tool_calls.rs"]
mod tool_calls;
mod tools;
#[path = "../grants/hostile_upstreams.rs"]
mod upstreams;
#[path = "../tools/hostile_views.rs"]
mod views;

use std::process::ExitCode;
use std::time::Instant;

use belljar_tests::places;

use crate::row::{Row, RunMode};
use crate::runner::Verdict;

/// Every row, in the order of the table.
fn rows() -> Vec<Row> {
    let all = [
        processor_time::rows(),
        blocking::rows(),
        memory::rows(),
        files::rows(),
        no_network::rows(),
        http_grants::rows(),
        upstreams::rows(),
        tcp_grants::rows(),
        postgres_grants::rows(),
        system_grants::rows(),
        secrets::rows(),
        oauth::rows(),
        listing::rows(),
        results::rows(),
        images::rows(),
        skills::rows(),
        provider_tools::rows(),
        tool_calls::rows(),
        schemas::rows(),
        prompts::rows(),
        views::rows(),
        lifecycle::rows(),
        reload::rows(),
        messages::rows(),
        connections::rows(),
        cancellation::rows(),
        subscriptions::rows(),
        cross_mount::rows(),
        advisories::rows(),
        machine_failures::rows(),
        stalled_readers::rows(),
        consent::rows(),
        asking::rows(),
        record::rows(),
        credentials::rows(),
        tokens::rows(),
        principals::rows(),
        open_streams::rows(),
    ];
    all.into_iter().flatten().collect()
}

fn main() -> ExitCode {
    // Print nothing for a panic: the verdict of the row contains the message.
    std::panic::set_hook(Box::new(|_| {}));
    let mut wanted = Vec::new();
    let mut seed = fastrand::u64(..1_000_000);
    let mut prove = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" => seed = arguments.next().and_then(|seed| seed.parse().ok()).expect("--seed N"),
            "--prove-guards" => prove = true,
            // Ignore the flags that `cargo test` passes to every test program.
            flag if flag.starts_with('-') => {}
            id => wanted.push(id.to_owned()),
        }
    }
    let all = rows();
    let chosen: Vec<&Row> = all
        .iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|wanted| row.id.starts_with(wanted.as_str())))
        .collect();
    let missing = absent::missing(&all);
    if !missing.is_empty() {
        println!("rows that are missing, and not listed in `ABSENT`: {}", missing.join(", "));
        return ExitCode::FAILURE;
    }
    if prove { prove::run(&chosen) } else { run(&chosen, wanted.is_empty(), seed) }
}

/// Runs each row alone. If `all` rows were chosen, also runs them together. Prints the verdicts as a test program does.
fn run(rows: &[&Row], all: bool, seed: u64) -> ExitCode {
    let began = Instant::now();
    let report = |verdict: &Verdict| println!("{}", table::line(verdict));
    println!("\n{} hostile rows, each in a process of its own\n{}", rows.len(), table::heading());
    let alone = runner::alone(rows, |_| None, report);
    let mut together = Vec::new();
    if all {
        let mut shared: Vec<&Row> =
            rows.iter().copied().filter(|row| row.run_mode == RunMode::Shared && row.needs.is_none()).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut shared);
        println!(
            "\n{} of them together in one process, in the order of --seed {seed}\n{}",
            shared.len(),
            table::heading()
        );
        together = runner::together(&shared, report);
        together.last().into_iter().for_each(report);
        println!("\nnot run:");
        absent::ABSENT.iter().for_each(|(id, why)| println!("{id:<9} {why}"));
        let json = table::json(rows, &alone, &together, seed);
        let path = places::target().join("hostile.json");
        std::fs::write(&path, format!("{json:#}\n")).expect("a writable build directory");
    }
    println!(
        "\n99th percentile of the delay of answers after their deadline, rows CPU and BLK: {:?}",
        table::overshoot(&alone)
    );
    let verdicts: Vec<&Verdict> = alone.iter().chain(&together).collect();
    conclude(&verdicts, began)
}

/// Prints the red rows and the last line, in the format of a test program.
fn conclude(verdicts: &[&Verdict], began: Instant) -> ExitCode {
    let red: Vec<&&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_contained()).collect();
    if !red.is_empty() {
        red.iter().for_each(|verdict| println!("test {} ... FAILED", verdict.id));
        println!("\nfailures:\n");
        for verdict in &red {
            println!("---- {}: {} ----\n{}\n", verdict.id, verdict.attack, verdict.wrong.join("\n"));
        }
        println!("\nfailures:");
        red.iter().for_each(|verdict| println!("    {}", verdict.id));
        println!();
    }
    let word = if red.is_empty() { "ok" } else { "FAILED" };
    let skipped = verdicts.iter().filter(|verdict| verdict.skipped.is_some()).count();
    println!(
        "test result: {word}. {} passed; {} failed; {skipped} ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
        verdicts.len() - red.len() - skipped,
        red.len(),
        began.elapsed().as_secs_f64()
    );
    if red.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
