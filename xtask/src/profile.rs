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

/// Makes the profile below `place`, unless there is one that is newer than the program. `compile` compiles belljar of profile
/// `dist` with these flags of rustc, and returns the path of the program; this machine must be able to run it. Returns the flag
/// of rustc that compiles with the profile. Its counts fit only programs of the same target.
///
/// # Errors
/// The program is not compiled, or reads nothing.
pub(crate) fn make(
    shell: &Shell,
    place: &Path,
    providers: &Path,
    compile: impl FnOnce(&[String]) -> Result<PathBuf>,
) -> Result<String> {
    let (counts, profile) = (place.join("counts"), place.join("belljar.profdata"));
    let merge = setup::profdata(shell)?;
    let flags = [format!("-Cprofile-generate={}", counts.display()), "--cfg=profiled".to_owned()];
    let program = compile(&flags)?;
    let flag = format!("-Cprofile-use={}", profile.display());
    if is_newer(&profile, &program) {
        return Ok(flag);
    }
    // The programs that ran while cargo compiled have counted too.
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(&counts).with_context(|| format!("cannot create \"{}\"", counts.display()))?;
    output::line("reading with the program that counts");
    reads::run(&program, providers, &place.join("site"))?;
    let found: Vec<_> = fs::read_dir(&counts)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    if found.is_empty() {
        bail!("the program counted nothing: \"{}\" is empty", counts.display());
    }
    // A worker that was killed while it wrote leaves a file that is not whole.
    let merged = ["merge", "-sparse", "-failure-mode=all", "-o"];
    shell::run(Command::new(merge).args(merged).arg(&profile).args(found))?;
    Ok(flag)
}

/// True if a file exists and was written after `other`.
fn is_newer(file: &Path, other: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    written(file).zip(written(other)).is_some_and(|(file, other)| file > other)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn only_a_profile_of_this_program_is_used_again() {
        let directory = std::env::temp_dir().join(format!("belljar-profile-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (profile, program) = (directory.join("profile"), directory.join("program"));
        let write = |file: &Path, seconds| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::create(file).unwrap().set_modified(at).unwrap();
        };
        write(&program, 20);
        assert!(!is_newer(&profile, &program), "there is no profile");
        write(&profile, 10);
        assert!(!is_newer(&profile, &program), "the program was compiled again");
        write(&profile, 30);
        assert!(is_newer(&profile, &program));
        fs::remove_dir_all(&directory).unwrap();
    }
}
