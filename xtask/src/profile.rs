//! Makes a profile of reads for the compiler (profile-guided optimisation). A read runs through thousands of functions of a
//! program of many megabytes. With a profile, rustc lays the code that reads run through together, and the rest apart.
//!
//! Builds belljar with counters in it, reads through it, and merges what was counted.

mod reads;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::output;
use crate::setup;
use crate::shell::{self, Shell};

/// Settings of cargo for the build with counters. It runs for a minute, so optimising across crates takes longer than it saves.
/// The counts belong to functions as they are before that.
pub(crate) const COUNTING: [&str; 4] =
    ["--config", "profile.dist.lto=\"off\"", "--config", "profile.dist.codegen-units=16"];

/// Makes the profile. `compile` compiles belljar of profile `dist` with these flags of rustc, and returns the path of the
/// program; this machine must be able to run it. Returns the flag of rustc that compiles with the profile. Its counts fit only
/// programs of the same target.
///
/// # Errors
/// The program is not compiled, or reads nothing.
pub(crate) fn make(
    shell: &Shell,
    providers: &Path,
    compile: impl FnOnce(&[String]) -> Result<PathBuf>,
) -> Result<String> {
    let place = shell.target.join("profile");
    let counts = place.join("counts");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&counts).with_context(|| format!("cannot create \"{}\"", counts.display()))?;
    let merge = setup::profdata(shell)?;
    let flags = [format!("-Cprofile-generate={}", counts.display()), "--cfg=profiled".to_owned()];
    let program = compile(&flags)?;
    output::line("reading with the program that counts");
    reads::run(&program, providers, &place.join("site"))?;
    let found: Vec<_> = fs::read_dir(&counts)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    if found.is_empty() {
        bail!("the program counted nothing: \"{}\" is empty", counts.display());
    }
    let profile = place.join("belljar.profdata");
    // A worker that was killed while it wrote leaves a file that is not whole.
    let merged = ["merge", "-sparse", "-failure-mode=all", "-o"];
    shell::run(Command::new(merge).args(merged).arg(&profile).args(found))?;
    Ok(format!("-Cprofile-use={}", profile.display()))
}
