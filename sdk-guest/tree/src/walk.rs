//! The order of the list: all files of a tree sorted by the bytes of their paths, from any position. Memory depends on the
//! size of a page, not of the tree.
//!
//! This is the order of a depth-first walk that sorts a directory as `name/`. A directory is read as a stream, and only the
//! smallest names after the position are kept: as many as still fit on the page. If the walk needs more names, it reads the
//! directory again. It does not enter directories before the position.
//!
//! A directory of more entries than are sorted comes in the order of its file system, and is never read again; see `below`.

use belljar_guest::{Error, Result};

use crate::below::First;
use crate::tree::{Entry, Kind, LAST, Tree, smallest};

/// The most entries without a listed file that are read for one page. It bounds the cost of a page in a tree with few files
/// to list. Directories on the way to the position do not count, because the walk must read them to continue.
const BUDGET: usize = 100_000;

/// A walk from one position to the end.
#[derive(Debug)]
pub struct Walk<'t> {
    tree: &'t Tree,
    /// The path at which the walk starts.
    start: String,
    /// Where to continue in directories on the way to `start` that are not sorted: depth and position.
    starts: Vec<(usize, u64)>,
    /// The walk has passed this path. In sorted directories, it has passed all before it, too. After a whole directory, it
    /// is `path/` and [`LAST`].
    passed: String,
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
    /// The next entries, in reverse order, each with the file system's position after it.
    next: Vec<(Entry, u64)>,
    /// True if the directory has more entries than `next`.
    more: bool,
    order: Order,
}

/// The order of a directory.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// Not read yet.
    Unread,
    Sorted,
    Stored {
        /// Where the next entries are read.
        from: u64,
        /// The position after the last entry that was passed whole.
        passed: u64,
        /// The position after the entry that the walk is at, or in.
        current: u64,
    },
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

/// Separates the path of a position from the positions of the file system. No path contains it.
const SEPARATOR: char = '\0';

impl<'t> Walk<'t> {
    /// A walk over the files after `start`: a path, or a [`position`](Walk::position). `wanted` is the approximate number of
    /// files that the caller needs.
    pub fn new(tree: &'t Tree, start: String, wanted: usize) -> Self {
        let mut parts = start.split(SEPARATOR);
        let path = parts.next().unwrap_or_default().to_owned();
        let parsed = |part: &str| {
            let (depth, position) = part.split_once(':')?;
            Some((depth.parse().ok()?, u64::from_str_radix(position, 16).ok()?))
        };
        let starts = parts.filter_map(parsed).collect();
        Walk {
            tree,
            passed: path.clone(),
            start: path,
            starts,
            levels: vec![Level::at(String::new())],
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

    /// The position after the last file, where another walk can start. Often its path.
    pub fn position(&self) -> String {
        let mut position = self.passed.clone();
        for (depth, level) in self.levels.iter().enumerate() {
            if let Order::Stored { passed, .. } = level.order {
                position.push_str(&format!("{SEPARATOR}{depth}:{passed:x}"));
            }
        }
        position
    }

    /// The next file.
    #[expect(clippy::should_implement_trait, reason = "an end and an error are not the same")]
    pub fn next(&mut self) -> Result<Step> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(Step::End) };
            let Some((entry, after)) = level.next.pop() else {
                if !level.more {
                    self.leave();
                } else if self.examined > self.budget {
                    return Ok(Step::Paused(self.position()));
                } else {
                    self.fill()?;
                }
                continue;
            };
            let path = format!("{}{}", level.prefix, entry.key());
            level.order.enter(after);
            if entry.kind == Kind::Directory {
                // Keeps a position within this directory.
                if !self.passed.starts_with(&path) {
                    self.passed.clone_from(&path);
                }
                self.levels.push(Level::at(path));
                continue;
            }
            level.order.pass();
            self.passed.clone_from(&path);
            if entry.kind != Kind::Other {
                self.wanted = self.wanted.saturating_sub(1);
                return Ok(Step::File(path));
            }
        }
    }

    /// Reads the entries of the deepest directory after the position.
    fn fill(&mut self) -> Result<()> {
        let depth = self.levels.len().saturating_sub(1);
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let path = level.prefix.trim_end_matches('/');
        // Keep at least 64 entries. Otherwise, the walk would read the directory again for each entry that is not a file.
        let most = self.wanted.max(64);
        let passed = self.passed.strip_prefix(&level.prefix).unwrap_or("");
        if let (Order::Unread, Some((_, from))) = (level.order, self.starts.iter().find(|(at, _)| *at == depth))
            && self.start.starts_with(&level.prefix)
        {
            level.order = Order::stored(*from);
        }
        let only = self.only;
        let keep = |entry: &Entry| entry.kind == Kind::Directory || only(&entry.name);
        let sorted = match level.order {
            Order::Stored { .. } => Ok(First::Stored),
            Order::Unread if passed.is_empty() => self.tree.first(path, most, keep),
            Order::Unread | Order::Sorted => self.tree.entries(path).map(|entries| {
                let mut examined = 0;
                let entries = entries.inspect(|_| examined += 1);
                let found = smallest(entries.filter(|entry| keep(entry) && comes_after(entry, passed)), most);
                First::Sorted(found, examined)
            }),
        };
        let read = sorted.and_then(|first| match first {
            First::Sorted(found, examined) => {
                level.order = Order::Sorted;
                level.more = found.seen > found.entries.len();
                level.next = found.entries.into_iter().rev().map(|entry| (entry, 0)).collect();
                Ok(examined)
            }
            First::Stored => {
                if !matches!(level.order, Order::Stored { .. }) {
                    level.order = Order::stored(0);
                }
                level.fill_stored(self.tree, most, keep)
            }
        });
        match read {
            Ok(examined) => {
                if !self.start.starts_with(&level.prefix) {
                    self.examined += examined;
                }
                Ok(())
            }
            // A directory that cannot be read is skipped, except for the top.
            Err(error) if level.prefix.is_empty() => Err(error),
            Err(error) => {
                if error != Error::NotFound {
                    log(&level.prefix, &error);
                }
                level.more = false;
                Ok(())
            }
        }
    }

    /// Leaves the deepest directory, which is finished.
    fn leave(&mut self) {
        if let Some(Level { mut prefix, .. }) = self.levels.pop()
            && !prefix.is_empty()
        {
            prefix.push(LAST);
            self.passed = prefix;
        }
        if let Some(parent) = self.levels.last_mut() {
            parent.order.pass();
        }
    }
}

impl Level {
    fn at(prefix: String) -> Self {
        Level { prefix, next: Vec::new(), more: true, order: Order::Unread }
    }

    /// Reads the next entries in the order of the file system. Returns their number.
    fn fill_stored(&mut self, tree: &Tree, most: usize, keep: impl Fn(&Entry) -> bool) -> Result<usize> {
        let Order::Stored { from, .. } = &mut self.order else { return Ok(0) };
        let chunk = tree.stored(self.prefix.trim_end_matches('/'), *from, most)?;
        let chunk = chunk.ok_or_else(|| {
            Error::invalid("this host cannot continue at a position: list the files from the beginning")
        })?;
        self.more = chunk.next.is_some();
        *from = chunk.next.unwrap_or(*from);
        let examined = chunk.entries.len();
        self.next = chunk.entries;
        self.next.reverse();
        // The walk has to pass the other entries, because it counts positions.
        self.next.iter_mut().filter(|(entry, _)| !keep(entry)).for_each(|(entry, _)| entry.kind = Kind::Other);
        Ok(examined)
    }
}

impl Order {
    /// The order of the file system, from a position.
    fn stored(from: u64) -> Self {
        Order::Stored { from, passed: from, current: from }
    }

    /// The walk comes to the entry before the position `after`.
    fn enter(&mut self, after: u64) {
        if let Order::Stored { current, .. } = self {
            *current = after;
        }
    }

    /// The walk has passed the entry that it came to.
    fn pass(&mut self) {
        if let Order::Stored { passed, current, .. } = self {
            *passed = *current;
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
