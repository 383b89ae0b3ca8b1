//! The repository's own commands, run as `cargo xtask VERB`.
//!
//! Each verb is one module. This file knows the verbs and their help, and must not know how they work.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints to its terminal")]
#![expect(clippy::indexing_slicing, reason = "only JSON is indexed: an absent key is null")]

mod bench;
mod build;
mod demo;
mod dist;
mod engine;
mod fuzz;
mod hostile;
mod instructions;
mod languages;
mod lint;
mod output;
mod profile;
mod report;
mod sdk;
mod setup;
mod shell;
mod simulate;
mod soak;
mod test;
mod tools;
mod trial;

use std::env;
use std::process::ExitCode;

use crate::shell::Shell;

const HELP: &str = "\
cargo xtask <verb>

  demo    build belljar and two providers, serve notes, read them as an MCP client, print how to connect one
  test    set up, build, lint, and run every test: what CI runs
          --quick: before each commit: formatting, clippy, house rules, unit tests, some tests of the real binary
          --all: what CI runs, then --prove-guards, --isolated, fuzz and soak; takes hours
          --prove-guards: run each hostile row without its guards; it must go red
          --isolated: run the integration tests and the hostile table with other values of isolation
  hostile run the hostile table, and write its results into docs/measurements/containment.md
  build   target/release/belljar, target/plugins/*.wasm, target/guests/*.wasm
  languages  make, build and test a provider in each language by `belljar new`; installs the tools
  bench   the cost of a read, in ratios: to the bare engine, and to the servers that a user would choose instead
          [--rounds N] [--only PROGRAM,...]  target/bench.json has the figures
          --publish: a whole run; its figures are written into the documents as well
          --redraw: measure nothing, write the documents from the published figures
  instructions  count the instructions of the hot paths, compare with the committed figures: [--accept | --prove]
  dist    pack belljar and its providers for Linux into target/packages: archives, .deb, OCI image, wheel, npm packages
          [--target TRIPLE]... [--program FILE] [--providers DIR] [--output DIR] [--namespace NAME] [--repository URL]
          --publish REGISTRY/NAMESPACE [--sign-key FILE]: push the providers to a registry instead, with `belljar publish`
  sdk     pack the SDKs for authors of providers into target/sdk, for cargo, npm, pip, Go, C, C++, Zig: [--output DIR] [--repository URL]
  lint    rustfmt, clippy, rustdoc, cargo deny
  fuzz    run the fuzz targets under libFuzzer: [--target NAME] [--seconds N] [--keep]
  simulate  replicas that share one store, in virtual time: [--full | --measure | --replicas N]
  soak    a million reads, a fifth of them hostile; watch memory and descriptors: [--reads N] [--svg FILE]
";

/// The verbs that test. They compile in a profile of their own.
const TESTS: [&str; 3] = ["test", "lint", "instructions"];

fn main() -> ExitCode {
    let verb = env::args().nth(1).unwrap_or_default();
    let shell = match Shell::new(TESTS.contains(&verb.as_str())) {
        Ok(shell) => shell,
        Err(error) => return fail(&error),
    };
    let done = match verb.as_str() {
        "demo" => demo::run(&shell),
        "test" => match env::args().nth(2).as_deref() {
            None => test::run(&shell),
            Some("--quick") => test::quick(&shell),
            Some("--all") => test::all(&shell),
            Some("--prove-guards") => hostile::prove_guards(&shell),
            Some("--isolated") => hostile::isolated(&shell),
            Some(other) => {
                eprint!("\"cargo xtask test\" has no option \"{other}\"\n\n{HELP}");
                return ExitCode::from(2);
            }
        },
        "hostile" => setup::wasm_target(&shell).and_then(|()| hostile::run(&shell)),
        "build" => setup::wasm_target(&shell).and_then(|()| build::run(&shell)),
        "languages" => languages(&shell),
        "bench" => bench::run(&shell, env::args().skip(2)),
        "instructions" => instructions(&shell),
        "fuzz" => fuzz::run(&shell, env::args().skip(2)),
        "dist" => dist::run(&shell, env::args().skip(2)),
        "sdk" => sdk::run(&shell, env::args().skip(2)),
        "simulate" => simulate::run(&shell, env::args().skip(2)),
        "soak" => soak::run(&shell, env::args().skip(2)),
        "lint" => setup::wasm_target(&shell).and_then(|()| setup::lints(&shell)).and_then(|()| lint::run(&shell)),
        "" | "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => {
            eprint!("no verb \"{other}\"\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn languages(shell: &Shell) -> anyhow::Result<()> {
    setup::wasm_target(shell)?;
    tools::run(shell)?;
    build::run(shell)?;
    languages::run(shell).map(|took| println!("\n{took}"))
}

fn instructions(shell: &Shell) -> anyhow::Result<()> {
    let arguments = || env::args().skip(2);
    if arguments().all(|argument| matches!(argument.as_str(), "--accept" | "--prove")) {
        if let Some(missing) = setup::valgrind(shell)? {
            anyhow::bail!("{missing}");
        }
        // The paths read from `guest_sized`. This guest rarely changes, and `cargo xtask build` rebuilds it.
        if !shell.target.join("guests/guest_sized.wasm").is_file() {
            setup::wasm_target(shell)?;
            build::run(shell)?;
        }
    }
    instructions::run(shell, arguments())
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("\nxtask: {error:#}");
    ExitCode::FAILURE
}
