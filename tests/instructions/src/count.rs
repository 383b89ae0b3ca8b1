//! The two counters: valgrind's, of instructions, and an allocator's, of what a thread allocates.
//!
//! Both are exact, and neither knows what time it is: the same program gives the same figures on a busy machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;

/// What this thread has allocated so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// How often memory was asked for, or asked to grow.
    pub(crate) times: u64,
    /// How many bytes were asked for in all.
    pub(crate) bytes: u64,
}

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { times: 0, bytes: 0 }) };
}

/// What this thread has allocated so far.
pub(crate) fn allocated() -> Allocated {
    ALLOCATED.get()
}

/// The system's allocator, counted.
pub(crate) struct Counted;

fn count(bytes: usize) {
    let Allocated { times, bytes: before } = ALLOCATED.get();
    ALLOCATED.set(Allocated { times: times + 1, bytes: before + bytes as u64 });
}

#[expect(unsafe_code, reason = "an allocator is asked by unsafe functions; each passes on what it was given")]
// SAFETY: the system's allocator keeps the promises; counting touches a cell that needs no memory and no destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(old, layout) }
    }
}

/// A request of valgrind's or callgrind's, by the number in its header.
#[derive(Clone, Copy)]
enum Request {
    RunningOnValgrind = 0x1001,
    Zero = 0x4354_0001,
    DumpAt = 0x4354_0003,
    Start = 0x4354_0004,
}

/// Says something to valgrind; zero where there is none. (`valgrind.h`, the same since 2008.)
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "valgrind listens to instructions that do nothing, and nothing but assembly makes them")]
fn say(request: Request, argument: *const u8) -> usize {
    let words: [usize; 6] = [request as usize, argument.expose_provenance(), 0, 0, 0, 0];
    let mut answer = 0usize;
    // SAFETY: the rotations add up to two whole turns, and the exchange is of a register with itself; valgrind reads the
    // words, and the text that one of them leads to, while both live.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            inout("rdx") answer, in("rax") ptr::from_ref(&words), options(nostack),
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
fn say(_: Request, _: *const u8) -> usize {
    0
}

/// Whether valgrind runs this program.
pub(crate) fn is_counted() -> bool {
    say(Request::RunningOnValgrind, ptr::null()) != 0
}

/// Begins to count: before, valgrind runs the program many times faster.
pub(crate) fn start() {
    say(Request::Start, ptr::null());
}

/// Counts from zero again.
pub(crate) fn zero() {
    say(Request::Zero, ptr::null());
}

/// Has everything written down that was counted since, under a title.
pub(crate) fn dump(title: &CStr) {
    say(Request::DumpAt, title.as_ptr().cast());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_thread_allocates_is_counted_and_nothing_else() {
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
    fn without_valgrind_nobody_listens() {
        assert!(!is_counted());
        start();
        zero();
        dump(c"nothing");
    }
}
