//! Allows huge pages for the memories of guests, if the kernel has any. The allocator of this program forbids them for the
//! whole process: nothing else needs them, and they would triple the memory of one that is idle.

use std::fs::{File, read_to_string};

use crate::sandbox;

/// Allows huge pages for memory that asks for them. Must come before the wall of this process, and before its sandbox.
pub(super) fn allow() {
    if is_allowed_by_kernel()
        && let Ok(map) = open_map()
    {
        sandbox::allow_huge_pages(map);
    }
}

fn is_allowed_by_kernel() -> bool {
    /// Linux 6.18: forbid them for memory that does not ask for them.
    const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;
    if forbid(1, EXCEPT_ADVISED) {
        return true;
    }
    #[expect(clippy::disallowed_methods, reason = "a setting of the kernel")]
    let modes = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    // An older kernel that gives them to all memory would give them to the allocator, too.
    modes.is_ok_and(|modes| modes.contains("[madvise]")) && forbid(0, 0)
}

#[expect(clippy::disallowed_methods, reason = "the kernel's list of this program's memory")]
fn open_map() -> std::io::Result<File> {
    File::open("/proc/self/maps")
}

/// Sets whether huge pages are forbidden for this process. True if the kernel does so.
fn forbid(is_forbidden: libc::c_ulong, flags: libc::c_ulong) -> bool {
    const UNUSED: libc::c_ulong = 0;
    #[expect(unsafe_code, reason = "the crate rustix does not know the flag")]
    // SAFETY: the call reads and writes no memory of this process.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, is_forbidden, flags, UNUSED, UNUSED) };
    result == 0
}
