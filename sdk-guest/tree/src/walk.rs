//! The order of the list: all files of a tree sorted by the bytes of their paths, from any position. Memory depends on the
//! size of a page, not of the tree.
//!
//! This is the order of a depth-first walk that sorts a directory as `name/`. A directory is read as a stream, and only the
//! smallest names after the position are kept: as many as still fit on the page. If the walk needs more names, it reads the
//! directory again. It does not enter directories before the position.

use belljar_guest::{Error, Result};

use crate::tree::{Entry, Kind, LAST, Tree, smallest};

/// The most entries without a listed file that are read for one page. It bounds the cost of a page in a tree with few files
/// to list. Directories on the way to the position do not count, because the walk must read them to continue.
const BUDGET: usize = 100_000;

/// A walk from one position to the end.
#[derive(Debug)]
pub struct Walk<'t> {
    tree: &'t Tree,
    /// The start position of the walk.
    start: String,
    /// The position: the walk has passed all paths up to this one. After a whole directory, it is `path/` and [`LAST`].
    position: String,
    /// The current directory and its parents, deepest last.
    levels: Vec<Level>,
    /// The number of files that the page still takes.
    wanted: usize,
    examined: usize,
    budget: usize,
    /// A filter of files by name.
    only: fn(&str) -> bool,
}

/// A directory on the path of the walk.
#[derive(Debug)]
struct Level {
    /// The path with a `/` at the end, or `""` for the top.
    prefix: String,
    /// The next entries, in descending order.
    next: Vec<Entry>,
    /// True if the directory has more entries than `next`.
    more: bool,
}

/// The result of one step of a walk.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The path of a file, or of a link that may lead to one.
    File(String),
    /// The work limit of a page is reached. The next page starts at this position.
    Paused(String),
    /// The end of the tree.
    End,
}

impl<'t> Walk<'t> {
    /// A walk over the files after `start`. `wanted` is the approximate number of files that the caller needs.
    pub fn new(tree: &'t Tree, start: String, wanted: usize) -> Self {
        let top = Level { prefix: String::new(), next: Vec::new(), more: true };
        Walk {
            tree,
            position: start.clone(),
            start,
            levels: vec![top],
            wanted: wanted + 1,
            examined: 0,
            budget: BUDGET,
            only: |_| true,
        }
    }

    /// Restricts the walk to files whose names `is_served` accepts.
    pub fn only(mut self, is_served: fn(&str) -> bool) -> Self {
        self.only = is_served;
        self
    }

    /// The next file.
    #[expect(clippy::should_implement_trait, reason = "an end and an error are not the same")]
    pub fn next(&mut self) -> Result<Step> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(Step::End) };
            let Some(entry) = level.next.pop() else {
                if !level.more {
                    self.leave();
                } else if self.examined > self.budget {
                    return Ok(Step::Paused(self.position.clone()));
                } else {
                    self.fill()?;
                }
                continue;
            };
            let path = format!("{}{}", level.prefix, entry.key());
            match entry.kind {
                Kind::Directory => {
                    if self.position < path {
                        self.position.clone_from(&path);
                    }
                    self.levels.push(Level { prefix: path, next: Vec::new(), more: true });
                }
                Kind::File | Kind::Symlink => {
                    self.position.clone_from(&path);
                    self.wanted = self.wanted.saturating_sub(1);
                    return Ok(Step::File(path));
                }
                Kind::Other => self.position = path,
            }
        }
    }

    /// Reads the entries of the deepest directory after the position.
    fn fill(&mut self) -> Result<()> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let entries = match self.tree.entries(level.prefix.trim_end_matches('/')) {
            Ok(entries) => entries,
            // A directory that cannot be read is skipped, except for the top.
            Err(error) if level.prefix.is_empty() => return Err(error),
            Err(error) => {
                if error != Error::NotFound {
                    log(&level.prefix, &error);
                }
                level.more = false;
                return Ok(());
            }
        };
        let passed = self.position.strip_prefix(&level.prefix).unwrap_or("");
        let mut examined = 0;
        let after = entries
            .inspect(|_| examined += 1)
            .filter(|entry| (entry.kind == Kind::Directory || (self.only)(&entry.name)) && comes_after(entry, passed));
        // Keep at least 64 entries. Otherwise, the walk would read the directory again for each entry that is not a file.
        let found = smallest(after, self.wanted.max(64));
        level.more = found.seen > found.entries.len();
        level.next = found.entries;
        level.next.reverse();
        if !self.start.starts_with(&level.prefix) {
            self.examined += examined;
        }
        Ok(())
    }

    /// Leaves the deepest directory, which is finished.
    fn leave(&mut self) {
        if let Some(Level { mut prefix, .. }) = self.levels.pop()
            && !prefix.is_empty()
        {
            prefix.push(LAST);
            self.position = prefix;
        }
    }
}

/// True if an entry, or anything below it, comes after `passed`, which is relative to the same directory.
fn comes_after(entry: &Entry, passed: &str) -> bool {
    match entry.kind {
        // The position is within this directory, unless the whole directory was passed.
        Kind::Directory if passed.strip_prefix(&entry.name).is_some_and(|rest| rest.starts_with('/')) => !passed
            .strip_prefix(&entry.name)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest.starts_with(LAST)),
        Kind::Directory => entry.key().as_str() > passed,
        _ => entry.name.as_str() > passed,
    }
}

/// Writes a message to the operator: stderr goes to the host's log.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
fn log(path: &str, error: &Error) {
    eprintln!("left out of the list: \"{path}\": {error}");
}

#[cfg(test)]
mod tests;
