//! The two counters: valgrind counts instructions, and the allocator of this program counts the allocations of each thread.
//!
//! Both are exact and do not depend on time: the same program gives the same figures on a busy machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;

/// The allocations of this thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// The number of allocations and reallocations.
    pub(crate) times: u64,
    /// The total of the requested bytes.
    pub(crate) bytes: u64,
}

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { times: 0, bytes: 0 }) };
}

/// The allocations of this thread so far.
pub(crate) fn allocated() -> Allocated {
    ALLOCATED.get()
}

/// The allocator of the system, which also counts allocations. The program uses another one, mimalloc: its cost depends on the
/// allocations before, so that the same read has other counts in each run.
pub(crate) struct Counted;

fn count(bytes: usize) {
    let Allocated { times, bytes: before } = ALLOCATED.get();
    ALLOCATED.set(Allocated { times: times + 1, bytes: before + bytes as u64 });
}

#[expect(
    unsafe_code,
    reason = "the functions of an allocator are unsafe; each passes its arguments to the allocator of the system"
)]
// SAFETY: the allocator of the system keeps the contract of `GlobalAlloc`. Counting accesses a cell that needs no memory and
// no destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of this function, and `System` has the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of this function, and `System` has the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller keeps the contract of this function, and `System` has the same contract.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of this function, and `System` has the same contract.
        unsafe { System.dealloc(old, layout) }
    }
}

/// A client request of valgrind or callgrind, with its number in `valgrind.h` or `callgrind.h`.
#[derive(Clone, Copy)]
enum Request {
    RunningOnValgrind = 0x1001,
    Zero = 0x4354_0001,
    DumpAt = 0x4354_0003,
    Start = 0x4354_0004,
}

/// Sends a client request to valgrind, and returns its answer. Returns zero if valgrind does not run this program. The
/// instructions are those of `valgrind.h`, which have not changed since 2008.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "valgrind reacts to certain instructions without effect, and only assembly can write them"
)]
fn send(request: Request, argument: *const u8) -> usize {
    let words: [usize; 6] = [request as usize, argument.expose_provenance(), 0, 0, 0, 0];
    let mut answer = 0usize;
    // SAFETY: the rotations add up to 128 bits, which restores the register, and `xchg` exchanges a register with itself.
    // Valgrind reads the words, and the text that one of them points to. Both are alive during the request.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            inout("rdx") answer, in("rax") ptr::from_ref(&words), options(nostack),
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
fn send(_: Request, _: *const u8) -> usize {
    0
}

/// True if valgrind runs this program.
pub(crate) fn is_counted() -> bool {
    send(Request::RunningOnValgrind, ptr::null()) != 0
}

/// Starts to count instructions. While it does not count, valgrind runs the program many times faster.
pub(crate) fn start() {
    send(Request::Start, ptr::null());
}

/// Sets the counts to zero.
pub(crate) fn zero() {
    send(Request::Zero, ptr::null());
}

/// Writes the counts since [`zero`] to a file, under a title.
pub(crate) fn dump(title: &CStr) {
    send(Request::DumpAt, title.as_ptr().cast());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allocations_of_this_thread_are_counted() {
        let other = std::thread::spawn(|| drop(std::hint::black_box(vec![0u8; 1 << 20])));
        other.join().unwrap();
        let before = allocated();
        drop(std::hint::black_box(Vec::<u8>::with_capacity(1000)));
        let mut grown = std::hint::black_box(Vec::<u8>::with_capacity(10));
        grown.reserve_exact(500);
        let after = allocated();
        assert_eq!((after.times - before.times, after.bytes - before.bytes), (3, 1510));
        drop(grown);
    }

    #[test]
    fn without_valgrind_requests_have_no_effect() {
        assert!(!is_counted());
        start();
        zero();
        dump(c"nothing");
    }
}
