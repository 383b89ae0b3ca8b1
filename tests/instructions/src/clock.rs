//! A clock that goes by how often it is asked, in place of the machine's.
//!
//! Under valgrind everything takes fifty times longer, and on a busy machine longer still. By the machine's clock short calls
//! would then be long ones: they would go on in the slow lane, on a thread that is not counted, now and then. By this one
//! nothing ever takes long, and each run of a path decides as the run before it.

use std::sync::atomic::{AtomicI64, Ordering};

/// `struct timespec` of the C library.
#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

/// What it says at first, in seconds: later than any machine has been up, so that whoever sleeps until some time sleeps until
/// somebody wakes it.
const START: i64 = 1_800_000_000;

/// What passes between two questions, in nanoseconds.
const STEP: i64 = 100;

static ASKED: AtomicI64 = AtomicI64::new(0);

/// Stands in the place of the C library's function, for the standard library and all that asks it.
#[expect(unsafe_code, reason = "the linker takes a function of that name in place of the C library's")]
// SAFETY: it has the C library's signature, and writes where the caller says that a time belongs.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(_clock: i32, time: *mut Time) -> i32 {
    let passed = ASKED.fetch_add(STEP, Ordering::Relaxed);
    let now = Time { seconds: START + passed / 1_000_000_000, nanoseconds: passed % 1_000_000_000 };
    // SAFETY: the caller's.
    unsafe { time.write(now) };
    0
}
