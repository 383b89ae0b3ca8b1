//! The soak: builds everything and runs the program of `tests/soak`. Its exit code is the result.

use anyhow::{Context as _, Result, bail};

use crate::shell::{self, Shell};
use crate::{build, setup};

const USAGE: &str = "cargo xtask soak [--reads N] [--svg FILE]";

/// Builds and runs.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let arguments = parse(arguments)?;
    setup::wasm_target(shell)?;
    build::run(shell)?;
    shell::run(&mut shell.cargo(["build", "--release", "--package", "belljar-tests", "--bin", "soak"]))?;
    shell::run(shell.program(&shell.target.join("release/soak")).args(arguments))
}

/// Parses the arguments. Runs first: building takes minutes.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Vec<String>> {
    let mut checked = Vec::new();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} needs a value: {USAGE}"))?;
        match argument.as_str() {
            "--reads" if value.parse::<u64>().is_ok_and(|reads| reads >= 1_000) => {}
            "--reads" => bail!("--reads {value}: expected a number from 1000 on: {USAGE}"),
            "--svg" if value.ends_with(".svg") => {}
            "--svg" => bail!("--svg {value}: expected the name of a .svg file: {USAGE}"),
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
        checked.extend([argument, value]);
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn arguments_are_parsed() {
        let parse = |line: &str| parse(line.split_whitespace().map(str::to_owned));
        assert_eq!(parse("--reads 5000 --svg a.svg").unwrap(), ["--reads", "5000", "--svg", "a.svg"]);
        for bad in ["--reads", "--reads x", "--reads 10", "--svg a.png", "--fast 1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
