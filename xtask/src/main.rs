//! The repository's own commands, so that a clone needs cargo and nothing else to be remembered.
//!
//! Each verb is one module. This file knows the verbs and what they are for; it must not know how they work.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to the terminal it was started from")]
#![expect(clippy::indexing_slicing, reason = "JSON only: what is not there is null")]

mod bench;
mod build;
mod demo;
mod engine;
mod fuzz;
mod hostile;
mod instructions;
mod languages;
mod lint;
mod report;
mod setup;
mod shell;
mod soak;
mod test;
mod tools;

use std::env;
use std::process::ExitCode;

use crate::shell::Shell;

const HELP: &str = "\
cargo xtask <verb>

  demo    set up, build, serve your first notes, read them as an MCP client, say how to connect one
  test    set up, build, lint, and run every test: what CI runs
          --prove-guards: instead, run each hostile row without its guards; it must go red
  hostile run the hostile table, and write what it found into docs/containment.md
  build   target/release/belljar, target/plugins/*.wasm, target/guests/*.wasm
  languages  a provider in each language, as `belljar new` makes it: built and tested; installs what that takes
  bench   what a read costs, in ratios: against the bare engine, and against what a user would pick instead
          [--rounds N] [--only PROGRAM,...]  target/bench.json has the figures
          --publish: a whole run, whose figures are written into docs/ and the README as well
          --redraw: measure nothing, write docs/ and the README anew from docs/bench.json
  instructions  what the hot paths cost, counted under valgrind, against the committed figures: [--accept | --prove]
  lint    formatting, clippy, documentation
  fuzz    what takes hostile bytes, under libFuzzer: [--target NAME] [--seconds N] [--keep]
  soak    many reads, a fifth of them hostile, watched from outside: [--reads N] [--svg FILE]
";

fn main() -> ExitCode {
    let verb = env::args().nth(1).unwrap_or_default();
    let shell = match Shell::new() {
        Ok(shell) => shell,
        Err(error) => return fail(&error),
    };
    let done = match verb.as_str() {
        "demo" => demo::run(&shell),
        "test" if env::args().nth(2).as_deref() == Some("--prove-guards") => hostile::prove_guards(&shell),
        "test" => test::run(&shell),
        "hostile" => setup::wasm_target(&shell).and_then(|()| hostile::run(&shell)),
        "build" => setup::wasm_target(&shell).and_then(|()| build::run(&shell)),
        "languages" => languages(&shell),
        "bench" => bench::run(&shell, env::args().skip(2)),
        "instructions" => instructions(&shell),
        "fuzz" => fuzz::run(&shell, env::args().skip(2)),
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
        // The guest that is read from changes seldom; `cargo xtask build` makes it anew.
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
