//! Tells whether something changed by what is known without opening a file: names, sizes and times. No content is read.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant, UNIX_EPOCH};

use belljar_guest::{Error, Result};

use crate::tree::{Kind, Meta, Tree, join};

/// What the revision of the list may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many files there may be. Each costs the host a look, and the answer has to come in one call; the list itself
    /// comes in pages.
    pub files: usize,
    /// How long it may take: the host waits a second, unless the operator says otherwise, and the machine may be slow.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { files: 50_000, time: Duration::from_millis(600) }
    }
}

/// The revision of the list: of every file in it, its path, size and time.
///
/// Only of those whose names are `of_use`. Fails, and says why, when the bounds do not suffice.
pub fn of_list(tree: &Tree, bounds: Bounds, of_use: fn(&str) -> bool) -> Result<String> {
    let began = Instant::now();
    // Names come by the hundred, so that it is known early whether there are too many.
    let (mut files, mut directories) = (Vec::new(), vec![String::new()]);
    while let Some(directory) = directories.pop() {
        if began.elapsed() > bounds.time {
            return Err(too_slow(bounds, "more than", files.len()));
        }
        let entries = match tree.entries(&directory) {
            Ok(entries) => entries,
            // As in the list: a part that cannot be read is left out, the whole is not.
            Err(error) if directory.is_empty() => return Err(error),
            Err(_) => continue,
        };
        for entry in entries {
            let path = join(&directory, &entry.name);
            match entry.kind {
                Kind::Directory => directories.push(path),
                Kind::File | Kind::Symlink if of_use(&entry.name) => files.push(path),
                Kind::File | Kind::Symlink | Kind::Other => {}
            }
            if files.len() + directories.len() > bounds.files {
                return Err(Error::failed(format_args!(
                    "there are more than {} files: too many to look at each of them to see what changed",
                    bounds.files
                )));
            }
        }
    }
    // In whatever order directories give their entries, which need not be the same twice.
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
    Error::failed(format_args!("looking at {how} {files} files to see what changed takes longer than {time} ms"))
}

impl Meta {
    /// The revision of a file: differs when its size or its time does.
    pub fn revision(&self) -> String {
        let (size, time) = self.facts();
        format!("{size:x}-{time:x}")
    }

    /// Size, and nanoseconds since 1970: what tells that a file changed.
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
