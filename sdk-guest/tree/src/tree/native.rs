//! A directory outside of a sandbox, for tests. Like the sandbox, it refuses paths that lead out of it.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use belljar_guest::{Error, Result};

use super::{Chunk, Entry, Found, Meta};
use crate::part::Seekable;

/// A directory.
#[derive(Debug)]
pub struct Directory(PathBuf);

/// A file that can be read from any position.
pub type File = fs::File;

/// Always empty: outside of a sandbox, there are no grants.
pub fn granted() -> Vec<(String, Directory)> {
    Vec::new()
}

/// Always empty: outside of a sandbox, there are no grants.
pub fn granted_paths() -> Vec<String> {
    Vec::new()
}

impl Seekable for File {
    fn read_at(&self, position: u64, length: u64) -> Result<Vec<u8>> {
        let mut file = self;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(position))?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn state(&self) -> Result<Meta> {
        Ok(self.metadata()?.into())
    }
}

impl Directory {
    /// A directory of this machine.
    pub fn at(path: &std::path::Path) -> std::io::Result<Self> {
        Ok(Directory(path.canonicalize()?))
    }

    /// The entries of a directory below this one, or of this one for `""`.
    pub(super) fn entries(&self, path: &str) -> Result<impl Iterator<Item = Found> + use<>> {
        Ok(fs::read_dir(self.within(path)?)?.filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?.into();
            Some(entry.file_name().into_string().map_or(Found::Unnamed, |name| Found::Entry(Entry { name, kind })))
        }))
    }

    /// Entries from a position: the number of entries before it. Good enough while a directory does not change.
    pub(super) fn stored(&self, path: &str, position: u64, most: usize) -> Result<Option<Chunk<Found>>> {
        let numbered = (1..).zip(self.entries(path)?).map(|(after, found)| (found, after));
        let mut rest = numbered.skip(usize::try_from(position).unwrap_or(usize::MAX));
        let entries: Vec<(Found, u64)> = rest.by_ref().take(most).collect();
        let next = rest.next().and(entries.last().map(|(_, after)| *after));
        Ok(Some(Chunk { entries, next }))
    }

    /// The metadata of a path. Does not open it.
    pub(super) fn meta(&self, path: &str) -> Result<Meta> {
        Ok(fs::metadata(self.within(path)?)?.into())
    }

    pub(super) fn file(&self, path: &str) -> Result<File> {
        Ok(fs::File::open(self.within(path)?)?)
    }

    fn within(&self, path: &str) -> Result<PathBuf> {
        let path = self.0.join(path).canonicalize()?;
        if path.starts_with(&self.0) {
            Ok(path)
        } else {
            Err(Error::denied("the path leads out of the granted directory"))
        }
    }
}
