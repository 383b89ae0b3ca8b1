//! Writes the counts of a worker process, in the build that `cargo xtask dist` makes a profile with. Other programs write
//! theirs when they end, but a front kills its workers.

use std::ffi::c_int;
use std::thread;
use std::time::Duration;

#[expect(unsafe_code, reason = "the functions of LLVM's profile runtime, which this build links")]
unsafe extern "C" {
    safe fn __llvm_profile_write_file() -> c_int;
    safe fn __llvm_profile_reset_counters();
}

/// Adds the counts to the profile once a second, on a thread of its own.
pub(super) fn write_each_second() {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            __llvm_profile_write_file();
            __llvm_profile_reset_counters();
        }
    });
}
