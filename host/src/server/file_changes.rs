//! Notices changes of the operator's files: stamps, the directories to watch, and SIGHUP.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use futures_util::future::pending;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::catalog::watch::{DirectoryWatch, WatchDepth, Watcher};

/// The metadata that shows a change of a file: device, inode, size, and change time in seconds and nanoseconds. `None`
/// if there is no file.
pub(crate) type FileStamp = Option<(u64, u64, u64, i64, i64)>;

/// The stamp of a file. Needs no right to read the file.
pub(crate) fn stamp(path: &Path) -> FileStamp {
    #[expect(clippy::disallowed_methods, reason = "only metadata of the operator's own files")]
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
}

/// A followed file, with its stamp when it was last looked at.
#[derive(Clone)]
pub(crate) struct FollowedFile {
    /// Its path.
    pub(crate) path: PathBuf,
    stamp: FileStamp,
}

impl FollowedFile {
    /// Follows this file from now on.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { stamp: stamp(&path), path }
    }

    /// True if the file has changed since the last call.
    pub(crate) fn has_changed(&mut self) -> bool {
        let new = stamp(&self.path);
        std::mem::replace(&mut self.stamp, new) != new
    }
}

/// The directories of these files, and of their targets if they are links.
pub(crate) fn directories(files: &[&Path]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for file in files {
        #[expect(clippy::disallowed_methods, reason = "the operator's own files, behind links of the operator's")]
        let real = std::fs::canonicalize(file).ok();
        for file in real.as_deref().iter().chain([file]) {
            all.extend(file.parent().map(Path::to_owned));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Watches these directories. The log names those that cannot be watched.
pub(crate) async fn watch(watcher: Option<&Watcher>, directories: &[PathBuf]) -> Vec<DirectoryWatch> {
    let Some(watcher) = watcher.cloned() else { return Vec::new() };
    let directories = directories.to_vec();
    let watched = spawn_blocking(move || {
        let one = |dir: &PathBuf| watcher.watch(dir, WatchDepth::Flat).map_err(|why| tracing::warn!("{why}")).ok();
        directories.iter().filter_map(one).collect()
    });
    watched.await.unwrap_or_default()
}

/// Waits for SIGHUP. Waits for ever without a stream of signals.
pub(crate) async fn hangup(signal: Option<&mut Signal>) {
    match signal {
        None => pending().await,
        // The stream of signals may end; then there is nothing to wait for.
        Some(signal) => {
            if signal.recv().await.is_none() {
                pending().await
            }
        }
    }
}
