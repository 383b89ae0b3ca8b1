//! A directory outside of a sandbox, for tests. Like the sandbox, it refuses paths that lead out of it.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use belljar_guest::{Error, Result};

use super::{Entry, Kind, Meta};

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

impl Directory {
    /// A directory of this machine.
    pub fn at(path: &std::path::Path) -> std::io::Result<Self> {
        Ok(Directory(path.canonicalize()?))
    }

    /// The entries of a directory below this one, or of this one for `""`.
    pub(super) fn entries(&self, path: &str) -> Result<impl Iterator<Item = Entry> + use<>> {
        Ok(fs::read_dir(self.within(path)?)?.filter_map(|entry| {
            let entry = entry.ok()?;
            Some(Entry { name: entry.file_name().into_string().ok()?, kind: entry.file_type().ok()?.into() })
        }))
    }

    /// The metadata of a path. Does not open it.
    pub(super) fn meta(&self, path: &str) -> Result<Meta> {
        let metadata = fs::metadata(self.within(path)?)?;
        Ok(Meta { kind: metadata.file_type().into(), size: metadata.len(), modified: metadata.modified().ok() })
    }

    /// The first `length` bytes of a file, or all of a shorter one.
    pub(super) fn read(&self, path: &str, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        fs::File::open(self.within(path)?)?.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
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

impl From<fs::FileType> for Kind {
    fn from(kind: fs::FileType) -> Self {
        if kind.is_symlink() {
            Kind::Symlink
        } else if kind.is_dir() {
            Kind::Directory
        } else if kind.is_file() {
            Kind::File
        } else {
            Kind::Other
        }
    }
}
