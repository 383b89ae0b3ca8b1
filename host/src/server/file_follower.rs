//! Follows some files while belljar serves, in a task of its own for each purpose: a wrong configuration, or a component
//! that loads slowly, must delay neither a revoked key nor a renewed certificate. For the same reason it runs although
//! `[watch]` has `reload = false`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::{BoxFuture, pending};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

use super::file_changes::{self, FollowedFile, hangup, watch};
use crate::catalog::loader::Debounce;
use crate::catalog::watch::{Watcher, any_changed};

/// How often the files are looked at if their directories cannot be watched, and read again if they could not be read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What is made from the files.
pub(crate) trait FileReader: Send {
    /// Reads the files and applies them.
    fn read(&mut self) -> BoxFuture<'_, FileOutcome>;
}

/// How a reading of the files ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOutcome {
    /// Their contents were applied or refused. They are read again when they change.
    Read,
    /// They could not be read. They are read again soon.
    Unread,
}

/// Followed files.
pub(crate) struct FileFollower {
    files: Vec<FollowedFile>,
    /// The directories of the files, and of their targets if they are links.
    directories: Vec<PathBuf>,
}

impl FileFollower {
    /// Follows these files from now on. Called before they are read for the first time, so that no change is missed.
    pub(crate) fn new(paths: &[&Path]) -> Self {
        let files = paths.iter().map(|path| FollowedFile::new((*path).to_owned())).collect();
        Self { files, directories: file_changes::directories(paths) }
    }

    /// True if one of the files has changed since the last call.
    fn has_changed(&mut self) -> bool {
        self.files.iter_mut().fold(false, |is_changed, file| file.has_changed() | is_changed)
    }

    /// Lets `reader` read the files after each change and after SIGHUP, until the task is dropped.
    pub(crate) async fn run(mut self, mut reader: impl FileReader, watcher: Option<Watcher>) {
        let watched = watch(watcher.as_ref(), &self.directories).await;
        let is_watched = !watched.is_empty() && watched.len() == self.directories.len();
        let mut hangups = signal(SignalKind::hangup()).ok();
        let mut debounce = Debounce::default();
        let mut outcome = FileOutcome::Read;
        // Looks once more: the files may have changed after they were read and before they were watched.
        debounce.changed(Instant::now());
        loop {
            let due = debounce.due();
            let wait = async {
                match due {
                    None if is_watched && outcome == FileOutcome::Read => pending().await,
                    None => sleep(POLL_INTERVAL).await,
                    Some(due) => sleep_until(due).await,
                }
            };
            tokio::select! {
                () = any_changed(&watched) => debounce.changed(Instant::now()),
                () = hangup(hangups.as_mut()) => outcome = reader.read().await,
                () = wait => {
                    let began = Instant::now();
                    debounce.begin();
                    // Changes of other files in the same directory do not count.
                    if self.has_changed() || outcome == FileOutcome::Unread {
                        outcome = reader.read().await;
                    }
                    debounce.end(began, Instant::now());
                }
            }
        }
    }
}
