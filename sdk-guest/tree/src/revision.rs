//! Computes revisions from names, sizes and modification times, without opening files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant, UNIX_EPOCH};

use belljar_guest::{Error, Result};

use crate::tree::{Kind, Meta, Tree, join};

/// The limits for computing the revision of the list.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most files and directories. One call looks up the metadata of all files, although a list has only a page of them.
    pub files: usize,
    /// The most time. The host's default limit is one second, and the machine may be slow.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { files: 50_000, time: Duration::from_millis(600) }
    }
}

/// The revision of the list: a hash of path, size and modification time of every file whose name `is_served` accepts.
///
/// Fails with the reason if the tree exceeds the bounds.
pub fn list_revision(tree: &Tree, bounds: Bounds, is_served: fn(&str) -> bool) -> Result<String> {
    let began = Instant::now();
    // Counts names before looking up metadata, because reading names is fast and shows early if there are too many.
    let (mut files, mut directories) = (Vec::new(), vec![String::new()]);
    while let Some(directory) = directories.pop() {
        if began.elapsed() > bounds.time {
            return Err(too_slow(bounds, "more than", files.len()));
        }
        let entries = match tree.entries(&directory) {
            Ok(entries) => entries,
            // Like the list: skips a directory that cannot be read, except for the top.
            Err(error) if directory.is_empty() => return Err(error),
            Err(_) => continue,
        };
        for entry in entries {
            let path = join(&directory, &entry.name);
            match entry.kind {
                Kind::Directory => directories.push(path),
                Kind::File | Kind::Symlink if is_served(&entry.name) => files.push(path),
                Kind::File | Kind::Symlink | Kind::Other => {}
            }
            if files.len() + directories.len() > bounds.files {
                return Err(Error::failed(format_args!(
                    "there are more than {} files: too many to check each of them for changes",
                    bounds.files
                )));
            }
        }
    }
    // A sum does not depend on the order of entries, which may differ from one reading of a directory to the next.
    let (mut sum, mut count) = (0_u64, 0_u64);
    for path in &files {
        if began.elapsed() > bounds.time {
            return Err(too_slow(bounds, "each of", files.len()));
        }
        if let Some(meta) = tree.meta(path).ok().filter(|meta| meta.kind == Kind::File) {
            sum = sum.wrapping_add(hash(&(path, meta.facts())));
            count += 1;
        }
    }
    Ok(format!("{count}-{sum:016x}"))
}

fn too_slow(bounds: Bounds, how: &str, files: usize) -> Error {
    let time = bounds.time.as_millis();
    Error::failed(format_args!("checking {how} {files} files for changes takes longer than {time} ms"))
}

impl Meta {
    /// The revision of a file: changes with its size and modification time.
    pub fn revision(&self) -> String {
        let (size, time) = self.facts();
        format!("{size:x}-{time:x}")
    }

    /// The size in bytes and the modification time in nanoseconds since 1970, which together show changes.
    pub fn facts(&self) -> (u64, i128) {
        let nanoseconds = |time: u128| i128::try_from(time).unwrap_or(i128::MAX);
        let time = self.modified.map(|time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => nanoseconds(after.as_nanos()),
            Err(before) => -nanoseconds(before.duration().as_nanos()),
        });
        (self.size, time.unwrap_or_default())
    }
}

fn hash(facts: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    facts.hash(&mut hasher);
    hasher.finish()
}
