//! The files that a package installs: paths below a prefix such as `/usr`, with their bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

/// The directory of the providers. `belljar add NAME` looks for it beside the directory of the program.
pub(crate) const PROVIDERS: &str = "lib/belljar/providers";

/// A file to install.
#[derive(Clone)]
pub(crate) struct File {
    /// Its bytes.
    pub(crate) bytes: Arc<[u8]>,
    /// True for a program: its mode is 0755. The mode of other files is 0644.
    pub(crate) is_program: bool,
}

/// The files by their paths below the prefix, with `/`. Sorted, because packages have them in this order.
#[derive(Clone, Default)]
pub(crate) struct Tree(BTreeMap<String, File>);

impl Tree {
    /// Adds a file that is no program.
    pub(crate) fn file(&mut self, path: impl Into<String>, bytes: impl Into<Arc<[u8]>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), is_program: false });
    }

    /// Adds a program.
    pub(crate) fn program(&mut self, path: impl Into<String>, bytes: impl Into<Arc<[u8]>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), is_program: true });
    }

    /// Adds each `.wasm` file of a directory as a provider. A directory without such a file is an error.
    pub(crate) fn providers(&mut self, directory: &Path) -> Result<()> {
        let shown = directory.display();
        let cure = "build the providers with `cargo xtask build`, or name another directory with --providers";
        let entries =
            fs::read_dir(directory).with_context(|| format!("cannot read the providers in \"{shown}\": {cure}"))?;
        let before = self.0.len();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "wasm") {
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name.with_context(|| format!("the name of \"{}\" is not UTF-8", path.display()))?;
                let bytes = fs::read(&path).with_context(|| format!("cannot read \"{}\"", path.display()))?;
                self.file(format!("{PROVIDERS}/{name}"), bytes);
            }
        }
        if self.0.len() == before {
            bail!("the directory \"{shown}\" has no .wasm file: {cure}");
        }
        Ok(())
    }

    /// Adds the files of another tree, each path after `prefix`. The prefix is empty or ends with `/`.
    pub(crate) fn tree(&mut self, prefix: &str, other: &Tree) {
        self.0.extend(other.iter().map(|(path, file)| (format!("{prefix}{path}"), file.clone())));
    }

    /// Writes the files below a directory.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        for (path, file) in self.iter() {
            let path = directory.join(path);
            let shown = path.display();
            let parent = path.parent().unwrap_or(directory);
            fs::create_dir_all(parent).with_context(|| format!("cannot create \"{}\"", parent.display()))?;
            fs::write(&path, &file.bytes).with_context(|| format!("cannot write \"{shown}\""))?;
        }
        Ok(())
    }

    /// The files in the order of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The files for which `keeps` is true.
    pub(crate) fn filtered(&self, keeps: impl Fn(&str) -> bool) -> Tree {
        self.renamed(|path| keeps(path).then(|| path.to_owned()))
    }

    /// The files under other paths. A file without a path is left out.
    pub(crate) fn renamed(&self, path: impl Fn(&str) -> Option<String>) -> Tree {
        Tree(self.iter().filter_map(|(old, file)| Some((path(old)?, file.clone()))).collect())
    }

    /// The sum of all sizes, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.0.values().map(|file| file.bytes.len() as u64).sum()
    }
}
