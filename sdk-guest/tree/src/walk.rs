//! The order of the list: all files of a tree by the bytes of their paths, from any position on, in memory that depends
//! on the size of a page and not on the size of the tree.
//!
//! That order is the one of a depth-first walk in which a directory is sorted as `name/`. A directory is read as a
//! stream, of which the smallest names after the position are kept: as many as the page can still take. When they are
//! used up and there were more, it is read once more. Directories that lie before the position are not entered.

use belljar_guest::{Error, Result};

use crate::tree::{Entry, Kind, LAST, Tree, smallest};

/// How many entries may be read to no avail before a page is cut short: a page must not cost more because there is
/// little to list. Directories that lead to the position do not count, however large they are, since without them there
/// is no going on.
const BUDGET: usize = 100_000;

/// A walk from one position to the end.
#[derive(Debug)]
pub struct Walk<'t> {
    tree: &'t Tree,
    /// Where the walk began.
    start: String,
    /// All that sorts up to here has been passed. A directory that was passed as a whole is `path/` and [`LAST`].
    position: String,
    /// The directories that the walk is in, the deepest last.
    levels: Vec<Level>,
    /// How many more files are of use.
    wanted: usize,
    examined: usize,
    budget: usize,
    /// Which files are of use, by their names.
    only: fn(&str) -> bool,
}

/// A directory that the walk is in.
#[derive(Debug)]
struct Level {
    /// Its path with a `/` at the end, or `""` for the top.
    prefix: String,
    /// What comes next in it, in descending order.
    next: Vec<Entry>,
    /// There is more than `next`.
    more: bool,
}

/// What a walk came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// A file, or a link that may lead to one.
    File(String),
    /// Much was read and little found: enough for this page. The next one starts here.
    Paused(String),
    /// There is no more.
    End,
}

impl<'t> Walk<'t> {
    /// A walk over the files after `start`, of which about `wanted` will be asked for.
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

    /// The same, over the files whose names are of use.
    pub fn only(mut self, of_use: fn(&str) -> bool) -> Self {
        self.only = of_use;
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

    /// Reads the deepest directory for what comes after the position.
    fn fill(&mut self) -> Result<()> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let entries = match self.tree.entries(level.prefix.trim_end_matches('/')) {
            Ok(entries) => entries,
            // A part that cannot be read is left out; but when the whole cannot, that is the answer.
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
        // A handful at least, so that what turns out to be no file does not cost another reading each.
        let found = smallest(after, self.wanted.max(64));
        level.more = found.seen > found.entries.len();
        level.next = found.entries;
        level.next.reverse();
        if !self.start.starts_with(&level.prefix) {
            self.examined += examined;
        }
        Ok(())
    }

    /// Goes up from the deepest directory, which is done.
    fn leave(&mut self) {
        if let Some(Level { mut prefix, .. }) = self.levels.pop()
            && !prefix.is_empty()
        {
            prefix.push(LAST);
            self.position = prefix;
        }
    }
}

/// Whether an entry, or something in it, comes after `passed`, which is relative to the same directory.
fn comes_after(entry: &Entry, passed: &str) -> bool {
    match entry.kind {
        // In the middle of this directory, unless all of it has been passed.
        Kind::Directory if passed.strip_prefix(&entry.name).is_some_and(|rest| rest.starts_with('/')) => !passed
            .strip_prefix(&entry.name)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest.starts_with(LAST)),
        Kind::Directory => entry.key().as_str() > passed,
        _ => entry.name.as_str() > passed,
    }
}

/// Tells the operator, by way of the host's log.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
fn log(path: &str, error: &Error) {
    eprintln!("left out of the list: \"{path}\": {error}");
}

#[cfg(test)]
mod tests;
