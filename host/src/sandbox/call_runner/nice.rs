//! The priority of threads for long calls.

/// The niceness of the threads for long calls: the maximum. A thread that serves short calls must get a processor as
/// soon as it wakes. With 5 or 10 here, in one of a hundred cases it waited for the next tick of the kernel. The slowest
/// short reads then took three to four times as long (the bench `fair` of `cargo xtask bench`).
pub(super) const NICE: i32 = 19;

/// Gives the current thread the niceness [`NICE`].
pub(super) fn lower_priority() {
    // `None` means this thread; the seccomp filter forbids naming a thread.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!("cannot lower the priority of threads for long calls: {error}");
    }
}
