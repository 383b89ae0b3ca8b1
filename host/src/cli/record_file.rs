//! The record of calls in the state directory: a file that only this user can read, and that cannot fill the disk. When it is
//! full it is set aside under a number, and the oldest of those that were set aside goes.
//!
//! Several belljars of one user write to one file. Each line is appended whole; whoever finds the file full sets it aside
//! under a lock, and the others notice and open the new one.

use std::io::Write;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, File, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};

use super::open;

/// Its name in [`FOLDER`].
const NAME: &str = "audit.jsonl";

/// The folder of the state directory that it is in. The second wall lets belljar use this folder, and not what lies beside it.
const FOLDER: &str = "record";

/// Bytes after which it is set aside.
const LARGEST: u64 = 16 << 20;

/// How many of those that were set aside are kept.
const OLDER: u32 = 4;

/// See the module.
pub(super) struct RecordFile {
    dir: Dir,
    file: File,
    /// What was written last ended with a line.
    is_at_line: bool,
    largest: u64,
}

/// Where it is.
pub(super) fn path(state: &Path) -> PathBuf {
    folder(state).join(NAME)
}

/// The folder that it is in, in which those that were set aside are as well.
pub(super) fn folder(state: &Path) -> PathBuf {
    state.join(FOLDER)
}

/// The name of the one that was set aside so many times ago.
fn older(age: u32) -> String {
    format!("audit.{age}.jsonl")
}

impl RecordFile {
    /// Opens it in the state directory, and makes both where they are missing.
    ///
    /// # Errors
    /// When either cannot be had, or can be used by others.
    pub(super) fn open(state: &Path) -> Result<Self, String> {
        open::private_dir(state)?;
        let dir = open::private_dir(&folder(state))?;
        let file = appended(&dir).map_err(|error| format!("\"{}\": {error}", path(state).display()))?;
        Ok(Self { dir, file, is_at_line: true, largest: LARGEST })
    }

    /// Sets the file aside, unless another process did, and goes on in the new one.
    fn turn(&mut self) -> std::io::Result<()> {
        // Whoever holds the lock is doing it: this batch still goes into the old one.
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        let own = self.file.metadata()?;
        let is_own = self.dir.metadata(NAME).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
        if is_own {
            for age in (1..OLDER).rev() {
                // Those that are not there yet are no matter.
                let _ = self.dir.rename(older(age), &self.dir, older(age + 1));
            }
            self.dir.rename(NAME, &self.dir, older(1))?;
        }
        // The lock goes with the file that is closed.
        self.file = appended(&self.dir)?;
        Ok(())
    }
}

impl Write for RecordFile {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        if self.is_at_line && self.file.metadata()?.len() >= self.largest {
            self.turn()?;
        }
        let written = self.file.write(lines)?;
        if let Some(last) = written.checked_sub(1).and_then(|last| lines.get(last)) {
            self.is_at_line = *last == b'\n';
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn appended(dir: &Dir) -> std::io::Result<File> {
    dir.open_with(NAME, OpenOptions::new().append(true).create(true).mode(0o600))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_record_stays_within_its_bound_whoever_writes() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let mut writers: Vec<_> = (0..3).map(|_| RecordFile::open(&state).unwrap()).collect();
        writers.iter_mut().for_each(|writer| writer.largest = 10_000);
        for n in 0..3000 {
            let line = format!("{{\"n\":{n}}}\n");
            let writer = &mut writers[n % 3];
            // A line in two pieces is not cut by a new file.
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
