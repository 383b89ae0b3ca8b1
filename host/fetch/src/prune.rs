//! Removes old files from the directory of components: downloads that nobody continued, and components that were fetched long
//! ago. Runs before the wall is raised, which forbids listing a directory.

use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};

/// The time after which a download that is not complete is not continued any more.
const MAX_PART_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time for which a component is kept. It is fetched again if it is needed later.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The most bytes of all files. Above it, the oldest are removed.
pub(crate) const MAX_BYTES: u64 = 2 << 30;

/// A file that a download wrote.
struct OldFile {
    name: String,
    is_part: bool,
    age: Duration,
    size: u64,
}

/// Removes what is too old, and the oldest files above `most` bytes. What cannot be removed stays: the next download tries again.
pub(crate) fn prune(directory: BorrowedFd<'_>, most: u64) {
    let Ok(entries) = Dir::read_from(directory) else { return };
    let names = entries.flatten().filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()));
    let mut files: Vec<OldFile> = names.filter_map(|name| read(directory, name)).collect();
    files.sort_by_key(|file| file.age);
    let mut kept = 0_u64;
    for file in files {
        kept = kept.saturating_add(file.size);
        let longest = if file.is_part { MAX_PART_AGE } else { MAX_AGE };
        if (file.age > longest || kept > most) && (!file.is_part || is_abandoned(directory, &file.name)) {
            let _ = rustix::fs::unlinkat(directory, &file.name, AtFlags::empty());
        }
    }
}

/// A plain file with a name of ours.
fn read(directory: BorrowedFd<'_>, name: String) -> Option<OldFile> {
    let (digest, kind) = name.split_once('.')?;
    let is_ours = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_part = match kind {
        "part" => true,
        "wasm" | "bundle" => false,
        _ => return None,
    };
    let meta = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_file = FileType::from_raw_mode(meta.st_mode) == FileType::RegularFile;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    // A time in the future comes from a wrong clock, and counts as now.
    let age = now.saturating_sub(u64::try_from(meta.st_mtime).unwrap_or_default());
    let size = u64::try_from(meta.st_size).unwrap_or_default();
    (is_ours && is_file).then(|| OldFile { name, is_part, age: Duration::from_secs(age), size })
}

/// True if no download writes the file now.
fn is_abandoned(directory: BorrowedFd<'_>, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return false };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests;
