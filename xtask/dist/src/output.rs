//! The directory of the packages, and its `SHA256SUMS`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};

use crate::digest;

/// The name of the file with the digest of each package.
const SUMS: &str = "SHA256SUMS";

/// The directory of the packages. Several threads write into it.
pub(crate) struct Output {
    directory: PathBuf,
    /// The digests of the written files, by name.
    sums: Mutex<BTreeMap<String, String>>,
}

impl Output {
    /// Creates the directory. Removes the files of an earlier run: those that its `SHA256SUMS` lists. Other files are an error,
    /// because they would look like packages.
    pub(crate) fn create(directory: &Path) -> Result<Output> {
        let shown = directory.display();
        fs::create_dir_all(directory).with_context(|| format!("cannot create the directory \"{shown}\""))?;
        for path in stale(directory)? {
            fs::remove_file(&path).with_context(|| format!("cannot remove \"{}\"", path.display()))?;
        }
        Ok(Output { directory: directory.to_path_buf(), sums: Mutex::default() })
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write \"{}\"", path.display()))?;
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.insert(name.to_owned(), digest::hex(bytes));
        Ok(())
    }

    /// Removes the written files, after an error. Otherwise the next run would take them for files of somebody else.
    pub(crate) fn discard(self) {
        for name in self.sums.into_inner().unwrap_or_else(PoisonError::into_inner).keys() {
            // The error that is reported is the first one.
            drop(fs::remove_file(self.directory.join(name)));
        }
    }

    /// Writes `SHA256SUMS` in the format of `sha256sum`. Returns the names of all files, sorted.
    pub(crate) fn finish(self) -> Result<Vec<String>> {
        let sums = self.sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        let text: String = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
        let path = self.directory.join(SUMS);
        fs::write(&path, text).with_context(|| format!("cannot write \"{}\"", path.display()))?;
        let mut names: Vec<String> = sums.into_keys().chain([SUMS.to_owned()]).collect();
        names.sort();
        Ok(names)
    }
}

/// The files of an earlier run in a directory, which may not exist. A file that is no package is an error.
pub(crate) fn stale(directory: &Path) -> Result<Vec<PathBuf>> {
    let shown = directory.display();
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let sums = fs::read_to_string(directory.join(SUMS)).unwrap_or_default();
    let earlier: Vec<&str> = sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name).collect();
    let mut stale = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read the directory \"{shown}\""))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != SUMS && !earlier.contains(&name.as_str()) {
            bail!("the directory \"{shown}\" holds another file, \"{name}\": name an empty directory with --output");
        }
        stale.push(directory.join(name));
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_leaves_no_files() {
        let place = tempfile::tempdir().unwrap();
        let failed = Output::create(place.path()).unwrap();
        failed.write("a", b"1").unwrap();
        failed.discard();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_files_of_an_earlier_run_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let first = Output::create(place.path()).unwrap();
        first.write("a", b"1").unwrap();
        assert_eq!(first.finish().unwrap(), [SUMS, "a"]);
        let second = Output::create(place.path()).unwrap();
        assert!(!place.path().join("a").exists());
        second.write("b", b"2").unwrap();
        second.finish().unwrap();
        fs::write(place.path().join("mine"), "3").unwrap();
        let error = Output::create(place.path()).err().unwrap().to_string();
        assert!(error.contains("\"mine\"") && error.contains("--output"), "{error}");
        assert!(place.path().join("b").exists() && place.path().join("mine").exists());
    }
}
