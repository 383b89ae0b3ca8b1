//! Detects endless lists of providers. A good provider gives a new cursor with each page, and new entries on nearly
//! every page. One that repeats a cursor, or gives many pages without new entries, is stopped before it costs much.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::model::Guard;

/// The most pages in a row without a new entry. A provider that filters its entries may give such pages; to skip more,
/// it can search on within one call.
const MAX_EMPTY_PAGES: u32 = 32;

/// The number of pages that a list may have with any number of entries. Beyond it, a list needs
/// [`MIN_ENTRIES_PER_PAGE`] new entries per page on average.
const FREE_PAGES: u64 = 256;

/// See [`FREE_PAGES`].
const MIN_ENTRIES_PER_PAGE: u64 = 4;

/// The longest cursor of a provider, in bytes.
pub(super) const MAX_CURSOR: usize = 4096;

/// Why the rest of a provider's list is not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PagingError {
    /// A cursor is too long.
    #[error("list-resources gave a cursor of {bytes} bytes; the limit is {MAX_CURSOR}")]
    LongCursor {
        /// The length of the cursor, in bytes.
        bytes: usize,
    },
    /// The next cursor of a page is the cursor of the same page.
    #[error("list-resources gave back the cursor that it was given")]
    SameCursor,
    /// The next cursor of a page is the cursor of an earlier page.
    #[error("list-resources goes in circles: after {pages} pages it gave a cursor that it had given before")]
    Circle {
        /// Pages so far.
        pages: u32,
    },
    /// Too many pages in a row have no new entry.
    #[error("list-resources makes no progress: {MAX_EMPTY_PAGES} pages in a row had no new entry that can be served")]
    NoProgress,
    /// The pages have too few entries.
    #[error("list-resources does not end: {pages} pages had only {entries} entries; put more entries on a page")]
    Endless {
        /// Pages so far.
        pages: u32,
        /// Entries on them.
        entries: u64,
    },
}

/// The position in a provider's list, and its history.
#[derive(Default)]
pub struct Paging {
    /// The provider's cursor of the next page.
    cursor: Option<String>,
    /// Hashes of all cursors of this list.
    cursors: HashSet<u64>,
    hasher: RandomState,
    pages: u32,
    /// The number of pages in a row without a new entry.
    empty_pages: u32,
    entries: u64,
}

impl Paging {
    /// The cursor of the next page.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The number of pages so far.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Counts a page with `new` new entries and the cursor `next`. Returns true if there is a next page.
    ///
    /// # Errors
    /// If the rest of the list must not be fetched.
    pub fn count_page(&mut self, new: usize, next: Option<String>) -> Result<bool, PagingError> {
        self.pages = self.pages.saturating_add(1);
        self.entries = self.entries.saturating_add(new as u64);
        self.empty_pages = if new > 0 { 0 } else { self.empty_pages.saturating_add(1) };
        let Some(next) = next else { return Ok(false) };
        let pages = self.pages;
        if Guard::Cursor.is_on() {
            if next.len() > MAX_CURSOR {
                return Err(PagingError::LongCursor { bytes: next.len() });
            }
            if self.cursor.as_deref() == Some(&*next) {
                return Err(PagingError::SameCursor);
            }
            if !self.cursors.insert(self.hasher.hash_one(&next)) {
                return Err(PagingError::Circle { pages });
            }
            if self.empty_pages >= MAX_EMPTY_PAGES {
                return Err(PagingError::NoProgress);
            }
            if u64::from(pages) >= FREE_PAGES + self.entries / MIN_ENTRIES_PER_PAGE {
                return Err(PagingError::Endless { pages, entries: self.entries });
            }
        }
        self.cursor = Some(next);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of pages after which a provider is stopped. `None` if it is not stopped within `most` pages.
    fn stopped(most: u32, mut page: impl FnMut(u32) -> (usize, String)) -> Option<u32> {
        let mut paging = Paging::default();
        (0..most).find(|n| {
            let (new, next) = page(*n);
            paging.count_page(new, Some(next)).is_err()
        })
    }

    #[test]
    fn circles_of_any_length_are_detected_at_the_first_repetition() {
        for length in [1, 2, 3, 7, 100, 1000] {
            for tail in [0, 1, 50] {
                let at = |n: u32| if n < tail { format!("t{n}") } else { format!("c{}", (n - tail) % length) };
                assert_eq!(stopped(10_000, |n| (100, at(n))), Some(tail + length), "{tail} and {length}");
            }
        }
    }

    #[test]
    fn lists_without_new_entries_end_soon() {
        assert_eq!(stopped(1000, |n| (0, n.to_string())), Some(MAX_EMPTY_PAGES - 1));
        let dripping = |rate: u32| stopped(100_000, |n| (usize::from(n % rate == 0), n.to_string()));
        for rate in [2, 10, MAX_EMPTY_PAGES - 1] {
            assert!(dripping(rate).is_some_and(|pages| pages < 600), "{rate}: {:?}", dripping(rate));
        }
        // Earlier full pages do not help.
        assert_eq!(
            stopped(9000, |n| (if n < 5000 { 1000 } else { 0 }, n.to_string())),
            Some(5000 + MAX_EMPTY_PAGES - 1)
        );
    }

    #[test]
    fn good_lists_are_fetched_completely() {
        for (size, pages) in [(1000, 2000), (100, 20_000), (10, 20_000), (5, 20_000), (1, 250)] {
            assert_eq!(stopped(pages, |n| (size, n.to_string())), None, "{size} on a page");
        }
        // A filter that finds entries on every twentieth page.
        assert_eq!(stopped(20_000, |n| (if n % 20 == 0 { 200 } else { 0 }, n.to_string())), None);
    }

    #[test]
    fn a_cursor_that_is_too_long_is_refused() {
        let mut paging = Paging::default();
        assert_eq!(paging.count_page(1, None), Ok(false));
        assert!(paging.count_page(1, Some("x".repeat(MAX_CURSOR + 1))).is_err());
        assert_eq!(paging.count_page(1, Some("x".repeat(MAX_CURSOR))), Ok(true));
    }
}
