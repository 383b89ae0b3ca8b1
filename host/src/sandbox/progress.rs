//! Tells the operator of compilations that take long, while they run: nothing else of belljar's makes a person wait.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::model::MountName;
use crate::model::error::show_bytes;

/// What does not take so long is not worth a word before it has ended. Also how often a terminal is told that it goes on.
const LONG: Duration = Duration::from_secs(1);

/// How many times [`LONG`] a log is told that it goes on.
const AGAIN: u32 = 10;

/// The target of these messages, so that a command which says little else can show them.
pub const COMPILING: &str = "belljar::compiling";

/// Waits for the compilation of `name`'s component of `size` bytes, and tells how it goes.
pub(super) async fn told<T>(name: &MountName, size: u64, work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut told = 0u32;
    loop {
        if let Ok(done) = timeout(LONG, work.as_mut()).await {
            return done;
        }
        let (size, seconds) = (show_bytes(size), started.elapsed().as_secs());
        match told {
            0 => {
                tracing::info!(target: COMPILING, mount = %name, "its component of {size} is being compiled; that is done once");
            }
            again if again % AGAIN == 0 => {
                tracing::info!(target: COMPILING, mount = %name, "its component of {size} is still being compiled, for {seconds} s");
            }
            _ => {
                tracing::debug!(target: COMPILING, mount = %name, "its component of {size} is being compiled, once, for {seconds} s");
            }
        }
        told = told.saturating_add(1);
    }
}

/// Tells that it has ended.
pub(super) fn ended(name: &MountName, took: Duration, code: u64) {
    tracing::info!(target: COMPILING, mount = %name, "compiled in {} ms, to {} of code", took.as_millis(), show_bytes(code));
}
