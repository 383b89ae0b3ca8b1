//! Gives up the powers by which root sees more of other processes than their names: their memory, their environment and the
//! kernel's log. belljar reads `/proc` and `/sys` for providers, and needs none of these powers.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// The powers that are given up.
const DROPPED: CapabilitySet = CapabilitySet::SYS_PTRACE
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG);

/// Gives up these powers for this thread and all threads that it starts. Does nothing for a user without them.
///
/// # Errors
/// The kernel's error.
pub fn drop_capabilities() -> Result<(), Errno> {
    let mut held = capabilities(None)?;
    if !(held.effective | held.permitted | held.inheritable).intersects(DROPPED) {
        return Ok(());
    }
    held.effective.remove(DROPPED);
    held.permitted.remove(DROPPED);
    held.inheritable.remove(DROPPED);
    set_capabilities(None, held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_powers_are_gone_afterwards() {
        // Powers belong to a thread, so the other tests keep theirs.
        std::thread::spawn(|| {
            drop_capabilities().unwrap();
            let held = capabilities(None).unwrap();
            assert!(!(held.effective | held.permitted | held.inheritable).intersects(DROPPED));
            drop_capabilities().unwrap();
        })
        .join()
        .unwrap();
    }
}
