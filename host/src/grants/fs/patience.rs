//! Looks at granted directories outside of calls: at the start, at a reload, for `belljar check`. Each has a thread of its
//! own and so much time, because a drive that stalls must hang none of these.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::admission::effort::aside;

/// How long a look may take: a disk that sleeps has to wake up.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it may take while another one does not come back: the drive is likely to be the same.
const LESS_PATIENCE: Duration = Duration::from_secs(1);

/// Where looks do not come back. A path is looked at by one thread at a time, so that threads do not pile up.
static STUCK: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A look that did not come back in time.
#[derive(Debug)]
pub struct Stalled;

impl Stalled {
    /// What to tell an operator.
    pub const WHY: &str = "its drive does not answer; mount it again, or take the grant away";
}

fn stuck() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `look` at `path` on a thread of its own, and waits for it, but not for long.
///
/// # Errors
/// When it does not come back in time, or an earlier one at this path has not.
pub fn within<T: Send + 'static>(path: &Path, look: impl FnOnce() -> T + Send + 'static) -> Result<T, Stalled> {
    let patience = {
        let stuck = stuck();
        if stuck.contains(path) {
            return Err(Stalled);
        }
        if stuck.is_empty() { PATIENCE } else { LESS_PATIENCE }
    };
    wait(path, patience, look)
}

fn wait<T: Send + 'static>(
    path: &Path,
    patience: Duration,
    look: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stalled> {
    let (done, looked) = sync_channel(1);
    let own = path.to_owned();
    let body = move || {
        let value = catch_unwind(AssertUnwindSafe(look)).ok();
        // Whoever waited gave up under this lock, or is told.
        let mut stuck = stuck();
        if done.send(value).is_err() {
            stuck.remove(&own);
        }
    };
    let thread = match std::thread::Builder::new().name("belljar-look".to_owned()).spawn(body) {
        Ok(thread) => thread,
        Err(error) => {
            tracing::warn!("cannot start a thread to look at a directory: {error}");
            return Err(Stalled);
        }
    };
    let wait = move || match looked.recv_timeout(patience) {
        Ok(value) => {
            // It has nothing more to do. The second wall is raised while there is no other thread.
            let _ = thread.join();
            value.ok_or(Stalled)
        }
        Err(RecvTimeoutError::Disconnected) => Err(Stalled),
        Err(RecvTimeoutError::Timeout) => {
            let mut stuck = stuck();
            // It may have come back in the last moment.
            if let Ok(value) = looked.try_recv() {
                return value.ok_or(Stalled);
            }
            stuck.insert(path.to_owned());
            drop(looked);
            Err(Stalled)
        }
    };
    aside(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_does_not_come_back_is_not_waited_for_and_not_tried_again() {
        let path = Path::new("/of/this/test/alone");
        assert_eq!(wait(path, PATIENCE, || 7).unwrap(), 7);
        let (release, held) = sync_channel::<()>(0);
        assert!(wait(path, Duration::from_millis(20), move || held.recv().is_ok()).is_err());
        assert!(within(path, || panic!("it is tried beside the first")).is_err());
        assert_eq!(wait(Path::new("/of/this/test/too"), PATIENCE, || 8).unwrap(), 8);
        drop(release);
        for _ in 0..1000 {
            if !stuck().contains(path) {
                assert_eq!(wait(path, PATIENCE, || 9).unwrap(), 9);
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it came back, and is still taken for stuck");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_run_while_a_look_is_waited_for() {
        let (release, held) = sync_channel::<()>(1);
        // The look ends only when another task has run, on the only thread that there is.
        let other = tokio::spawn(async move { release.send(()) });
        let looked = wait(Path::new("/of/a/third/test"), PATIENCE, move || held.recv());
        assert!(looked.unwrap().is_ok());
        assert!(other.await.unwrap().is_ok());
    }
}
