//! Huge pages for the memories of guests. A guest that makes a large answer writes to new memory. The kernel adds it by
//! pages of 4 KiB, each with a page fault: a body of 8 MiB takes two thousand of them. Huge pages have 2 MiB.
//!
//! A guest that writes a byte here and there would get 2 MiB for each of these bytes. So a process asks for huge pages when
//! a guest gives it the first large answer, and the worker processes of other mounts never do.

use std::ffi::c_void;
use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, Once, PoisonError};

use rustix::mm::{Advice, madvise};

use crate::interfaces::Reply;

/// The smallest answer for which huge pages pay, in bytes. The pool keeps the memory for smaller ones.
const LARGE: usize = 2 << 20;

/// The kernel's list of the memory of this process, until it is read.
static MEMORY_MAP: Mutex<Option<Box<dyn Read + Send>>> = Mutex::new(None);

/// Lets the next sandbox ask for huge pages. `memory_map`: `/proc/self/maps`, in which it finds the memories of its guests.
pub fn allow_huge_pages(memory_map: impl Read + Send + 'static) {
    *MEMORY_MAP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(memory_map));
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
        let lines = map.and_then(|mut map| {
            let mut lines = Vec::new();
            map.read_to_end(&mut lines).ok().map(|_| lines)
        });
        let lines = lines.unwrap_or_default();
        let mut reserved = lines.split(|byte| *byte == b'\n').filter_map(reserved);
        Self { addresses: reserved.find(|addresses| addresses.len() >= size), has_asked: Once::new() }
    }

    /// Asks for huge pages if a guest gave a large answer.
    pub(super) fn note_answer(&self, reply: &mut Reply) {
        if let Some(addresses) = self.addresses.as_ref().filter(|_| !self.has_asked.is_completed())
            && reply.bodies_mut().iter().any(|body| body.len() >= LARGE)
        {
            self.has_asked.call_once(|| {
                #[expect(unsafe_code, reason = "the advice is for memory that the engine owns")]
                // SAFETY: the engine of the same sandbox keeps this memory, and the advice changes no byte of it.
                let asked = unsafe { madvise(addresses.start as *mut c_void, addresses.len(), Advice::LinuxHugepage) };
                tracing::debug!("asked for huge pages: {asked:?}");
            });
        }
    }
}

/// The addresses of a line of `/proc/self/maps`, if no access to them is allowed yet: proc_pid_maps(5).
fn reserved(line: &[u8]) -> Option<Range<usize>> {
    let (addresses, rest) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    rest.starts_with("---p").then_some(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_that_nobody_may_access_is_found() {
        let line = b"7d1e3e000000-7f2240000000 ---p 00000000 00:00 0 ";
        assert_eq!(reserved(line), Some(0x7d1e_3e00_0000..0x7f22_4000_0000));
        for other in ["7d1e3e000000-7f2240000000 rw-p 00000000 00:00 0", "", "stack", "x-y ---p 0 0 0"] {
            assert_eq!(reserved(other.as_bytes()), None, "{other}");
        }
    }
}
