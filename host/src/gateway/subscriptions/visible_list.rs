//! What a principal that sees a part of a mount saw of its list, as hashes.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::{Arc, LazyLock};

use crate::catalog::CachedListing;
use crate::catalog::listing::Listed;
use crate::model::{Resource, Template};
use crate::policy::{AccessClass, Visibility};

/// The most entries of a list that are looked at.
const COMPARED_ENTRIES: usize = 10_000;

/// When more classes than these are remembered, those without a subscriber are forgotten.
const MAX_CLASSES: usize = 64;

/// Entries that are copied at once, so that nobody who adds to the list waits for policy.
const CHUNK: usize = 256;

/// The hashes of entries are compared within this process only.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A mount's cached lists.
pub(in crate::gateway) type PolledListings = (Arc<CachedListing<Resource>>, Arc<CachedListing<Template>>);

/// What the principals of one class see of a mount's list.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::gateway) struct VisibleList {
    base: String,
    resources: VisibleEntries,
    templates: VisibleEntries,
}

/// The hashes of visible entries, in their order.
#[derive(Debug, PartialEq, Eq)]
struct VisibleEntries {
    hashes: Vec<u32>,
    /// True if there are no more.
    is_whole: bool,
}

impl VisibleEntries {
    fn of<T: Listed>(listing: &CachedListing<T>, visible: &Visibility) -> Self {
        let mut hashes = Vec::new();
        for from in (0..COMPARED_ENTRIES).step_by(CHUNK) {
            let (entries, is_whole) = listing.hashes(from, CHUNK, &*HASHER);
            let is_end = is_whole || entries.len() < CHUNK;
            let shown = entries.into_iter().filter(|(name, _)| T::is_visible(name, visible));
            #[expect(
                clippy::cast_possible_truncation,
                reason = "32 bits suffice: nobody chooses entries by their hashes"
            )]
            hashes.extend(shown.map(|(_, hash)| hash as u32));
            if is_end {
                return Self { hashes, is_whole };
            }
        }
        Self { hashes, is_whole: false }
    }

    /// True if both cannot be the beginning of the same list. How much of a list was fetched depends on hidden entries too,
    /// so it is no difference.
    fn differs(&self, other: &Self) -> bool {
        let common = self.hashes.len().min(other.hashes.len());
        self.hashes.get(..common) != other.hashes.get(..common)
            || (self.hashes.len() > common && other.is_whole)
            || (other.hashes.len() > common && self.is_whole)
    }
}

impl VisibleList {
    /// What `visible` leaves of the lists of the mount with this base. Policies may take long for each entry.
    pub(in crate::gateway) fn of(base: String, listings: &PolledListings, visible: &Visibility) -> Self {
        let resources = VisibleEntries::of(&listings.0, visible);
        Self { base, resources, templates: VisibleEntries::of(&listings.1, visible) }
    }

    fn differs(&self, other: &Self) -> bool {
        self.base != other.base || self.resources.differs(&other.resources) || self.templates.differs(&other.templates)
    }

    fn is_empty(&self) -> bool {
        self.resources.hashes.is_empty() && self.templates.hashes.is_empty()
    }
}

/// The visible lists of one mount, for each class of principals that sees a part of it and wants lists.
#[derive(Debug, Default)]
pub(in crate::gateway) struct VisibleLists(HashMap<AccessClass, VisibleList>);

impl VisibleLists {
    /// True if the list of this class is remembered.
    pub(in crate::gateway) fn has(&self, class: AccessClass) -> bool {
        self.0.contains_key(&class)
    }

    /// Remembers the list of a class. True if it is another one than before; a class that is not remembered saw nothing.
    pub(in crate::gateway) fn replace(&mut self, class: AccessClass, list: VisibleList) -> bool {
        let is_change = self.0.get(&class).map_or(!list.is_empty(), |before| before.differs(&list));
        self.0.insert(class, list);
        is_change
    }

    /// If there are many, forgets all but the lists of these classes.
    pub(in crate::gateway) fn make_room(&mut self, used: &HashSet<AccessClass>) {
        if self.0.len() > MAX_CLASSES {
            self.0.retain(|class, _| used.contains(class));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::VisibleEntries;

    #[test]
    fn the_length_of_what_was_fetched_is_no_difference() {
        let entries = |hashes: &[u32], is_whole| VisibleEntries { hashes: hashes.to_vec(), is_whole };
        for (one, other, expected) in [
            (entries(&[1, 2], true), entries(&[1, 2], true), false),
            (entries(&[1, 2], true), entries(&[1, 3], true), true),
            (entries(&[1, 2], true), entries(&[1], true), true),
            (entries(&[1, 2], false), entries(&[1], false), false),
            (entries(&[1, 2], true), entries(&[1], false), false),
            (entries(&[1], true), entries(&[1, 2], false), true),
            (entries(&[], true), entries(&[1], true), true),
            (entries(&[], false), entries(&[1], true), false),
        ] {
            assert_eq!((one.differs(&other), other.differs(&one)), (expected, expected), "{one:?} {other:?}");
        }
    }
}
