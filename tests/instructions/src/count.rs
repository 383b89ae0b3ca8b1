//! The two counters: valgrind counts instructions of each thread, and the allocator of this program counts the allocations of
//! one thread.
//!
//! Both are exact and do not depend on time: the same program gives the same figures on a busy machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Allocations of the counted thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// The number of allocations and reallocations.
    pub(crate) times: u64,
    /// The total of the requested bytes.
    pub(crate) bytes: u64,
}

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

static TIMES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Counts the allocations of this thread from now on.
pub(crate) fn count_this_thread() {
    IS_COUNTED.set(true);
}

/// The allocations of the counted thread so far.
pub(crate) fn allocated() -> Allocated {
    Allocated { times: TIMES.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

impl Allocated {
    /// Those that were made after `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { times: self.times - before.times, bytes: self.bytes - before.bytes }
    }
}

/// The least that a run of a path allocated. Some runs also make other allocations.
pub(crate) fn least(runs: &[Allocated]) -> Allocated {
    let times = runs.iter().map(|run| run.times).min();
    let bytes = runs.iter().map(|run| run.bytes).min();
    Allocated { times: times.unwrap_or_default(), bytes: bytes.unwrap_or_default() }
}

/// The allocator of the system, which also counts allocations. The program uses another one, mimalloc: its cost depends on the
/// allocations before, so that the same read has other counts in each run.
pub(crate) struct Counted;

fn count(bytes: usize) {
    if IS_COUNTED.get() {
        TIMES.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
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

/// What the counted thread shall do when it next asks for the time. valgrind begins and ends a count only for the thread that
/// asks for it.
static ORDER: Mutex<Option<Order>> = Mutex::new(None);

/// True while there is an order.
static IS_ORDERED: AtomicBool = AtomicBool::new(false);

/// What the counted thread shall do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Begin a count.
    Begin,
    /// End it, under this title.
    End(&'static CStr),
}

/// The allocations before the count that runs, and those of each count that has ended.
static ORDERED_RUNS: Mutex<(Allocated, Vec<Allocated>)> = Mutex::new((Allocated { times: 0, bytes: 0 }, Vec::new()));

/// Gives the counted thread an order.
///
/// # Panics
/// If it has not yet obeyed the one before.
pub(crate) fn order(order: Order) {
    let before = ORDER.lock().expect("no panic").replace(order);
    assert!(before.is_none(), "not obeyed: {before:?}");
    IS_ORDERED.store(true, Ordering::Release);
}

/// Obeys the order, if there is one and this is the counted thread.
pub(crate) fn obey() {
    if !IS_COUNTED.get() || !IS_ORDERED.swap(false, Ordering::Acquire) {
        return;
    }
    let (before, runs) = &mut *ORDERED_RUNS.lock().expect("no panic");
    match ORDER.lock().expect("no panic").take() {
        Some(Order::Begin) => {
            *before = allocated();
            zero();
        }
        Some(Order::End(title)) => {
            dump(title);
            runs.push(allocated().since(*before));
        }
        None => {}
    }
}

/// The allocations of each ordered count.
pub(crate) fn ordered_runs() -> Vec<Allocated> {
    ORDERED_RUNS.lock().expect("no panic").1.clone()
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
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn the_counted_thread_counts_between_its_orders() {
        count_this_thread();
        order(Order::Begin);
        let turn = Arc::new(Barrier::new(2));
        let its_turn = Arc::clone(&turn);
        let other = std::thread::spawn(move || {
            obey();
            its_turn.wait();
            its_turn.wait();
            drop(std::hint::black_box(vec![0u8; 1 << 20]));
            its_turn.wait();
        });
        turn.wait();
        drop(std::hint::black_box(vec![0u8; 100]));
        obey();
        turn.wait();
        turn.wait();
        drop(std::hint::black_box(Vec::<u8>::with_capacity(1000)));
        let mut grown = std::hint::black_box(Vec::<u8>::with_capacity(10));
        grown.reserve_exact(500);
        order(Order::End(c"a path"));
        obey();
        drop(std::hint::black_box(vec![0u8; 100]));
        obey();
        assert_eq!(ordered_runs(), [Allocated { times: 3, bytes: 1510 }]);
        drop(grown);
        other.join().unwrap();
    }

    #[test]
    fn the_least_of_many_runs_counts() {
        let at = |times, bytes| Allocated { times, bytes };
        assert_eq!(least(&[at(5, 700), at(10, 1700).since(at(6, 900))]), at(4, 700));
        assert_eq!(least(&[]), at(0, 0));
    }

    #[test]
    fn without_valgrind_requests_have_no_effect() {
        assert!(!is_counted());
        start();
        zero();
        dump(c"nothing");
    }
}
