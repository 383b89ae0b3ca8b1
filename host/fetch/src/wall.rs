//! The wall of this process. The bytes that it parses come from strangers, and a mistake in a parser must not reach the
//! operator's files.
//!
//! - By Landlock: no file but those in the directory that gets the component; TCP connections only to the ports of HTTPS, of
//!   the named server and of DNS; no listening; no signals to other processes.
//! - By a filter of system calls ([`calls`]): no program, no process, no thread, no sockets but TCP and UDP.
//! - Bounds on memory, on the size of files and on descriptors; no new privileges, no core dump.
//!
//! Raised after logins and certificates were read, and before the first byte from the network.

mod calls;

use std::os::fd::BorrowedFd;

use belljar_fetch_protocol::{FailureKind, Wall};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, NetPort, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::failure::{Outcome, failure};

/// The most bytes of memory, virtual memory of libraries included. A request needs about 40 MiB.
const MEMORY: u64 = 1024 * 1024 * 1024;

/// The most open files.
const DESCRIPTORS: u64 = 128;

/// The first Landlock ABI with rules for TCP. The files and connections of this process need no newer one.
const NEEDED_ABI: i32 = 4;

/// Raises the wall. This must be the only thread. Returns what the kernel cannot restrict.
///
/// # Errors
/// If something is missing and `wall` does not allow that.
pub(crate) fn raise(
    directory: Option<BorrowedFd<'_>>,
    ports: &[u16],
    largest: u64,
    wall: Wall,
) -> Outcome<Vec<String>> {
    let mut missing = Vec::new();
    for (resource, most, what) in [
        (Resource::Core, 0, "core dumps"),
        (Resource::As, MEMORY, "memory"),
        (Resource::Fsize, largest, "the size of files"),
        (Resource::Nofile, DESCRIPTORS, "open files"),
    ] {
        if setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_err() {
            missing.push(what.to_owned());
        }
    }
    if rustix::thread::set_no_new_privs(true).is_err() {
        missing.push("new privileges".to_owned());
    }
    // Not required: it keeps other processes of the same user from reading the login in this memory.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    match restrict(directory, ports) {
        Ok(status) => missing.extend(gaps(&status)),
        Err(error) => missing.push(format!("files and connections ({error})")),
    }
    if let Err(error) = calls::allow_only_own() {
        missing.push(format!("system calls ({error})"));
    }
    if missing.is_empty() || wall == Wall::Optional {
        return Ok(missing);
    }
    let problem = format!("this kernel cannot restrict: {}", missing.join(", "));
    Err(failure(FailureKind::Wall, problem, "run Linux 6.7 or newer with Landlock, or set wall = \"best-effort\""))
}

fn restrict(directory: Option<BorrowedFd<'_>>, ports: &[u16]) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V9))?
        .scope(Scope::from_all(ABI::V9))?
        .create()?;
    if let Some(directory) = directory {
        let access =
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
        rules = rules.add_rule(PathBeneath::new(directory, access))?;
    }
    for port in ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    rules.restrict_self()
}

fn gaps(status: &RestrictionStatus) -> Option<String> {
    let LandlockStatus::Available { effective_abi, kernel_abi } = status.landlock else {
        return Some("files and connections (no Landlock)".to_owned());
    };
    if status.ruleset == RulesetStatus::NotEnforced {
        return Some("files and connections (Landlock is not enforced)".to_owned());
    }
    let abi = kernel_abi.unwrap_or(effective_abi as i32);
    (abi < NEEDED_ABI).then(|| format!("connections (Landlock has ABI {abi})"))
}

#[cfg(test)]
mod tests;
