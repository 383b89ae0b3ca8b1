//! The entries of one directory, by pages.
//!
//! A page of a sorted directory needs all names, so it costs as much as the directory is large. That is no way through a
//! million entries. Hence a directory of more than [`SORTED`] entries comes in the order of its file system, if the host
//! can continue at a position.

use belljar_guest::{Error, Result, reference};

use crate::tree::{Entry, Smallest, Tree};

/// The most entries of a directory that is sorted. Reading so many names takes about 20 milliseconds.
pub(crate) const SORTED: usize = 20_000;

/// Where a page of a directory starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first entry.
    #[default]
    Beginning,
    /// After the entry with this key, in the order of keys.
    After(String),
    /// At a position that the file system gave.
    Position(u64),
}

/// One page of a directory.
#[derive(Debug, Default)]
pub struct Below {
    /// The entries of the page.
    pub entries: Vec<Entry>,
    /// The start of the next page.
    pub next: Option<Start>,
    /// The number of entries after this page, if it is known.
    pub left: Option<usize>,
    /// The number of names that no reference can hold, among the names that were read for this page.
    pub unnamed: usize,
    /// The position after each entry, if the entries are in the order of the file system.
    positions: Vec<u64>,
}

/// The first entries of a directory.
pub(crate) enum First {
    /// The smallest ones, and the number of entries that were read.
    Sorted(Smallest, usize),
    /// The directory is large, and can be read from a position.
    Stored,
}

impl Start {
    /// The text of this start, for a cursor or a query. It has only characters that a query value may have.
    pub fn text(&self) -> String {
        match self {
            Start::Beginning => String::new(),
            Start::After(key) => reference::encode(key).replace('&', "%26"),
            // No encoded key contains a question mark.
            Start::Position(position) => format!("?{position:x}"),
        }
    }

    /// Parses a text of [`Start::text`].
    pub fn parse(text: &str) -> Result<Self> {
        match text.strip_prefix('?') {
            _ if text.is_empty() => Ok(Start::Beginning),
            None => Ok(Start::After(reference::decode(text)?)),
            Some(digits) => u64::from_str_radix(digits, 16).map(Start::Position).map_err(|_| {
                Error::invalid(format_args!("\"{text}\" is no position: expected one from an earlier page"))
            }),
        }
    }
}

impl Below {
    /// The start of a page that begins after the entry at this index of `entries`.
    pub fn after(&self, index: usize) -> Start {
        match (self.positions.get(index), self.entries.get(index)) {
            (Some(position), _) => Start::Position(*position),
            (None, Some(entry)) => Start::After(entry.key()),
            (None, None) => Start::Beginning,
        }
    }
}

impl Tree {
    /// At most `count` entries of a directory.
    pub fn below(&self, path: &str, start: &Start, count: usize) -> Result<Below> {
        let before = self.unnamed();
        let mut page = match start {
            Start::Position(position) => self.stored_page(path, *position, count)?.ok_or_else(|| {
                Error::invalid("this host cannot continue at a position: list the directory from its beginning")
            })?,
            Start::After(key) => sorted_page(crate::smallest(
                self.entries(path)?.filter(|entry| entry.key().as_str() > key.as_str()),
                count,
            )),
            Start::Beginning => match self.first(path, count, |_| true)? {
                First::Sorted(found, _) => sorted_page(found),
                First::Stored => self.stored_page(path, 0, count)?.unwrap_or_default(),
            },
        };
        page.unnamed = self.unnamed() - before;
        Ok(page)
    }

    /// The smallest entries that `keep` accepts, unless the directory is large and can be read from a position.
    pub(crate) fn first(&self, path: &str, count: usize, keep: impl Fn(&Entry) -> bool) -> Result<First> {
        let (mut found, mut examined, mut seekable) = (Smallest::default(), 0, None);
        for entry in self.entries(path)? {
            examined += 1;
            if examined > self.sorted && seekable.is_none() {
                match self.stored(path, 0, 1)? {
                    Some(_) => return Ok(First::Stored),
                    None => seekable = Some(false),
                }
            }
            if keep(&entry) {
                found.add(entry, count);
            }
        }
        Ok(First::Sorted(found.sorted(), examined))
    }

    fn stored_page(&self, path: &str, position: u64, count: usize) -> Result<Option<Below>> {
        let mut page = Below::default();
        let mut position = position;
        loop {
            let Some(chunk) = self.stored(path, position, count - page.entries.len())? else { return Ok(None) };
            for (entry, after) in chunk.entries {
                page.entries.push(entry);
                page.positions.push(after);
            }
            match chunk.next {
                None => return Ok(Some(page)),
                Some(next) if page.entries.len() >= count => {
                    page.next = Some(Start::Position(next));
                    return Ok(Some(page));
                }
                Some(next) => position = next,
            }
        }
    }
}

fn sorted_page(found: Smallest) -> Below {
    let left = found.seen - found.entries.len();
    let next = found.entries.last().filter(|_| left > 0).map(|last| Start::After(last.key()));
    Below { entries: found.entries, next, left: Some(left), ..Below::default() }
}

#[cfg(test)]
mod tests;
