//! Returns freed memory to the operating system. The allocator of glibc keeps freed memory in the process: the small
//! host allocations of eight calls stay allocated for good, in addition to the memory of later calls.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// Freed bytes after which `malloc_trim` runs.
const THRESHOLD: u64 = 32 << 20;

/// Delay before `malloc_trim`. Allocations of one call are freed together within this time.
const DELAY: Duration = Duration::from_millis(2);

/// Bytes freed since the last `malloc_trim`.
static FREED: AtomicU64 = AtomicU64::new(0);

/// The thread that runs `malloc_trim`. `None` if this C library does not need it, or the thread cannot start.
static THREAD: LazyLock<Option<Thread>> = LazyLock::new(|| {
    if cfg!(not(target_env = "gnu")) {
        // Other C libraries return freed memory without a request.
        return None;
    }
    let spawned = thread::Builder::new().name("freed".to_owned()).spawn(|| {
        loop {
            while FREED.load(Ordering::Relaxed) < THRESHOLD {
                thread::park();
            }
            thread::sleep(DELAY);
            FREED.store(0, Ordering::Relaxed);
            trim();
        }
    });
    spawned.ok().map(|handle| handle.thread().clone())
});

/// Starts the thread now, so that the number of threads does not grow later.
pub fn start_thread() {
    LazyLock::force(&THREAD);
}

/// Records that `bytes` are about to be freed.
pub fn note_freed(bytes: u64) {
    let before = FREED.fetch_add(bytes, Ordering::Relaxed);
    if before < THRESHOLD
        && before.saturating_add(bytes) >= THRESHOLD
        && let Some(thread) = &*THREAD
    {
        thread.unpark();
    }
}

#[cfg(target_env = "gnu")]
fn trim() {
    #[expect(unsafe_code, reason = "malloc_trim is a C function")]
    // SAFETY: malloc_trim(3) takes no pointer and may be called at any time from any thread.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
