//! The wall of a worker process: the files that its mount was granted, and nothing else.
//!
//! - By Landlock: the granted directories and the compiled code can be read, and two files of the kernel about this
//!   process. Nothing can be written. No TCP, no abstract Unix sockets, no signals to other processes.
//! - By a filter of system calls: only calls that a worker makes ([`calls`]).
//! - No capabilities, no new privileges, no core dumps, no file can grow.

mod calls;

use std::fs::File;
use std::os::fd::AsFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::directories;
use super::landlock::{self as wall, WallStatus};
use crate::model::Guard;
use crate::sandbox::WorkerFiles;

/// The files of the kernel about this process that a worker reads: which of its pages were written, and the mounted file
/// systems.
const KERNEL_FILES: [&str; 2] = ["/proc/self/pagemap", "/proc/self/mountinfo"];

/// Raises the wall. This must be the only thread. Returns the state of the wall as words; "full" if all of it stands.
pub(crate) fn raise(files: &WorkerFiles<'_>) -> String {
    wall::drop_privileges();
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    let mut missing = Vec::new();
    if setrlimit(Resource::Fsize, nothing).is_err() {
        missing.push("no limit on the size of files".to_owned());
    }
    if let Err(error) = drop_capabilities() {
        missing.push(format!("capabilities ({error})"));
    }
    match Guard::WorkerFiles.is_on().then(|| restrict_files(files)) {
        None => missing.push("no Landlock".to_owned()),
        Some(Ok(status)) => match wall::status_of(&status, true) {
            WallStatus::Full { .. } => {}
            other => missing.push(other.to_string()),
        },
        Some(Err(error)) => missing.push(format!("no Landlock ({error})")),
    }
    match Guard::WorkerCalls.is_on().then(calls::allow_only_own) {
        None => missing.push("system calls are not filtered".to_owned()),
        Some(Ok(())) => {}
        Some(Err(error)) => missing.push(format!("system calls are not filtered ({error})")),
    }
    if missing.is_empty() { "full".to_owned() } else { missing.join(", ") }
}

/// Gives up all capabilities but one, if this process has any: a mount may be granted files of other users for reading.
fn drop_capabilities() -> Result<(), Errno> {
    let mut held = capabilities(None)?;
    held.effective &= CapabilitySet::DAC_READ_SEARCH;
    held.permitted &= CapabilitySet::DAC_READ_SEARCH;
    held.inheritable = CapabilitySet::empty();
    set_capabilities(None, held)
}

fn restrict_files(files: &WorkerFiles<'_>) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V9))?
        .scope(Scope::from_all(ABI::V9))?
        .create()?;
    let read: BitFlags<AccessFs> = AccessFs::ReadFile.into();
    for directory in files.directories {
        (&mut rules).add_rule(PathBeneath::new(directory.as_fd(), read | AccessFs::ReadDir))?;
    }
    // Code without a cache lies in memory, which has no path and needs no rule.
    let _ = (&mut rules).add_rule(PathBeneath::new(files.code, read));
    // A rule names an inode, and procfs keeps the inode only while a handle is open.
    let mut pinned: Vec<File> = Vec::new();
    for path in KERNEL_FILES {
        let Ok(file) = directories::handle(path.as_ref()) else { continue };
        (&mut rules).add_rule(PathBeneath::new(&file, read))?;
        pinned.push(file);
    }
    let status = rules.restrict_self()?;
    std::mem::forget(pinned);
    Ok(status)
}
