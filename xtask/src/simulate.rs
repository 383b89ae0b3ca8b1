//! The simulation: builds and runs the program of `tests/simulation`. Its exit code is the result.

use anyhow::{Result, bail};

use crate::shell::{self, Shell};

const USAGE: &str = "cargo xtask simulate [--full | --measure | --replicas N]

Runs replicas that share one store, in virtual time: belljar's own code with a simulated Redis. Fails if more is granted than a
rule allows, if two replicas look for one round or make one call, or if news are lost, while the store answers.

  --full        up to 1,000 replicas and 1,000,000 principals; takes minutes
  --replicas N  the usual load and each incident with this number of replicas
  --measure     measure the constants at a real redis-server, and compare the simulated store with it";

/// Builds and runs.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let arguments = parse(arguments)?;
    shell::run(&mut shell.cargo(["build", "--release", "--package", "belljar-simulation"]))?;
    shell::run(shell.program(&shell.target.join("release/simulation")).args(arguments))
}

/// Checks the arguments. Runs first: building takes minutes.
fn parse(arguments: impl Iterator<Item = String>) -> Result<Vec<String>> {
    let arguments: Vec<String> = arguments.collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let are_known = match words.as_slice() {
        [] | ["--full" | "--measure"] => true,
        ["--replicas", number] => number.parse::<usize>().is_ok_and(|number| number > 0),
        _ => false,
    };
    if !are_known {
        bail!("{USAGE}");
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn arguments_are_parsed() {
        let parse = |line: &str| parse(line.split_whitespace().map(str::to_owned));
        assert_eq!(parse("--replicas 50").unwrap(), ["--replicas", "50"]);
        assert_eq!(parse("").unwrap(), [""; 0]);
        for bad in ["--replicas", "--replicas 0", "--full --measure", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
