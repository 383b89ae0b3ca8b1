//! Log messages about long compilations while they run. Nothing else in belljar makes a person wait this long.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::model::MountName;
use crate::model::error::show_bytes;

/// The interval of progress messages. A compilation that ends within it gets none before its end.
const INTERVAL: Duration = Duration::from_secs(1);

/// Every n-th message has level info; the others have level debug.
const INFO_EVERY: u32 = 10;

/// The target of these messages, so that a command that logs little else can show them.
pub const COMPILING: &str = "belljar::compiling";

/// Waits for the compilation of the component of `name`, of `size` bytes, and logs its progress.
pub(super) async fn log_progress<T>(name: &MountName, size: u64, work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut messages = 0u32;
    loop {
        if let Ok(done) = timeout(INTERVAL, work.as_mut()).await {
            return done;
        }
        let (size, seconds) = (show_bytes(size), started.elapsed().as_secs());
        match messages {
            0 => {
                tracing::info!(target: COMPILING, mount = %name, "its component of {size} is being compiled; that is done once");
            }
            count if count % INFO_EVERY == 0 => {
                tracing::info!(target: COMPILING, mount = %name, "its component of {size} is still being compiled, for {seconds} s");
            }
            _ => {
                tracing::debug!(target: COMPILING, mount = %name, "its component of {size} is still being compiled, for {seconds} s");
            }
        }
        messages = messages.saturating_add(1);
    }
}

/// Logs the end of a compilation.
pub(super) fn log_end(name: &MountName, took: Duration, code: u64) {
    tracing::info!(target: COMPILING, mount = %name, "compiled in {} ms, to {} of code", took.as_millis(), show_bytes(code));
}
