//! The sources of a project: notices that one of them is another than before, and by its contents, so that a tool which writes
//! the same once more starts nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::{DirEntry, WalkBuilder};

use crate::catalog::watch::{Reach, Watched, Watcher, any_changed};

/// Directories that no source lies in. Names that begin with a dot are left out as well, and what `.gitignore` names.
const LEFT_BY_TOOLS: [&str; 5] = ["target", "node_modules", "build", "dist", "__pycache__"];

/// Files that are compared by their contents; of larger ones, size and time are enough.
const COMPARED: u64 = 4 << 20;

/// Files and directories of one project. Beyond them nothing is noticed.
const MOST: usize = 10_000;

/// How often a project is looked at that cannot be watched.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of a file.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    stamp: (u64, u64, i64, i64),
    digest: Option<blake3::Hash>,
}

/// The sources below a directory.
pub(super) struct Tree {
    root: PathBuf,
    /// What lies there is no source: granted data, components.
    skipped: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Seen>,
    watcher: Option<Watcher>,
    watched: BTreeMap<PathBuf, Watched>,
}

impl Tree {
    /// All of `root` but `skipped`. Looks at it once.
    pub(super) fn new(root: &Path, skipped: Vec<PathBuf>, watcher: Option<Watcher>) -> Self {
        // What holds the whole project cannot be left out of it.
        let skipped = skipped.into_iter().filter(|path| !root.starts_with(path)).collect();
        let mut tree =
            Self { root: root.to_owned(), skipped, files: BTreeMap::new(), watcher, watched: BTreeMap::new() };
        tree.look();
        tree
    }

    /// The files that are others than at the last look, came or went; by their paths below the root.
    pub(super) fn look(&mut self) -> BTreeSet<PathBuf> {
        let (mut files, mut directories) = (BTreeMap::new(), BTreeSet::new());
        for entry in self.walk().take(MOST) {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                directories.insert(entry.into_path());
            } else if meta.is_file() {
                let stamp = (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
                let below = entry.path().strip_prefix(&self.root).unwrap_or(entry.path()).to_owned();
                let seen = match self.files.get(&below) {
                    Some(seen) if seen.stamp == stamp => seen.clone(),
                    _ => Seen { stamp, digest: digest(entry.path(), meta.size()) },
                };
                files.insert(below, seen);
            }
        }
        self.watch(&directories);
        let old = std::mem::replace(&mut self.files, files);
        let is_same = |old: &Seen, new: &Seen| match (&old.digest, &new.digest) {
            (Some(old), Some(new)) => old == new,
            _ => old.stamp == new.stamp,
        };
        let mut changed: BTreeSet<PathBuf> =
            old.keys().filter(|path| !self.files.contains_key(*path)).cloned().collect();
        let differs = |(path, new): &(&PathBuf, &Seen)| !old.get(*path).is_some_and(|old| is_same(old, new));
        changed.extend(self.files.iter().filter(differs).map(|(path, _)| path.clone()));
        changed
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&self) {
        if self.watched.is_empty() {
            return tokio::time::sleep(LOOK).await;
        }
        any_changed(self.watched.values()).await;
    }

    fn walk(&self) -> impl Iterator<Item = DirEntry> {
        let skipped = self.skipped.clone();
        let is_source = move |entry: &DirEntry| {
            let name = entry.file_name().to_string_lossy();
            // What editors make while they save.
            let is_passing = name.ends_with('~') || name == "4913";
            entry.depth() == 0
                || !(is_passing
                    || name == "belljar.lock"
                    || LEFT_BY_TOOLS.contains(&name.as_ref())
                    || skipped.iter().any(|path| path == entry.path()))
        };
        let mut walk = WalkBuilder::new(&self.root);
        // Only the project's own lists count, whatever repository it lies in.
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
            match watcher.watch(directory, Reach::Flat) {
                Ok(watched) => drop(self.watched.insert(directory.clone(), watched)),
                Err(why) => {
                    tracing::warn!("{why}; the project is looked at every {LOOK:?} instead");
                    self.watcher = None;
                    return self.watched.clear();
                }
            }
        }
    }
}

fn digest(path: &Path, size: u64) -> Option<blake3::Hash> {
    if size > COMPARED {
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

    fn changed(tree: &mut Tree) -> Vec<String> {
        tree.look().into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_sources_count_and_only_by_their_contents() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        write(root, ".gitignore", "/made\n*.o\n");
        write(root, "src/a.rs", "1");
        let mut tree = Tree::new(root, vec![root.join("data"), root.to_owned()], None);
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
    async fn a_directory_that_is_new_is_watched_as_well() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let mut tree = Tree::new(root, Vec::new(), Some(Watcher::start().unwrap()));
        write(root, "src/a.rs", "1");
        tree.changed().await;
        while tree.look().is_empty() {
            tree.changed().await;
        }
        write(root, "src/a.rs", "2");
        tree.changed().await;
        assert!(tree.watched.contains_key(&root.join("src")));
        while tree.look() != BTreeSet::from(["src/a.rs".into()]) {
            tree.changed().await;
        }
    }
}
