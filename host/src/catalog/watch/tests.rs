//! Which events count as changes, on a real file system.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::pin::pin;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::*;
use crate::model::waiting::EVENT_TIME;

/// A watcher with a directory of its own. A change there tells when the watcher has handled all earlier events, however
/// slow the machine is.
struct TestWatcher {
    watcher: Watcher,
    marker: tempfile::TempDir,
    marked: DirectoryWatch,
    marks: Cell<usize>,
}

impl TestWatcher {
    fn start() -> Self {
        let (watcher, marker) = (Watcher::start().unwrap(), tempfile::tempdir().unwrap());
        let marked = watcher.watch(marker.path(), WatchDepth::Flat).unwrap();
        Self { watcher, marker, marked, marks: Cell::default() }
    }

    fn watch(&self, dir: &Path, depth: WatchDepth) -> Result<DirectoryWatch, WatchError> {
        self.watcher.watch(dir, depth)
    }

    fn watches(&self) -> MutexGuard<'_, Watches> {
        lock(&self.watcher.0.watches)
    }

    /// Waits until the events of all changes so far are handled: the kernel's queue keeps their order.
    async fn settle(&self) {
        // A new directory is a single event. So none is left for the next time.
        self.marks.update(|marks| marks + 1);
        fs::create_dir(self.marker.path().join(self.marks.get().to_string())).unwrap();
        assert!(is_reported(&self.marked).await, "the watcher stopped");
    }

    /// The number of reads of the queue that reported changes, for the changes so far.
    async fn reports(&self, watched: &DirectoryWatch) -> u128 {
        let (mut count, mut settled) = (0, pin!(self.settle()));
        loop {
            tokio::select! {
                biased;
                () = watched.changed() => {
                    // One read holds the lock while it handles its events, and may report each of them.
                    drop(self.watches());
                    let _ = watched.changed().now_or_never();
                    count += 1;
                }
                () = &mut settled => break,
            }
        }
        count + u128::from(watched.changed().now_or_never().is_some())
    }

    async fn is_quiet(&self, watched: &DirectoryWatch) -> bool {
        self.reports(watched).await == 0
    }

    /// Waits until all changes so far are reported, and the directories are scanned again if they changed.
    async fn wait_until_quiet(&self, watched: &DirectoryWatch) {
        let scanned = async {
            loop {
                self.settle().await;
                let is_scanned = |root: &WatchRoot| !root.is_stale && !root.is_scanning;
                if self.watches().roots.get(&watched.id).is_some_and(is_scanned) {
                    return;
                }
                tokio::time::sleep(DRAIN_INTERVAL).await;
            }
        };
        timeout(EVENT_TIME, scanned).await.expect("the directories are not scanned");
        let _ = watched.changed().now_or_never();
    }
}

async fn is_reported(watched: &DirectoryWatch) -> bool {
    timeout(EVENT_TIME, watched.changed()).await.is_ok()
}

#[tokio::test]
async fn a_change_is_reported_once_and_reading_is_no_change() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    let watcher = TestWatcher::start();
    let watched = watcher.watch(temp.path(), WatchDepth::Flat).unwrap();
    assert!(watcher.is_quiet(&watched).await);
    let changes: [(&str, &dyn Fn()); 7] = [
        ("create", &|| drop(File::create(path("a")).unwrap())),
        ("write", &|| fs::write(path("a"), "text").unwrap()),
        ("touch", &|| File::open(path("a")).unwrap().set_modified(std::time::SystemTime::now()).unwrap()),
        ("rename", &|| fs::rename(path("a"), path("b")).unwrap()),
        ("link", &|| symlink("b", path("c")).unwrap()),
        ("many", &|| (0..100).for_each(|n| fs::write(path("b"), n.to_string()).unwrap())),
        ("remove", &|| fs::remove_file(path("b")).unwrap()),
    ];
    for (what, change) in changes {
        let began = Instant::now();
        change();
        let reports = watcher.reports(&watched).await;
        // There is a pause before each read.
        let most = began.elapsed().as_millis() / DRAIN_INTERVAL.as_millis();
        assert!((1..=most).contains(&reports), "{what} is reported {reports} times; {most} are expected at most");
    }
    fs::write(path("d"), "text").unwrap();
    watcher.wait_until_quiet(&watched).await;
    for _ in 0..100 {
        fs::read(path("d")).unwrap();
        fs::read_dir(temp.path()).unwrap().for_each(drop);
    }
    assert!(watcher.is_quiet(&watched).await, "reading is no change");
}

#[tokio::test]
async fn deep_watches_cover_all_directories_below_and_follow_no_links() {
    let (temp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(temp.path().join("a/b")).unwrap();
    symlink(other.path(), temp.path().join("a/link")).unwrap();
    let watcher = TestWatcher::start();
    let flat = watcher.watch(temp.path(), WatchDepth::Flat).unwrap();
    let deep = watcher.watch(temp.path(), WatchDepth::Deep).unwrap();
    fs::write(temp.path().join("a/b/c"), "text").unwrap();
    assert!(is_reported(&deep).await);
    assert!(watcher.is_quiet(&flat).await);
    watcher.wait_until_quiet(&deep).await;
    fs::write(other.path().join("d"), "text").unwrap();
    assert!(watcher.is_quiet(&deep).await, "behind a link");
    // A directory that is created during the watch is watched too, however fast it is filled.
    fs::create_dir_all(temp.path().join("n/e/w")).unwrap();
    watcher.wait_until_quiet(&deep).await;
    fs::write(temp.path().join("n/e/w/f"), "text").unwrap();
    assert!(is_reported(&deep).await);
    // A directory that was moved out is not watched any more.
    fs::rename(temp.path().join("a"), other.path().join("a")).unwrap();
    watcher.wait_until_quiet(&deep).await;
    fs::write(other.path().join("a/b/c"), "more").unwrap();
    assert!(watcher.is_quiet(&deep).await);
}

#[tokio::test]
async fn a_recreated_or_replaced_directory_is_watched_again() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, link) = (temp.path().join("dir"), temp.path().join("link"));
    fs::create_dir(&dir).unwrap();
    symlink("dir", &link).unwrap();
    let watcher = TestWatcher::start();
    for path in [&dir, &link] {
        let watched = watcher.watch(path, WatchDepth::Flat).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert!(is_reported(&watched).await, "its removal");
        watcher.wait_until_quiet(&watched).await;
        fs::create_dir(&dir).unwrap();
        assert!(is_reported(&watched).await, "its recreation");
        watcher.wait_until_quiet(&watched).await;
        fs::write(dir.join("a"), "text").unwrap();
        assert!(is_reported(&watched).await, "a change in the new directory");
    }
    let watched = watcher.watch(&link, WatchDepth::Flat).unwrap();
    fs::create_dir(temp.path().join("other")).unwrap();
    symlink("other", temp.path().join("next")).unwrap();
    fs::rename(temp.path().join("next"), &link).unwrap();
    assert!(is_reported(&watched).await, "a change of the link");
    watcher.wait_until_quiet(&watched).await;
    fs::write(temp.path().join("other/a"), "text").unwrap();
    assert!(is_reported(&watched).await);
}

#[tokio::test]
async fn a_tree_with_too_many_directories_is_refused_or_reported_as_incomplete() {
    let temp = tempfile::tempdir().unwrap();
    (1..MAX_DIRECTORIES).for_each(|n| fs::create_dir(temp.path().join(n.to_string())).unwrap());
    let watcher = TestWatcher::start();
    let watched = watcher.watch(temp.path(), WatchDepth::Deep).unwrap();
    assert!(watched.is_complete());
    fs::create_dir(temp.path().join("more")).unwrap();
    assert!(is_reported(&watched).await);
    watcher.wait_until_quiet(&watched).await;
    assert!(!watched.is_complete());
    let refused = watcher.watch(temp.path(), WatchDepth::Deep).err().unwrap();
    assert!(refused.to_string().contains("more than 4096 directories"), "{refused}");
    drop(watched);
    assert_eq!(watcher.watches().users.len(), 1, "unused kernel watches are removed; the marker's remains");
    assert!(watcher.watch(temp.path(), WatchDepth::Flat).is_ok());
    let file = temp.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(watcher.watch(&file, WatchDepth::Flat).err().unwrap().to_string().contains("cannot be watched"));
}

/// Fills the kernel's queue while nothing reads it, so that events are lost.
#[tokio::test]
async fn an_overflow_is_reported_to_every_watch() {
    let (busy, idle) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watcher = TestWatcher::start();
    let watched = [busy.path(), idle.path()].map(|path| watcher.watch(path, WatchDepth::Flat).unwrap());
    let held = watcher.watches();
    let (a, b) = (busy.path().join("a"), busy.path().join("b"));
    fs::write(&a, "text").unwrap();
    for _ in 0..5_000 {
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
    }
    drop(held);
    for watched in &watched {
        assert!(is_reported(watched).await);
    }
}

#[tokio::test]
async fn a_directory_that_changes_during_its_scan_is_scanned_again() {
    let (test, dir) = (TestWatcher::start(), tempfile::tempdir().unwrap());
    let other = tempfile::tempdir().unwrap();
    let watched = test.watch(other.path(), WatchDepth::Deep).unwrap();
    for is_counted in [false, true] {
        let scan = is_counted.then(|| RunningScan::begin(&test.watcher.0.watches));
        let scanned = scan_tree(&test.watcher.0.queue, dir.path(), WatchDepth::Deep).unwrap();
        // The event of this directory comes before the result of the scan is stored.
        fs::create_dir(dir.path().join(is_counted.to_string())).unwrap();
        test.settle().await;
        let mut watches = test.watches();
        watches.set_scanned(&test.watcher.0.queue, watched.id, Some(scanned));
        assert_eq!(watches.roots[&watched.id].is_stale, is_counted);
        watches.set_scanned(&test.watcher.0.queue, watched.id, None);
        drop(watches);
        drop(scan);
    }
}
