//! Returns freed memory to the operating system. The allocator of glibc keeps freed memory in the process: the small
//! host allocations of eight calls stay allocated for good, in addition to the memory of later calls.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// Freed bytes after which `malloc_trim` runs at once.
const THRESHOLD: u64 = 32 << 20;

/// Freed bytes after which it runs when nothing is freed any more. Less than this stays in the process.
const REST: u64 = 4 << 20;

/// The most bytes at the end of a heap that the allocator keeps. `malloc_trim` does not return them.
#[cfg(target_env = "gnu")]
const HEAP_END: u64 = 8 << 20;

/// The time in which nothing is freed, before the rest is returned.
const QUIET: Duration = Duration::from_millis(500);

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
            while FREED.load(Ordering::Relaxed) < REST {
                thread::park();
            }
            let mut freed = 0;
            while freed < THRESHOLD {
                let now = FREED.load(Ordering::Relaxed);
                if now == freed {
                    break;
                }
                freed = now;
                thread::park_timeout(QUIET);
            }
            thread::sleep(DELAY);
            // Large values may take longer to free, so their rest is returned when it is quiet.
            FREED.store(if freed < THRESHOLD { 0 } else { REST }, Ordering::Relaxed);
            trim();
        }
    });
    spawned.ok().map(|handle| handle.thread().clone())
});

/// Prepares the allocator, and starts the thread now, so that the number of threads does not grow later.
pub fn start() {
    keep_freed();
    LazyLock::force(&THREAD);
}

/// Records that `bytes` are about to be freed.
pub fn note_freed(bytes: u64) {
    let before = FREED.fetch_add(bytes, Ordering::Relaxed);
    let crosses = |most| before < most && before.saturating_add(bytes) >= most;
    if (crosses(REST) || crosses(THRESHOLD))
        && let Some(thread) = &*THREAD
    {
        thread.unpark();
    }
}

/// Lets the allocator keep freed buffers until `malloc_trim` runs: calls allocate and free the same large buffers, and to
/// get cleared memory each time costs more than to copy it. `malloc_trim` does not return the end of a heap, and each
/// thread may have a heap. So the allocator itself returns an end that grows large.
fn keep_freed() {
    #[cfg(target_env = "gnu")]
    for (option, most) in [(libc::M_MMAP_THRESHOLD, THRESHOLD), (libc::M_TRIM_THRESHOLD, HEAP_END)] {
        let most = libc::c_int::try_from(most).unwrap_or(libc::c_int::MAX);
        #[expect(unsafe_code, reason = "mallopt is a C function")]
        // SAFETY: mallopt(3) takes two numbers.
        let _ = unsafe { libc::mallopt(option, most) };
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
