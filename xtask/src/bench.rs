//! The figures: what the sandbox adds to the bare engine, and what belljar costs against a server without a sandbox.

use anyhow::Result;

use crate::shell::{self, Shell};
use crate::{build, languages, setup, tools};

/// The programs, in the order in which they are run; each prints its tables.
const PROGRAMS: [&str; 7] = ["floor", "ends", "fair", "seam", "live", "scale", "languages"];

/// Builds everything and runs the benches, one after the other.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    setup::wasm_target(shell)?;
    tools::run(shell)?;
    build::run(shell)?;
    languages::run(shell)?;
    shell::run(&mut shell.cargo(["build", "--release", "--package", "belljar-benches"]))?;
    for program in PROGRAMS {
        shell::run(&mut shell.program(&shell.target.join("release").join(program)))?;
    }
    Ok(())
}
