//! The wall of a worker process: the files that its mount was granted, and nothing else.
//!
//! - By Landlock: the granted directories and the compiled code can be read, and two files of the kernel about this
//!   process. Nothing can be written. No TCP, no abstract Unix sockets, no signals to other processes.
//! - By a filter of system calls: only calls that a worker makes ([`calls`]).
//! - No capabilities, no new privileges, no core dumps, no file can grow.

mod calls;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::directories;
use super::landlock::{self as wall, WallStatus};
use crate::config::Wall;
use crate::model::Guard;
use crate::sandbox::WorkerFiles;

/// The files of the kernel about this process that a worker reads: which of its pages were written, and the mounted file
/// systems.
const KERNEL_FILES: [&str; 2] = ["/proc/self/pagemap", "/proc/self/mountinfo"];

/// How a worker without a wall names the state of its wall.
const NO_WALL: &str = "off";

/// The wall of a worker process. The process that starts the worker decides, by an argument: the front, which sends the
/// files, may have been taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WorkerWall {
    /// The configuration has `wall = "off"`.
    Off,
    /// What the kernel offers.
    BestEffort,
    /// What the kernel offers. Without Landlock, the worker ends: the launcher has found that the kernel has it.
    Required,
}

impl WorkerWall {
    /// The wall of workers that the front itself starts, with this value of `wall` in the configuration. They also have the
    /// wall of the front.
    pub(super) fn of(wall: Wall) -> Self {
        if wall == Wall::Off { Self::Off } else { Self::BestEffort }
    }

    /// The word for the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::BestEffort => "best-effort",
            Self::Required => "required",
        }
    }
}

/// Raises the wall. This must be the only thread. Returns the state of the wall as words; "full" if all of it stands.
///
/// # Errors
/// If the files are none that the front can read, or a required part of the wall cannot be raised.
pub(crate) fn raise(files: &WorkerFiles<'_>, required: WorkerWall) -> io::Result<String> {
    if required == WorkerWall::Off {
        return Ok(NO_WALL.to_owned());
    }
    check(files)?;
    wall::drop_privileges();
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    let mut missing = Vec::new();
    if setrlimit(Resource::Fsize, nothing).is_err() {
        missing.push("no limit on the size of files".to_owned());
    }
    if let Err(error) = wall::keep_read_capability() {
        missing.push(format!("capabilities ({error})"));
    }
    match Guard::WorkerFiles.is_on().then(|| restrict_files(files)) {
        None => missing.push("no Landlock".to_owned()),
        Some(Ok(status)) => match wall::status_of(&status, true) {
            WallStatus::Full { .. } => {}
            WallStatus::None(why) if required == WorkerWall::Required => return Err(io::Error::other(why)),
            other => missing.push(other.to_string()),
        },
        Some(Err(error)) if required == WorkerWall::Required => return Err(io::Error::other(error)),
        Some(Err(error)) => missing.push(format!("no Landlock ({error})")),
    }
    match Guard::WorkerCalls.is_on().then(calls::allow_only_own) {
        None => missing.push("system calls are not filtered".to_owned()),
        Some(Ok(())) => {}
        Some(Err(error)) => missing.push(format!("system calls are not filtered ({error})")),
    }
    Ok(if missing.is_empty() { "full".to_owned() } else { missing.join(", ") })
}

/// Checks that the front itself can read the files. Landlock lets it open every path as a handle (`O_PATH`), and a rule
/// made from a handle would let this process read what the wall of the front hides.
fn check(files: &WorkerFiles<'_>) -> io::Result<()> {
    for file in files.code.iter().chain(files.directories) {
        let flags = fcntl_getfl(file)?;
        if flags.contains(OFlags::PATH) || flags & OFlags::ACCMODE == OFlags::WRONLY {
            return Err(io::Error::other("a file is not open for reading"));
        }
    }
    Ok(())
}

fn restrict_files(files: &WorkerFiles<'_>) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V9))?
        .scope(Scope::from_all(ABI::V9))?
        .create()?;
    let read: BitFlags<AccessFs> = AccessFs::ReadFile.into();
    for directory in files.directories {
        // What Landlock has no rule for cannot be read. The rest of the wall is raised.
        let _ = (&mut rules).add_rule(PathBeneath::new(directory.as_fd(), read | AccessFs::ReadDir));
    }
    for code in files.code {
        // Code without a cache lies in memory, which has no path and needs no rule.
        let _ = (&mut rules).add_rule(PathBeneath::new(code.as_fd(), read));
    }
    // A rule names an inode, and procfs keeps the inode only while a handle is open.
    let mut pinned: Vec<File> = Vec::new();
    for path in KERNEL_FILES {
        let Ok(file) = directories::handle(path.as_ref()) else { continue };
        let _ = (&mut rules).add_rule(PathBeneath::new(&file, read));
        pinned.push(file);
    }
    let status = rules.restrict_self()?;
    std::mem::forget(pinned);
    Ok(status)
}

#[cfg(test)]
mod tests;
