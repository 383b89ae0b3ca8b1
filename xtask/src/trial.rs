//! Reads through a program of a package before it is packed: from a mount without grants, and from one with a directory.
//! The C library of the packages makes other system calls than that of the tests, and the walls allow only what they list.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::output;
use crate::shell::{self, Shell};

/// The providers that are read.
const PROVIDERS: [&str; 2] = ["clock.wasm", "files.wasm"];

const CONFIGURATION: &str = "[mounts.clock]\ncomponent = \"clock.wasm\"\n\
    [mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/data\" = \"notes\" }\n";

/// The resources, each with a part of its text.
const READS: [(&str, &str); 2] = [("belljar://clock/UTC", "zone: UTC"), ("belljar://notes/a.txt", "a note")];

/// Reads with a program for `target`. A program for another processor only starts, under an emulator if there is one.
///
/// # Errors
/// The output of the program, if it does not start, or a read fails or returns another text.
pub(crate) fn read(shell: &Shell, target: &str, program: &Path, providers: &Path) -> Result<()> {
    if !target.starts_with(std::env::consts::ARCH) {
        return start(target, program);
    }
    let place = shell.target.join("dist-trial");
    let _ = fs::remove_dir_all(&place);
    for folder in ["plugins", "notes"] {
        fs::create_dir_all(place.join(folder))?;
    }
    for provider in PROVIDERS {
        let from = providers.join(provider);
        fs::copy(&from, place.join("plugins").join(provider))
            .with_context(|| format!("cannot copy \"{}\"", from.display()))?;
    }
    fs::write(place.join("notes/a.txt"), "a note")?;
    fs::write(place.join("belljar.toml"), CONFIGURATION)?;
    for (uri, expected) in READS {
        let mut command = Command::new(program);
        let text = shell::capture(command.args(["read", uri]).current_dir(&place).env_clear().env("HOME", &place))?;
        if !text.contains(expected) {
            bail!("the program for {target} reads {text:?} from {uri} instead of {expected:?}");
        }
    }
    output::line(&format!("the program for {target} reads in worker processes"));
    Ok(())
}

/// Starts a program for another processor. An emulator does not start the processes of belljar itself, so nothing is read.
fn start(target: &str, program: &Path) -> Result<()> {
    let processor = target.split('-').next().unwrap_or_default();
    let emulators = [format!("qemu-{processor}-static"), format!("qemu-{processor}")];
    let Some(emulator) = emulators.iter().find(|emulator| shell::exists(emulator)) else {
        output::line(&format!("NOT TRIED: the program for {target}; to start it here, install qemu-user"));
        return Ok(());
    };
    let version = shell::capture(Command::new(emulator).arg(program).arg("--version"))?;
    output::line(&format!("the program for {target} starts under {emulator}, and says {:?}", version.trim_end()));
    Ok(())
}
