//! Huge pages for the memories of guests. A guest that makes a large answer writes to new memory. The kernel adds it by
//! pages of 4 KiB, each with a page fault: a body of 8 MiB takes two thousand of them. Huge pages have 2 MiB.
//!
//! A guest that writes a byte here and there would get 2 MiB for each of these bytes. So a process asks for huge pages when
//! a guest gives it the first large answer, and the worker processes of other mounts never do.

use std::ffi::c_void;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::sync::{Mutex, Once, PoisonError};

use rustix::mm::{Advice, madvise};

use crate::interfaces::Reply;

/// The smallest answer for which huge pages pay, in bytes. The pool keeps the memory for smaller ones.
const LARGE: usize = 2 << 20;

/// The kernel's list of the memory of this process, until it is read.
static MEMORY_MAP: Mutex<Option<File>> = Mutex::new(None);

/// Allows huge pages for memory that asks for them, if the kernel has any. Must come before the wall of this process, and
/// before its sandbox. The allocator of this program forbids them for all of the process: nothing else of it needs them.
pub fn allow_huge_pages() {
    if is_allowed_by_kernel() {
        *MEMORY_MAP.lock().unwrap_or_else(PoisonError::into_inner) = open("/proc/self/maps");
    }
}

fn is_allowed_by_kernel() -> bool {
    /// Linux 6.18: forbid them for memory that does not ask for them.
    const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;
    if forbid(1, EXCEPT_ADVISED) {
        return true;
    }
    let mut modes = String::new();
    let read = open("/sys/kernel/mm/transparent_hugepage/enabled").map(|mut file| file.read_to_string(&mut modes));
    // An older kernel that gives them to all memory would give them to the allocator, too.
    read.is_some() && modes.contains("[madvise]") && forbid(0, 0)
}

/// Sets whether huge pages are forbidden for this process. True if the kernel does so.
fn forbid(is_forbidden: libc::c_ulong, flags: libc::c_ulong) -> bool {
    #[expect(unsafe_code, reason = "the crate rustix does not know the flag")]
    // SAFETY: the call reads and writes no memory of this process.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, is_forbidden, flags, 0, 0) };
    result == 0
}

fn open(path: &str) -> Option<File> {
    #[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
    File::open(path).ok()
}

/// The memory of the engine's pool.
pub(super) struct PoolMemory {
    /// Its addresses. `None` if there are no huge pages.
    addresses: Option<Range<usize>>,
    has_asked: Once,
}

impl PoolMemory {
    /// Finds the memory of a new pool, which has `size` bytes or more. No other memory of this process is as large.
    pub(super) fn find(size: usize) -> Self {
        let map = MEMORY_MAP.lock().unwrap_or_else(PoisonError::into_inner).take();
        let addresses = map.and_then(|mut map| {
            let mut lines = String::new();
            map.read_to_string(&mut lines).ok()?;
            lines.lines().filter_map(reserved).find(|addresses| addresses.len() >= size)
        });
        Self { addresses, has_asked: Once::new() }
    }

    /// Asks for huge pages if a guest gave a large answer.
    pub(super) fn note_answer(&self, reply: &mut Reply) {
        if let Some(addresses) = self.addresses.as_ref().filter(|_| !self.has_asked.is_completed())
            && reply.bodies_mut().iter().any(|body| body.len() >= LARGE)
        {
            self.has_asked.call_once(|| {
                #[expect(unsafe_code, reason = "the advice is for memory that the engine owns")]
                // SAFETY: the engine keeps this memory as long as the process, and the advice changes no byte of it.
                let asked = unsafe { madvise(addresses.start as *mut c_void, addresses.len(), Advice::LinuxHugepage) };
                tracing::debug!("asked for huge pages: {asked:?}");
            });
        }
    }
}

/// The addresses of a line of `/proc/self/maps`, if no access to them is allowed yet: proc_pid_maps(5).
fn reserved(line: &str) -> Option<Range<usize>> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    rest.starts_with("---p").then_some(number(start)?..number(end)?)
}
