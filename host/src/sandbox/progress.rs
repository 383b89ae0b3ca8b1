//! Tells the operator of compilations that take long, while they run: nothing else of belljar's makes a person wait.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::model::MountName;
use crate::model::error::show_bytes;

/// What does not take so long is not worth a word before it has ended.
const LONG: Duration = Duration::from_secs(1);

/// How often it is told that it goes on.
const AGAIN: Duration = Duration::from_secs(10);

/// The target of these messages, so that a command which says little else can show them.
macro_rules! tell {
    ($($said:tt)*) => { tracing::info!(target: "belljar::compiling", $($said)*) };
}

/// Waits for the compilation of `name`'s component of `size` bytes, and tells how it goes.
pub(super) async fn told<T>(name: &MountName, size: u64, work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut pause = LONG;
    loop {
        if let Ok(done) = timeout(pause, work.as_mut()).await {
            return done;
        }
        if pause == LONG {
            tell!(mount = %name, "its component of {} is being compiled; that is done once", show_bytes(size));
        } else {
            tell!(mount = %name, "its component is still being compiled, for {} s", started.elapsed().as_secs());
        }
        pause = AGAIN;
    }
}

/// Tells that it has ended.
pub(super) fn ended(name: &MountName, took: Duration, code: u64) {
    tell!(mount = %name, "compiled in {} ms, to {} of code", took.as_millis(), show_bytes(code));
}
