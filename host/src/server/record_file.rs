//! The audit record in the state directory. Only this user can read it. It cannot fill the disk: a full file is renamed
//! with a number, and the oldest renamed file is deleted.
//!
//! Several belljar processes of one user append whole lines to the same file. The process that finds the file full
//! rotates it under a lock. The others notice this at their next write and open the new file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, File, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};

use super::directories::{self, PrivateDirError};

/// The name of the current file in [`FOLDER`].
const NAME: &str = "audit.jsonl";

/// The folder of the record, in the state directory. The second wall allows this folder and not the rest of the
/// directory.
const FOLDER: &str = "record";

/// The size in bytes from which the file is rotated.
const MAX_BYTES: u64 = 16 << 20;

/// The number of rotated files that are kept.
const MAX_ROTATED: u32 = 4;

/// The audit record in the state directory; see the module.
pub(crate) struct RecordFile {
    dir: Dir,
    file: File,
    /// True if the last write ended with a complete line.
    is_at_line_start: bool,
    /// See [`MAX_BYTES`].
    max_bytes: u64,
}

/// Why the record cannot be kept in the state directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordFileError {
    /// The state directory or the folder cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// The file cannot be opened.
    #[error("\"{}\": {error}", path.display())]
    Unopened {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// The path of the current file.
pub(crate) fn path(state: &Path) -> PathBuf {
    folder(state).join(NAME)
}

/// The paths of all files that exist, oldest first.
pub(crate) fn all(state: &Path) -> Vec<PathBuf> {
    let names = (1..=MAX_ROTATED).rev().map(rotated_name).chain([NAME.to_owned()]);
    names.map(|name| folder(state).join(name)).filter(|path| path.is_file()).collect()
}

/// The folder of the current file and of the rotated ones.
pub(crate) fn folder(state: &Path) -> PathBuf {
    state.join(FOLDER)
}

/// The name of a rotated file; 1 is the newest.
fn rotated_name(age: u32) -> String {
    format!("audit.{age}.jsonl")
}

impl RecordFile {
    /// Opens the file in the state directory. Creates both if they are missing.
    ///
    /// # Errors
    /// If either cannot be opened, or other users have access to the directory.
    pub(crate) fn open(state: &Path) -> Result<Self, RecordFileError> {
        directories::private_dir(state)?;
        let dir = directories::private_dir(&folder(state))?;
        let file = open_for_append(&dir).map_err(|error| RecordFileError::Unopened { path: path(state), error })?;
        Ok(Self { dir, file, is_at_line_start: true, max_bytes: MAX_BYTES })
    }

    /// Rotates the file, unless another process has done so, and opens the new one.
    fn rotate(&mut self) -> std::io::Result<()> {
        // Another process holds the lock and is rotating the file. This batch still goes into the old file.
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        let own = self.file.metadata()?;
        let is_own = self.dir.metadata(NAME).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
        if is_own {
            for age in (1..MAX_ROTATED).rev() {
                // Fails if there is no file of this age yet.
                let _ = self.dir.rename(rotated_name(age), &self.dir, rotated_name(age + 1));
            }
            self.dir.rename(NAME, &self.dir, rotated_name(1))?;
        }
        // Closing the old file releases the lock.
        self.file = open_for_append(&self.dir)?;
        Ok(())
    }
}

impl Write for RecordFile {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        if self.is_at_line_start && self.file.metadata()?.len() >= self.max_bytes {
            self.rotate()?;
        }
        let written = self.file.write(lines)?;
        if let Some(last) = written.checked_sub(1).and_then(|last| lines.get(last)) {
            self.is_at_line_start = *last == b'\n';
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn open_for_append(dir: &Dir) -> std::io::Result<File> {
    dir.open_with(NAME, OpenOptions::new().append(true).create(true).mode(0o600))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn several_writers_keep_the_record_within_its_bound() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let mut writers: Vec<_> = (0..3).map(|_| RecordFile::open(&state).unwrap()).collect();
        writers.iter_mut().for_each(|writer| writer.max_bytes = 10_000);
        for n in 0..3000 {
            let line = format!("{{\"n\":{n}}}\n");
            let writer = &mut writers[n % 3];
            // A line that is written in two parts stays in one file.
            writer.write_all(&line.as_bytes()[..4]).unwrap();
            writer.write_all(&line.as_bytes()[4..]).unwrap();
        }
        let mut names: Vec<_> = std::fs::read_dir(folder(&state))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["audit.1.jsonl", "audit.2.jsonl", "audit.3.jsonl", "audit.jsonl"]);
        let mut all = Vec::new();
        for name in &names {
            let path = folder(&state).join(name);
            let meta = std::fs::metadata(&path).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
            assert!(meta.len() < 10_100, "{name}: {}", meta.len());
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                all.push(serde_json::from_str::<serde_json::Value>(line).unwrap()["n"].as_u64().unwrap());
            }
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..3000), "each line once: {}", all.len());
        for n in 0..6000 {
            writers[n % 3].write_all(b"{\"n\":1}\n").unwrap();
        }
        let total: u64 =
            std::fs::read_dir(folder(&state)).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert!(total < 51_000, "{total}");
    }
}
