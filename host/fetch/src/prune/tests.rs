//! Which files of the directory are removed.
#![expect(clippy::disallowed_methods, reason = "the files of a test")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{MAX_BYTES, prune};

const DAY: u64 = 24 * 3600;

/// Writes a file of `bytes` bytes with an age in days. Returns its name.
fn write(directory: &Path, digit: char, kind: &str, days: u64, bytes: u64) -> String {
    let name = format!("{}.{kind}", digit.to_string().repeat(64));
    let file = File::create(directory.join(&name)).unwrap();
    file.set_len(bytes).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(days * DAY)).unwrap();
    name
}

fn pruned(directory: &Path, most: u64) -> BTreeSet<String> {
    prune(File::open(directory).unwrap().as_fd(), most);
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn old_downloads_and_components_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let kept = [write(path, '1', "part", 6, 10), write(path, '2', "wasm", 29, 10)];
    write(path, '5', "bundle", 31, 10);
    write(path, '3', "part", 8, 10);
    write(path, '4', "wasm", 31, 10);
    assert_eq!(pruned(path, MAX_BYTES), kept.into());
}

#[test]
fn the_oldest_files_are_removed_above_the_bound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let kept = [write(path, '1', "wasm", 0, 100), write(path, '2', "part", 1, 100), write(path, '3', "wasm", 2, 50)];
    write(path, '4', "wasm", 3, 1);
    write(path, '5', "part", 4, 100);
    assert_eq!(pruned(path, 250), kept.into());
}

#[test]
fn a_running_download_and_files_of_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let running = write(path, '1', "part", 50, 10);
    let lock = File::open(path.join(&running)).unwrap();
    lock.lock().unwrap();
    let mut kept = BTreeSet::from([running]);
    for name in ["notes.wasm", "x.part", "README"] {
        File::create(path.join(name)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        kept.insert(name.to_owned());
    }
    assert_eq!(pruned(path, 0), kept);
    drop(lock);
    assert_eq!(pruned(path, 0).len(), 3);
}
