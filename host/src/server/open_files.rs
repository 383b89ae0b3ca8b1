//! The limit of open files (`RLIMIT_NOFILE`). belljar raises its own soft limit to the hard limit. Other programs that
//! it starts get the original limit back: some close every descriptor up to the limit, or use select(2), which fails
//! above 1,023.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The limit with which belljar was started.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard limit. Called once, before any other thread starts.
pub(crate) fn raise() {
    let original = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: original.maximum, maximum: original.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = ORIGINAL.set(original);
    }
}

/// The number of files that this process may have open.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Gives a process that was just started the original limit.
pub(crate) fn restore_for(process: Option<u32>) {
    let pid = process.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let (Some(pid), Some(original)) = (pid, ORIGINAL.get()) {
        // On failure the process has already ended, or keeps the higher limit.
        let _ = prlimit(Some(pid), Resource::Nofile, *original);
    }
}
