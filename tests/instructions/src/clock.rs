//! Replaces the machine's clock by one that advances with each query.
//!
//! Under valgrind, a program takes fifty times longer, and even longer on a busy machine. With the machine's clock, belljar
//! would sometimes treat short calls as long calls, and continue them on a thread that is not counted. With this clock, no
//! call is long, and each run of a path takes the same decisions.

use std::sync::atomic::{AtomicI64, Ordering};

/// `struct timespec` of the C library.
#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

/// The first time, in seconds: later than the uptime of any machine. The kernel compares the time at which a sleep ends with
/// the uptime. So a sleeping thread continues only when another thread wakes it.
const START: i64 = 1_800_000_000;

/// The time between two queries, in nanoseconds.
const STEP: i64 = 100;

/// The time that has passed since [`START`], in nanoseconds.
static ELAPSED: AtomicI64 = AtomicI64::new(0);

/// Replaces the function of the C library, for the standard library and all other code of this program.
#[expect(unsafe_code, reason = "the linker takes a function of that name in place of the C library's")]
// SAFETY: this function has the signature of the C library's function, and writes only to the caller's `timespec`.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(_clock: i32, time: *mut Time) -> i32 {
    crate::count::obey();
    let passed = ELAPSED.fetch_add(STEP, Ordering::Relaxed);
    let now = Time { seconds: START + passed / 1_000_000_000, nanoseconds: passed % 1_000_000_000 };
    // SAFETY: the caller passes a valid pointer to a `timespec`.
    unsafe { time.write(now) };
    0
}
