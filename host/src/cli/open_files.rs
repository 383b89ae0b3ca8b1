//! How many files this process may have open: as many as the system lets it. What it starts that is not belljar's own gets
//! the number back that belljar was started with, because some programs close every number that they may use, or expect
//! none above 1,023.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// What belljar was started with.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Asks for as many as the system gives. Once, before any other thread.
pub(super) fn raise() {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = BEFORE.set(before);
    }
}

/// How many this process may have open.
pub(super) fn most() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Gives a program that was just started the number that belljar was started with.
pub(super) fn give_back(to: Option<u32>) {
    let pid = to.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let (Some(pid), Some(before)) = (pid, BEFORE.get()) {
        // It has ended already, or goes on with more.
        let _ = prlimit(Some(pid), Resource::Nofile, *before);
    }
}
