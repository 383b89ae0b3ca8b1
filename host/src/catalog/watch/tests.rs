//! What is told as a change, on a real file system.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use tokio::time::timeout;

use super::*;

/// Longer than anything is told late.
const SOON: Duration = Duration::from_secs(3);

/// Longer than the queue is left alone.
const QUIET: Duration = Duration::from_millis(100);

async fn is_told(watched: &Watched) -> bool {
    timeout(SOON, watched.changed()).await.is_ok()
}

async fn is_quiet(watched: &Watched) -> bool {
    timeout(QUIET, watched.changed()).await.is_err()
}

/// Lets everything be told that happened so far.
async fn settle(watched: &Watched) {
    while !is_quiet(watched).await {}
}

#[tokio::test]
async fn a_change_is_told_once_and_reading_is_none() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    let watcher = Watcher::start().unwrap();
    let watched = watcher.watch(temp.path(), Reach::Flat).unwrap();
    assert!(is_quiet(&watched).await);
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
        change();
        assert!(is_told(&watched).await, "{what}");
        let mut more = 0;
        while !is_quiet(&watched).await {
            more += 1;
        }
        // A machine that is busy may put one change into two of the looks, and a hundred into some more.
        let most = if what == "many" { 40 } else { 2 };
        assert!(more <= most, "{what} is told {more} times more");
    }
    fs::write(path("d"), "text").unwrap();
    settle(&watched).await;
    for _ in 0..100 {
        fs::read(path("d")).unwrap();
        fs::read_dir(temp.path()).unwrap().for_each(drop);
    }
    assert!(is_quiet(&watched).await, "reading is no change");
}

#[tokio::test]
async fn what_is_below_is_watched_where_it_is_asked_for_and_links_are_not_followed() {
    let (temp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(temp.path().join("a/b")).unwrap();
    symlink(other.path(), temp.path().join("a/link")).unwrap();
    let watcher = Watcher::start().unwrap();
    let flat = watcher.watch(temp.path(), Reach::Flat).unwrap();
    let deep = watcher.watch(temp.path(), Reach::Deep).unwrap();
    fs::write(temp.path().join("a/b/c"), "text").unwrap();
    assert!(is_told(&deep).await);
    assert!(is_quiet(&flat).await);
    settle(&deep).await;
    fs::write(other.path().join("d"), "text").unwrap();
    assert!(is_quiet(&deep).await, "behind a link");
    // What is made while it is watched is watched too, however fast it is made.
    fs::create_dir_all(temp.path().join("n/e/w")).unwrap();
    tokio::time::sleep(2 * SWEEP).await;
    settle(&deep).await;
    fs::write(temp.path().join("n/e/w/f"), "text").unwrap();
    assert!(is_told(&deep).await);
    // And what was moved out is not any more.
    fs::rename(temp.path().join("a"), other.path().join("a")).unwrap();
    tokio::time::sleep(2 * SWEEP).await;
    settle(&deep).await;
    fs::write(other.path().join("a/b/c"), "more").unwrap();
    assert!(is_quiet(&deep).await);
}

#[tokio::test]
async fn a_directory_that_is_made_anew_or_exchanged_is_watched_again() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, link) = (temp.path().join("dir"), temp.path().join("link"));
    fs::create_dir(&dir).unwrap();
    symlink("dir", &link).unwrap();
    let watcher = Watcher::start().unwrap();
    for path in [&dir, &link] {
        let watched = watcher.watch(path, Reach::Flat).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert!(is_told(&watched).await, "that it is gone");
        tokio::time::sleep(2 * SWEEP).await;
        settle(&watched).await;
        fs::create_dir(&dir).unwrap();
        assert!(is_told(&watched).await, "that it is back");
        settle(&watched).await;
        fs::write(dir.join("a"), "text").unwrap();
        assert!(is_told(&watched).await, "what changes in the new one");
    }
    let watched = watcher.watch(&link, Reach::Flat).unwrap();
    fs::create_dir(temp.path().join("other")).unwrap();
    symlink("other", temp.path().join("next")).unwrap();
    fs::rename(temp.path().join("next"), &link).unwrap();
    assert!(is_told(&watched).await, "that the link leads elsewhere");
    settle(&watched).await;
    fs::write(temp.path().join("other/a"), "text").unwrap();
    assert!(is_told(&watched).await);
}

#[tokio::test]
async fn too_large_a_tree_is_refused_and_one_that_grows_too_large_says_so() {
    let temp = tempfile::tempdir().unwrap();
    (1..DIRECTORIES).for_each(|n| fs::create_dir(temp.path().join(n.to_string())).unwrap());
    let watcher = Watcher::start().unwrap();
    let watched = watcher.watch(temp.path(), Reach::Deep).unwrap();
    assert!(watched.is_whole());
    fs::create_dir(temp.path().join("more")).unwrap();
    assert!(is_told(&watched).await);
    tokio::time::sleep(2 * SWEEP).await;
    assert!(!watched.is_whole());
    let refused = watcher.watch(temp.path(), Reach::Deep).err().unwrap();
    assert!(refused.contains("more than 4096 directories"), "{refused}");
    drop(watched);
    assert!(lock(&watcher.0.watches).users.is_empty(), "what nobody watches is given back");
    assert!(watcher.watch(temp.path(), Reach::Flat).is_ok());
    let file = temp.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(watcher.watch(&file, Reach::Flat).err().unwrap().contains("cannot be watched"));
}

/// The kernel's queue is filled while nobody reads it: then nobody knows what was lost.
#[tokio::test]
async fn an_overflow_is_told_to_all() {
    let (busy, calm) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watcher = Watcher::start().unwrap();
    let watched = [busy.path(), calm.path()].map(|path| watcher.watch(path, Reach::Flat).unwrap());
    let held = lock(&watcher.0.watches);
    let (a, b) = (busy.path().join("a"), busy.path().join("b"));
    fs::write(&a, "text").unwrap();
    for _ in 0..5_000 {
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
    }
    drop(held);
    for watched in &watched {
        assert!(is_told(watched).await);
    }
}
