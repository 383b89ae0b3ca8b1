//! Whether a provider that lists page by page gets anywhere. A good one gives other cursors each time and new entries on
//! nearly each page; one that goes in circles, or says nothing in a thousand pages, is stopped long before it has cost much.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::model::Guard;

/// Pages in a row that may bring nothing new. A provider that filters may have some; one that needs more can go on looking
/// within the call.
const BARREN: u32 = 32;

/// Pages that a list may have whatever is on them. Beyond these, it has at least [`PER_PAGE`] new entries on each, on
/// average.
const SPARE: u64 = 256;

/// See [`SPARE`].
const PER_PAGE: u64 = 4;

/// Bytes of a provider's cursor.
const MAX_CURSOR: usize = 4096;

/// How far a provider's list was walked.
#[derive(Default)]
pub struct Paging {
    /// The provider's cursor of the page that comes next.
    cursor: Option<String>,
    /// Hashes of all cursors that it gave.
    cursors: HashSet<u64>,
    hasher: RandomState,
    pages: u32,
    barren: u32,
    entries: u64,
}

impl Paging {
    /// The cursor of the page that comes next.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Pages that were given.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Takes over a page with so many new entries, and the cursor of the next one. Says whether there is a next one.
    ///
    /// # Errors
    /// Why no more of the list is fetched.
    pub fn turn(&mut self, new: usize, next: Option<String>) -> Result<bool, String> {
        self.pages = self.pages.saturating_add(1);
        self.entries = self.entries.saturating_add(new as u64);
        self.barren = if new > 0 { 0 } else { self.barren.saturating_add(1) };
        let Some(next) = next else { return Ok(false) };
        let pages = self.pages;
        if Guard::Cursor.is_on() {
            if next.len() > MAX_CURSOR {
                return Err(format!(
                    "list-resources gave a cursor of {} bytes; at most {MAX_CURSOR} are passed on",
                    next.len()
                ));
            }
            if self.cursor.as_deref() == Some(&*next) {
                return Err("list-resources gave back the cursor that it was given".to_owned());
            }
            if !self.cursors.insert(self.hasher.hash_one(&next)) {
                return Err(format!(
                    "list-resources goes in circles: after {pages} pages it gave a cursor that it had given before"
                ));
            }
            if self.barren >= BARREN {
                return Err(format!(
                    "list-resources does not get on: {BARREN} pages in a row had no new entry that can be served"
                ));
            }
            if u64::from(pages) >= SPARE + self.entries / PER_PAGE {
                return Err(format!(
                    "list-resources does not come to an end: {pages} pages had {} entries; it has to put more on a page",
                    self.entries
                ));
            }
        }
        self.cursor = Some(next);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many pages a provider is stopped; none if it is not within so many.
    fn stopped(most: u32, mut page: impl FnMut(u32) -> (usize, String)) -> Option<u32> {
        let mut paging = Paging::default();
        (0..most).find(|n| {
            let (new, next) = page(*n);
            paging.turn(new, Some(next)).is_err()
        })
    }

    #[test]
    fn circles_of_any_length_end_when_they_close() {
        for length in [1, 2, 3, 7, 100, 1000] {
            for tail in [0, 1, 50] {
                let at = |n: u32| if n < tail { format!("t{n}") } else { format!("c{}", (n - tail) % length) };
                assert_eq!(stopped(10_000, |n| (100, at(n))), Some(tail + length), "{tail} and {length}");
            }
        }
    }

    #[test]
    fn lists_that_bring_nothing_end_soon() {
        assert_eq!(stopped(1000, |n| (0, n.to_string())), Some(BARREN - 1));
        let dripping = |rate: u32| stopped(100_000, |n| (usize::from(n % rate == 0), n.to_string()));
        for rate in [2, 10, BARREN - 1] {
            assert!(dripping(rate).is_some_and(|pages| pages < 600), "{rate}: {:?}", dripping(rate));
        }
        // However much came before.
        assert_eq!(stopped(9000, |n| (if n < 5000 { 1000 } else { 0 }, n.to_string())), Some(5000 + BARREN - 1));
    }

    #[test]
    fn good_lists_are_walked_to_their_end() {
        for (size, pages) in [(1000, 2000), (100, 20_000), (10, 20_000), (5, 20_000), (1, 250)] {
            assert_eq!(stopped(pages, |n| (size, n.to_string())), None, "{size} on a page");
        }
        // A filter that finds something now and then.
        assert_eq!(stopped(20_000, |n| (if n % 20 == 0 { 200 } else { 0 }, n.to_string())), None);
    }

    #[test]
    fn what_is_no_cursor_is_not_passed_on() {
        let mut paging = Paging::default();
        assert_eq!(paging.turn(1, None), Ok(false));
        assert!(paging.turn(1, Some("x".repeat(MAX_CURSOR + 1))).is_err());
        assert_eq!(paging.turn(1, Some("x".repeat(MAX_CURSOR))), Ok(true));
    }
}
