//! The sources of a project. Notices changes of their contents: a tool that writes the same contents again starts no
//! build.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::{DirEntry, WalkBuilder};

use crate::catalog::watch::{DirectoryWatch, WatchDepth, Watcher, any_changed};

/// Directories without sources. Names that begin with a dot and the paths in `.gitignore` are skipped too.
const TOOL_OUTPUT: [&str; 5] = ["target", "node_modules", "build", "dist", "__pycache__"];

/// Files up to this size, in bytes, are compared by their contents. Larger ones are compared by inode, size and time.
const MAX_HASHED_BYTES: u64 = 4 << 20;

/// The most files and directories of one project. Changes in further ones are not noticed.
const MAX_ENTRIES: usize = 10_000;

/// How often a project is scanned if its directories cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a file at the last scan.
#[derive(Clone, PartialEq, Eq)]
struct FileState {
    /// Inode, size, and modification time in seconds and nanoseconds.
    stamp: (u64, u64, i64, i64),
    /// The hash of the contents; `None` for a large or unreadable file.
    digest: Option<blake3::Hash>,
}

/// The sources below a directory.
pub(super) struct SourceTree {
    root: PathBuf,
    /// Directories without sources: granted data, built components.
    skipped: Vec<PathBuf>,
    files: BTreeMap<PathBuf, FileState>,
    watcher: Option<Watcher>,
    watched: BTreeMap<PathBuf, DirectoryWatch>,
}

impl SourceTree {
    /// All files of `root` except those in `skipped`. Scans them once.
    pub(super) fn new(root: &Path, skipped: Vec<PathBuf>, watcher: Option<Watcher>) -> Self {
        // A skipped directory that contains the whole project would leave no sources, so it does not count.
        let skipped = skipped.into_iter().filter(|path| !root.starts_with(path)).collect();
        let mut tree =
            Self { root: root.to_owned(), skipped, files: BTreeMap::new(), watcher, watched: BTreeMap::new() };
        tree.scan();
        tree
    }

    /// The files that were changed, added or removed since the last scan, by their paths below the root.
    pub(super) fn scan(&mut self) -> BTreeSet<PathBuf> {
        let (mut files, mut directories) = (BTreeMap::new(), BTreeSet::new());
        for entry in self.walk().take(MAX_ENTRIES) {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                directories.insert(entry.into_path());
            } else if meta.is_file() {
                let stamp = (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
                let below = entry.path().strip_prefix(&self.root).unwrap_or(entry.path()).to_owned();
                let state = match self.files.get(&below) {
                    Some(state) if state.stamp == stamp => state.clone(),
                    _ => FileState { stamp, digest: digest(entry.path(), meta.size()) },
                };
                files.insert(below, state);
            }
        }
        self.watch(&directories);
        let old = std::mem::replace(&mut self.files, files);
        let is_same = |old: &FileState, new: &FileState| match (&old.digest, &new.digest) {
            (Some(old), Some(new)) => old == new,
            _ => old.stamp == new.stamp,
        };
        let mut changed: BTreeSet<PathBuf> =
            old.keys().filter(|path| !self.files.contains_key(*path)).cloned().collect();
        let differs = |(path, new): &(&PathBuf, &FileState)| !old.get(*path).is_some_and(|old| is_same(old, new));
        changed.extend(self.files.iter().filter(differs).map(|(path, _)| path.clone()));
        changed
    }

    /// Waits until a source may have changed.
    pub(super) async fn changed(&self) {
        if self.watched.is_empty() {
            return tokio::time::sleep(POLL_INTERVAL).await;
        }
        any_changed(self.watched.values()).await;
    }

    fn walk(&self) -> impl Iterator<Item = DirEntry> {
        let skipped = self.skipped.clone();
        let is_source = move |entry: &DirEntry| {
            let name = entry.file_name().to_string_lossy();
            // Editors create these while they save; Vim tests with a file "4913" whether it can write.
            let is_temporary = name.ends_with('~') || name == "4913";
            entry.depth() == 0
                || !(is_temporary
                    || name == "belljar.lock"
                    || TOOL_OUTPUT.contains(&name.as_ref())
                    || skipped.iter().any(|path| path == entry.path()))
        };
        let mut walk = WalkBuilder::new(&self.root);
        // Only the project's own `.gitignore` files count, even if the project is part of a larger repository.
        walk.parents(false).require_git(false).git_global(false).git_exclude(false).ignore(false);
        walk.filter_entry(is_source).build().flatten()
    }

    fn watch(&mut self, directories: &BTreeSet<PathBuf>) {
        let Some(watcher) = &self.watcher else { return };
        self.watched.retain(|path, _| directories.contains(path));
        for directory in directories {
            if self.watched.contains_key(directory) {
                continue;
            }
            match watcher.watch(directory, WatchDepth::Flat) {
                Ok(watched) => drop(self.watched.insert(directory.clone(), watched)),
                Err(why) => {
                    tracing::warn!("{why}; the project is scanned every {POLL_INTERVAL:?} instead");
                    self.watcher = None;
                    return self.watched.clear();
                }
            }
        }
    }
}

fn digest(path: &Path, size: u64) -> Option<blake3::Hash> {
    if size > MAX_HASHED_BYTES {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "the author's sources")]
    std::fs::read(path).ok().map(|bytes| blake3::hash(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn changed(tree: &mut SourceTree) -> Vec<String> {
        tree.scan().into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_sources_count_and_only_by_their_contents() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        write(root, ".gitignore", "/made\n*.o\n");
        write(root, "src/a.rs", "1");
        let mut tree = SourceTree::new(root, vec![root.join("data"), root.to_owned()], None);
        assert_eq!(changed(&mut tree), Vec::<String>::new());
        for quiet in [
            "target/x",
            "node_modules/a/b.js",
            "build/x.wasm",
            "made/x",
            "src/x.o",
            "data/a.md",
            "src/.a.rs.swp",
            ".git/index",
            "src/a.rs~",
            "4913",
            "belljar.lock",
        ] {
            write(root, quiet, "x");
            assert_eq!(changed(&mut tree), Vec::<String>::new(), "{quiet}");
        }
        write(root, "src/a.rs", "1");
        assert_eq!(changed(&mut tree), Vec::<String>::new(), "the same once more");
        write(root, "src/a.rs", "2");
        write(root, "src/deep/b.rs", "1");
        assert_eq!(changed(&mut tree), ["src/a.rs", "src/deep/b.rs"]);
        std::fs::rename(root.join("src/deep"), root.join("src/other")).unwrap();
        assert_eq!(changed(&mut tree), ["src/deep/b.rs", "src/other/b.rs"]);
    }

    #[tokio::test]
    async fn a_new_directory_is_watched() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let mut tree = SourceTree::new(root, Vec::new(), Some(Watcher::start().unwrap()));
        write(root, "src/a.rs", "1");
        tree.changed().await;
        while tree.scan().is_empty() {
            tree.changed().await;
        }
        write(root, "src/a.rs", "2");
        tree.changed().await;
        assert!(tree.watched.contains_key(&root.join("src")));
        while tree.scan() != BTreeSet::from(["src/a.rs".into()]) {
            tree.changed().await;
        }
    }
}
