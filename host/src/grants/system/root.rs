//! Reads files of the kernel below a root, each at most to a bound. The root is `/`, except in tests.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::CollectError;
use crate::model::text::is_visible;

/// The most bytes of one file. The table of mounts of a machine with thousands of containers has a few hundred
/// kilobytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The most bytes of a file with one value.
const MAX_VALUE_BYTES: u64 = 4 << 10;

/// The most entries of one directory.
const MAX_ENTRIES: usize = 65_536;

/// The directory that contains `proc` and `sys`.
#[derive(Clone)]
pub(super) struct SystemRoot(PathBuf);

impl SystemRoot {
    pub(super) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The bytes of a file of the kernel. Its path is relative.
    pub(super) fn read(&self, file: &str) -> Result<Vec<u8>, CollectError> {
        self.read_at_most(file, MAX_FILE_BYTES)
            .map_err(|error| CollectError::Unreadable { file: file.to_owned(), error })
    }

    /// At most `most` bytes of a file.
    pub(super) fn read_at_most(&self, file: &str, most: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "a file of the kernel, at a path that belljar wrote")]
        File::open(self.0.join(file))?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The line of a small file, cleaned. `None` if there is no such file, or it is empty.
    pub(super) fn value(&self, file: &str) -> Option<String> {
        let bytes = self.read_at_most(file, MAX_VALUE_BYTES).ok()?;
        let line = cleaned(bytes.trim_ascii(), 200);
        (!line.is_empty()).then_some(line)
    }

    /// The number in a small file.
    pub(super) fn number<N: std::str::FromStr>(&self, file: &str) -> Option<N> {
        self.value(file)?.parse().ok()
    }

    /// The names in a directory that are UTF-8, sorted. None if there is no such directory.
    pub(super) fn names(&self, directory: &str) -> Vec<String> {
        #[expect(clippy::disallowed_methods, reason = "a directory of the kernel, at a path that belljar wrote")]
        let Ok(entries) = std::fs::read_dir(self.0.join(directory)) else { return Vec::new() };
        let named = entries.take(MAX_ENTRIES).flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = named.collect();
        names.sort_unstable();
        names
    }

    /// True if there is such a file or directory.
    pub(super) fn has(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }
}

/// Text that another user chose, on one line: what is not UTF-8, and what controls a terminal, becomes `�`. At most `most`
/// characters.
pub(super) fn cleaned(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(most).map(|c| if is_visible(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}
