//! Replicas that share one store, in virtual time. The replicas run belljar's own code for policy, quotas, leases, news and
//! shared answers; the store is simulated, with measured costs. `cargo xtask simulate` runs it.
//!
//! The exit code is 1 if a check fails: more was granted than a rule allows, two replicas looked for one round or made one
//! call, or news were lost. The checks hold while the store answers; what a scenario with a failing store costs is shown.
#![recursion_limit = "256"]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its terminal")]

mod constants;
mod load;
mod measure;
mod observer;
mod probes;
mod redis;
mod replica;
mod report;
mod scenario;
#[cfg(test)]
mod tests;
mod usage;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use scenario::Scenario;

const USAGE: &str = "simulation [--full | --measure | --replicas N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        [] => simulate(Scenario::quick()),
        ["--full"] => simulate(Scenario::full()),
        ["--replicas", number] => match number.parse() {
            Ok(number) if number > 0 => simulate(Scenario::with_incidents(number)),
            _ => Err(anyhow::anyhow!("--replicas {number}: expected a number from 1 on: {USAGE}")),
        },
        ["--measure"] => measure::run().map(|table| {
            println!("{table}");
            true
        }),
        _ => Err(anyhow::anyhow!("usage: {USAGE}")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("simulation: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all scenarios. False if a check failed.
fn simulate(scenarios: Vec<Scenario>) -> anyhow::Result<bool> {
    println!("{}", report::HEAD);
    let mut broken = Vec::new();
    for scenario in scenarios {
        let began = Instant::now();
        let outcome = world::run(scenario)?;
        println!("{}", report::row(&outcome));
        eprintln!("{}, after {:.0} s", report::details(&outcome), began.elapsed().as_secs_f64());
        broken.extend(report::broken(&outcome));
    }
    broken.iter().for_each(|broken| eprintln!("CHECK FAILED: {broken}"));
    Ok(broken.is_empty())
}
