//! Access to granted directories outside of calls: at start-up, at a reload, in `belljar check`. Each access runs on
//! its thread_path thread with a timeout, because a drive that does not answer must not block belljar.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::cpu_timer::run_blocking;

/// The timeout of an access. A sleeping disk needs some seconds to wake up.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout while an earlier access is stuck: the drive is probably the same one.
const TIMEOUT_WHILE_STUCK: Duration = Duration::from_secs(1);

/// The paths of stuck accesses. At most one thread accesses a path, so that stuck threads do not pile up.
static STUCK_PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// An access did not finish in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Self::MESSAGE)]
pub struct Stalled;

impl Stalled {
    /// The message for the operator.
    pub const MESSAGE: &str = "its drive does not answer; mount it again, or revoke the grant";
}

fn stuck_paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    STUCK_PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `access` to `path` on a thread of its own, and waits until the timeout.
///
/// # Errors
/// When `access` does not finish in time, or an earlier access to `path` is stuck.
pub fn run_with_timeout<T: Send + 'static>(
    path: &Path,
    access: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stalled> {
    let timeout = if stuck_paths().is_empty() { TIMEOUT } else { TIMEOUT_WHILE_STUCK };
    run_within(path, timeout, access)
}

/// [`run_with_timeout`] with this timeout.
///
/// # Errors
/// As [`run_with_timeout`].
pub(in crate::grants) fn run_within<T: Send + 'static>(
    path: &Path,
    timeout: Duration,
    access: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stalled> {
    if stuck_paths().contains(path) {
        return Err(Stalled);
    }
    run_on_thread(path, timeout, access)
}

fn run_on_thread<T: Send + 'static>(
    path: &Path,
    timeout: Duration,
    access: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stalled> {
    let (done, received) = sync_channel(1);
    let thread_path = path.to_owned();
    let body = move || {
        let value = catch_unwind(AssertUnwindSafe(access)).ok();
        // The waiting thread gives up under this lock. Therefore it either gets the value, or this send fails.
        let mut stuck = stuck_paths();
        if done.send(value).is_err() {
            stuck.remove(&thread_path);
        }
    };
    let thread = match std::thread::Builder::new().name("belljar-access".to_owned()).spawn(body) {
        Ok(thread) => thread,
        Err(error) => {
            tracing::warn!("cannot start a thread to access a directory: {error}");
            return Err(Stalled);
        }
    };
    let wait = move || match received.recv_timeout(timeout) {
        Ok(value) => {
            // The thread has finished. It must be gone before belljar enters the Landlock sandbox, which needs a
            // process with one thread.
            let _ = thread.join();
            value.ok_or(Stalled)
        }
        Err(RecvTimeoutError::Disconnected) => Err(Stalled),
        Err(RecvTimeoutError::Timeout) => {
            let mut stuck = stuck_paths();
            // The value may have arrived just after the timeout.
            if let Ok(value) = received.try_recv() {
                return value.ok_or(Stalled);
            }
            stuck.insert(path.to_owned());
            drop(received);
            Err(Stalled)
        }
    };
    run_blocking(wait)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::model::waiting::EVENT_TIME;

    #[test]
    fn a_stuck_access_times_out_and_is_not_repeated() {
        let path = Path::new("/of/this/test/alone");
        assert_eq!(run_on_thread(path, EVENT_TIME, || 7).unwrap(), 7);
        let (release, held) = sync_channel::<()>(0);
        assert!(run_on_thread(path, Duration::from_millis(20), move || held.recv().is_ok()).is_err());
        assert!(run_with_timeout(path, || panic!("it is tried beside the first")).is_err());
        assert_eq!(run_on_thread(Path::new("/of/this/test/too"), EVENT_TIME, || 8).unwrap(), 8);
        drop(release);
        let deadline = Instant::now() + EVENT_TIME;
        while stuck_paths().contains(path) {
            assert!(Instant::now() < deadline, "it came back, and is still taken for stuck");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(run_on_thread(path, EVENT_TIME, || 9).unwrap(), 9);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_an_access_blocks() {
        let (release, held) = sync_channel::<()>(1);
        // The access ends only after another task has run on the only worker thread.
        let other = tokio::spawn(async move { release.send(()) });
        let received = run_on_thread(Path::new("/of/a/third/test"), EVENT_TIME, move || held.recv());
        assert!(received.unwrap().is_ok());
        assert!(other.await.unwrap().is_ok());
    }
}
