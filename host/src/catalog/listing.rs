//! Positions and page sizes of lists over all mounts, and the two kinds of entries.
//!
//! Makes no calls: the gateway fetches the pages. A position contains everything that is needed to continue, so that it
//! survives a restart: the list is then fetched again up to it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cached_listing::ListingSlot;
use super::mount_cache::Listings;
use crate::interfaces::resources::{EntryPage, ListResources, ListTemplates};
use crate::interfaces::{Exported, ListEntry};
use crate::model::template::literal_start;
use crate::model::{MountName, Resource, Template};
use crate::policy::Visibility;

/// Entries of each of the first pages.
const PAGE: usize = 1000;

/// The page size doubles after every 8 pages. A client that stops after 64 pages has received two million entries.
const DOUBLES_AFTER: u32 = 8;

/// The most entries of one page.
const MAX_PAGE: usize = 128_000;

/// A page of this many bytes is full, whatever the number of its entries.
const PAGE_BYTES: usize = 4 << 20;

/// The position in a list over all mounts at which the next page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// The mount. If it does not exist any more, the next one by name.
    pub mount: MountName,
    /// The id of the mount's cached listing in which the list continues, if it is still cached.
    pub list: u32,
    /// Entries of this mount that were already listed.
    pub offset: u64,
    /// Pages that ended because this mount took all of their time.
    pub slow: u32,
    /// Pages that were already served.
    pub pages: u32,
    /// A hash of the mount's version and of the entries before the position. 0: the list is not checked. Replicas
    /// check it, because another replica may serve another list.
    pub before: u64,
}

impl ListPosition {
    /// The start of a mount's listing, after `pages` pages.
    pub fn start_of(mount: &MountName, pages: u32) -> Self {
        Self { mount: mount.clone(), list: 0, offset: 0, slow: 0, pages, before: 0 }
    }

    /// True if this is the start of a mount's listing.
    pub fn is_start(&self) -> bool {
        self.offset == 0 && self.slow == 0
    }
}

/// The number of entries on the page that follows `pages` others.
pub fn page_size(pages: u32) -> usize {
    PAGE.saturating_mul(1 << (pages / DOUBLES_AFTER).min(16)).min(MAX_PAGE)
}

/// An entry that can be listed: a resource or a template.
pub trait Listed: ListEntry + Send + Serialize + DeserializeOwned + 'static {
    /// The function that gives a page of them.
    type List: Exported<Checked = EntryPage<Self>>;

    /// A call of that function for the page at `cursor`.
    fn list(cursor: Option<String>) -> Self::List;

    /// True if an entry with this name below the mount's base may be shown to somebody who sees `visible`.
    fn is_visible(name: &str, visible: &Visibility) -> bool;

    /// Marks an entry that is longer than one read gives. `limit` is that length in bytes, if the mount is read in parts.
    fn mark_parts(&mut self, _limit: Option<u64>) {}

    /// The slot of this kind.
    fn slot(listings: &Listings) -> &ListingSlot<Self>;
}

/// True if a page of `entries` entries and `bytes` bytes is full. `pages` pages were served before it.
pub fn is_full(entries: usize, bytes: usize, pages: u32) -> bool {
    entries >= page_size(pages) || bytes >= PAGE_BYTES
}

impl Listed for Resource {
    type List = ListResources;

    fn list(cursor: Option<String>) -> ListResources {
        ListResources { cursor }
    }

    fn is_visible(name: &str, visible: &Visibility) -> bool {
        visible.contains(name)
    }

    fn mark_parts(&mut self, limit: Option<u64>) {
        Resource::mark_parts(self, limit);
    }

    fn slot(listings: &Listings) -> &ListingSlot<Self> {
        &listings.resources
    }
}

impl Listed for Template {
    type List = ListTemplates;

    fn list(_: Option<String>) -> ListTemplates {
        ListTemplates
    }

    /// A template is shown if some resource that begins with its literal text may be seen.
    fn is_visible(name: &str, visible: &Visibility) -> bool {
        visible.contains_below(literal_start(name))
    }

    fn slot(listings: &Listings) -> &ListingSlot<Self> {
        &listings.templates
    }
}

#[cfg(test)]
mod tests;
