//! Gives memory that was freed back to the system. The C library's allocator keeps it: what eight calls had the host keep,
//! in small pieces, stays with the process as long as that lives, beside what the next calls take.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// Freed bytes from which on they are given back.
const MUCH: u64 = 32 << 20;

/// How long is waited then: what belongs together is freed within this time.
const TOGETHER: Duration = Duration::from_millis(2);

/// What was freed since bytes were given back the last time.
static FREED: AtomicU64 = AtomicU64::new(0);

/// The thread that gives back; none, where there is no need for it, or none to be had.
static GIVER: LazyLock<Option<Thread>> = LazyLock::new(|| {
    if cfg!(not(target_env = "gnu")) {
        // Other C libraries give back by themselves.
        return None;
    }
    let giver = thread::Builder::new().name("freed".to_owned()).spawn(|| {
        loop {
            while FREED.load(Ordering::Relaxed) < MUCH {
                thread::park();
            }
            thread::sleep(TOGETHER);
            FREED.store(0, Ordering::Relaxed);
            give_back();
        }
    });
    giver.ok().map(|giver| giver.thread().clone())
});

/// Starts what gives back: a thread that begins later would be one more than there were.
pub fn begin() {
    LazyLock::force(&GIVER);
}

/// Notes that so many bytes are about to be freed.
pub fn soon(bytes: u64) {
    let before = FREED.fetch_add(bytes, Ordering::Relaxed);
    if before < MUCH
        && before.saturating_add(bytes) >= MUCH
        && let Some(giver) = &*GIVER
    {
        giver.unpark();
    }
}

#[cfg(target_env = "gnu")]
fn give_back() {
    #[expect(unsafe_code, reason = "a function of the C library, for its allocator")]
    // SAFETY: it may be called at any time by any thread, and takes no pointer (malloc_trim(3)).
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}
