//! The list of all mounts, page by page.
//!
//! A mount's list is fetched only as far as a client reads it. It is cached while it is current, and pages are served
//! from the cache. The cost of a page depends on its own entries, never on the length of the list.
//!
//! A cached list is the provider's whole list, and all principals share it. What a principal sees of it is decided when a
//! page is made: for a whole mount where policy can, otherwise by the beginning of names. Positions count the provider's
//! entries, hidden ones included. A page goes on behind hidden entries until it is full or its time is over.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::time::{Instant, timeout_at};

use super::call_group::CallGroup;
use super::pipeline::{Gateway, MountCall};
use crate::catalog::listing::{ListPosition, Listed, is_full, page_size};
use crate::catalog::{CachedListing, EntryVerdict, Mount, Notice, ProviderPage, ServedMount, Snapshot};
use crate::interfaces::Function;
use crate::interfaces::revisions::CatalogRevision;
use crate::limits::cpu_timer::CPU_CLOCK_MIN;
use crate::model::error::LimitKind;
use crate::model::{Limit, MountName, ReadError};
use crate::policy::{Action, Caller, Principal, Visibility};

/// Mounts whose first page is fetched concurrently.
const CONCURRENT_MOUNTS: usize = 8;

/// The most pages of one list operation that may end early because the same mount is slow.
const MAX_SLOW_PAGES: u32 = 16;

/// The most notices that one page carries about entries that were left out.
const MAX_NOTICES: usize = 64;

/// Hidden entries that a page passes before the task yields to others.
const HIDDEN_PER_TURN: usize = 20_000;

/// The same if a policy is asked about each entry, hidden or not: that takes about 40 us.
const JUDGED_PER_TURN: usize = 200;

/// One page of the list of all mounts.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The entries in the order of mounts. The entries of one mount keep its own order.
    pub entries: Vec<(T, MountName)>,
    /// Where the next page starts. `None` on the last page.
    pub next: Option<ListPosition>,
    /// The mounts with entries that were left out, and the reasons; sanitised.
    pub notices: Vec<(MountName, Notice)>,
    /// True if the position belongs to a list that is not served any more. Then the page is empty.
    pub is_outdated: bool,
}

/// The position belongs to a list that is not served any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutdatedList;

impl<T> Default for ListPage<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: None, notices: Vec::new(), is_outdated: false }
    }
}

impl<T: Listed> ListPage<T> {
    /// The bytes of the entries.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|(entry, _)| entry.weight()).sum()
    }
}

impl Gateway {
    /// One page of resources or templates of all mounts, starting at `start`. `only` restricts the list to one mount.
    ///
    /// A mount that fails, hangs or gives invalid entries is left out with a notice. The other mounts are served within
    /// the time of the listing.
    pub async fn list<T: Listed>(
        &self,
        caller: &Caller,
        start: Option<ListPosition>,
        only: Option<&MountName>,
    ) -> ListPage<T> {
        self.list_in_group(&CallGroup::new(&self.audit, caller), start, only).await
    }

    /// The same for the cursor of a client.
    ///
    /// # Errors
    /// When the list changed, or another replica that gave the cursor serves another list.
    pub async fn list_from<T: Listed>(
        &self,
        caller: &Caller,
        start: Option<ListPosition>,
        only: Option<&MountName>,
    ) -> Result<ListPage<T>, OutdatedList> {
        let page = self.list(caller, start, only).await;
        if page.is_outdated { Err(OutdatedList) } else { Ok(page) }
    }

    /// A page of `list` as a part of `group`.
    pub(super) async fn list_in_group<T: Listed>(
        &self,
        group: &CallGroup,
        start: Option<ListPosition>,
        only: Option<&MountName>,
    ) -> ListPage<T> {
        // Loading is not the fault of any mount, so it does not count against the listing's time.
        let snapshot = self.loaded_snapshot().await;
        let began = Instant::now();
        // Give up a mount that hangs before the listing's time is over, so that the mounts behind it are still asked.
        let give_up_at = began + self.list_time * 2 / 3;
        let end = began + self.list_time;
        let from = snapshot.mounts_from(start.as_ref().map(|p| &p.mount).or(only));
        let principal = &group.caller().principal;
        let from = from.iter().take_while(|mount| only.is_none_or(|only| mount.name == *only));
        let from = from.map(|mount| (mount, self.visibility(principal, Action::List, mount)));
        // A mount of which nothing is visible gets no call and no notice, and has no place in the page.
        let mut rest: VecDeque<(&Arc<Mount>, Visibility)> = from.filter(|(_, visible)| !visible.is_nothing()).collect();
        let pages = start.as_ref().map_or(0, |p| p.pages);
        let page = ListPage::default();
        let mut builder = PageBuilder { gateway: self, group, principal, snapshot: &snapshot, pages, page, bytes: 0 };

        rest.retain(|(mount, visible)| match self.check_not_withheld(&mount.name) {
            Ok(()) => true,
            Err(why) => {
                builder.add_notice_of_list(mount, visible, Notice::LeftOut(why.to_string()));
                false
            }
        });
        // These notices are given once for each list: on its first page.
        if start.is_none() {
            for (name, notice) in self.absent_mounts(principal, &snapshot, only) {
                builder.add_notice(name, notice);
            }
        }

        // If the page starts in the middle of a mount, finish that mount before asking the others.
        if let Some(position) = start.filter(|p| !p.is_start())
            && let Some((mount, visible)) = rest.pop_front_if(|(mount, _)| mount.name == position.mount)
        {
            let listing = self.listing(group, mount, Some(&position), end).await;
            if builder.ends_before((mount, &visible), &position, &listing, end).await {
                return builder.page;
            }
            if builder.add_mount((mount, &visible), position, &listing, end).await {
                return builder.page;
            }
        }
        let known_length = |mount: &Mount| T::slot(&mount.listings(principal)).current().map_or(0, |known| known.len());
        let mut pending = FuturesOrdered::new();
        // Use the lengths of cached lists to ask no more mounts than will fill the page.
        let mut expected = 0;
        loop {
            while pending.len() < CONCURRENT_MOUNTS
                && (pending.is_empty() || expected < page_size(pages))
                && Instant::now() < give_up_at
                && let Some((mount, visible)) = rest.pop_front()
            {
                expected += known_length(mount);
                pending.push_back(self.first_page::<T>(group, mount, visible, give_up_at));
            }
            let Some((mount, visible, listing, is_filled)) = pending.next().await else {
                // There was no time to ask the remaining mounts. They come first on the next page.
                if let Some((next, _)) = rest.front() {
                    builder.end_at(ListPosition::start_of(&next.name, pages));
                }
                break;
            };
            let position = ListPosition::start_of(&mount.name, pages);
            let is_over = builder.is_full() || (Instant::now() >= end && !builder.page.entries.is_empty());
            if is_over {
                builder.end_at(position);
                break;
            }
            // If the first page of this mount came too late, do not wait for it. Otherwise wait until the end.
            let by = if is_filled { end } else { Instant::now() };
            if builder.add_mount((mount, &visible), position, &listing, by).await {
                break;
            }
        }
        builder.page
    }

    async fn first_page<'m, T: Listed>(
        &self,
        group: &CallGroup,
        mount: &'m Arc<Mount>,
        visible: Visibility,
        by: Instant,
    ) -> (&'m Arc<Mount>, Visibility, Arc<CachedListing<T>>, bool) {
        let listing = self.listing(group, mount, None, by).await;
        let is_filled = self.fill(group, mount, &listing, 1, by).await;
        (mount, visible, listing, is_filled)
    }

    /// The listing of `mount` for a list operation that continues at `position`, or starts with this mount.
    ///
    /// Returns the cached listing if it is current, or if the operation already took entries from it. Otherwise returns a
    /// new listing.
    pub(super) async fn listing<T: Listed>(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        position: Option<&ListPosition>,
        by: Instant,
    ) -> Arc<CachedListing<T>> {
        let listings = mount.listings(&group.caller().principal);
        let slot = T::slot(&listings);
        let continued = position.and_then(|position| slot.find(position.list));
        if let Some(listing) =
            continued.or_else(|| slot.current().filter(|listing| listing.is_current() || position.is_some()))
        {
            return listing;
        }
        // When several requests arrive at once, one of them checks whether the list is current.
        let turn = timeout_at(by, slot.check_lock.lock()).await;
        let current = slot.current();
        if let Some(listing) = current.as_ref().filter(|listing| listing.is_current() || turn.is_err()) {
            return Arc::clone(listing);
        }
        // The first listing does not wait for a revision. The second one has a revision, and is current while that
        // revision stays the same.
        let revision = match &current {
            Some(_) => self.list_revision(group, mount, by.min(Instant::now() + self.list_time / 3)).await,
            None => None,
        };
        if let Some(listing) = current.filter(|listing| revision.is_some() && listing.revision() == revision.as_deref())
            && !listing.has_failed()
        {
            listing.mark_current();
            return listing;
        }
        let listing = CachedListing::new(self.catalog.caches().memory(), revision);
        slot.set_current(Arc::clone(&listing));
        listing
    }

    /// The revision of a mount's list, if its provider exports the revisions interface.
    pub(super) async fn list_revision(&self, group: &CallGroup, mount: &Arc<Mount>, by: Instant) -> Option<String> {
        if !mount.interfaces.revisions {
            return None;
        }
        if let Some(revision) = group.revision(mount) {
            return Some(revision);
        }
        match self.call(MountCall::in_group(group, mount).with_deadline(by), CatalogRevision).await.0 {
            Ok(revision) => {
                group.set_revision(mount, &revision);
                Some(revision)
            }
            Err(error @ ReadError::BadOutput(_)) => {
                tracing::warn!(mount = %mount.name, "its catalog-revision is not used: {error}");
                None
            }
            Err(_) => None,
        }
    }

    /// Fetches more of a mount's list until there are `wanted` entries, or no more. Returns false if the deadline
    /// passed first.
    pub(super) async fn fill<T: Listed>(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        listing: &CachedListing<T>,
        wanted: usize,
        by: Instant,
    ) -> bool {
        while listing.len() < wanted && !listing.is_ended() {
            let Ok(mut fetched) = timeout_at(by, listing.fetching.lock()).await else { return false };
            if listing.len() >= wanted || listing.is_ended() {
                break;
            }
            let has_pages = fetched.paging.pages() > 0;
            if has_pages && Instant::now() >= by {
                return false;
            }
            let function = T::list(fetched.paging.cursor().map(str::to_owned));
            let (page, mut cost) = self.call(MountCall::in_group(group, mount).with_deadline(by), function).await;
            match page {
                Ok((entries, next)) => {
                    let snapshot = self.catalog.snapshot();
                    let served = ServedMount { mount, snapshot: &snapshot };
                    let add = || listing.add(served, &mut fetched, ProviderPage { entries, next });
                    let violation = cost.charge(CPU_CLOCK_MIN, add);
                    // Dropping the cost puts the call into the record of the group.
                    drop(cost);
                    if let Some(why) = violation {
                        group.mark_failed(mount, T::List::NAME, ReadError::BadOutput(why.to_string()));
                    }
                    self.catalog.caches().evict();
                }
                // The remaining time was too short for one more page. The next request starts with that page and has
                // the full time.
                Err(ReadError::Exhausted(Limit { kind: LimitKind::ListTime, .. }) | ReadError::Busy(_))
                    if has_pages =>
                {
                    return false;
                }
                Err(error) if self.lacked_list_time(&error) => return false,
                Err(error) => {
                    listing.fail(error.with_cure(Some(&mount.name)).to_string());
                }
            }
        }
        true
    }
}

/// A hash of the version of `mount` and of the first `count` entries of its list. Never 0.
fn before<T>(mount: &Mount, listing: &CachedListing<T>, count: usize) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&mount.cached.key().bytes()).update(listing.hash_of_first_steps(count).as_bytes());
    let mut hash = [0; 8];
    hasher.finalize_xof().fill(&mut hash);
    u64::from_le_bytes(hash).max(1)
}

/// A page that is being filled.
struct PageBuilder<'a, T> {
    gateway: &'a Gateway,
    group: &'a CallGroup,
    principal: &'a Principal,
    snapshot: &'a Snapshot,
    pages: u32,
    page: ListPage<T>,
    bytes: usize,
}

impl<T: Listed> PageBuilder<'_, T> {
    fn is_full(&self) -> bool {
        is_full(self.page.entries.len(), self.bytes, self.pages)
    }

    /// Checks that `listing` is the list in which an operation came to `position`, as far as that. Returns true if the page
    /// ends here.
    async fn ends_before(
        &mut self,
        (mount, visible): (&Arc<Mount>, &Visibility),
        position: &ListPosition,
        listing: &CachedListing<T>,
        by: Instant,
    ) -> bool {
        if position.before == 0 || listing.id() == position.list {
            return false;
        }
        let count = usize::try_from(position.offset).unwrap_or(usize::MAX);
        let is_filled = self.gateway.fill(self.group, mount, listing, count, by).await;
        if listing.len() < count && !is_filled && position.slow < MAX_SLOW_PAGES {
            return self.end_for_time((mount, visible), listing, position.clone());
        }
        self.page.is_outdated = listing.len() < count || before(mount, listing, count) != position.before;
        self.page.is_outdated
    }

    /// Adds a mount's entries, starting at `position`. Returns true if the page ends here.
    async fn add_mount(
        &mut self,
        (mount, visible): (&Arc<Mount>, &Visibility),
        mut position: ListPosition,
        listing: &CachedListing<T>,
        by: Instant,
    ) -> bool {
        position.list = listing.id();
        loop {
            let from = usize::try_from(position.offset).unwrap_or(usize::MAX);
            let is_filled = self.gateway.fill(self.group, mount, listing, from.saturating_add(1), by).await;
            let to = self.add_entries(mount, visible, listing, from);
            position.offset = to as u64;
            if self.gateway.checks_cursors() {
                position.before = before(mount, listing, to);
            }
            if self.is_full() && (to < listing.len() || !listing.is_ended()) {
                return self.end_at(position);
            }
            if to >= listing.len() && listing.is_ended() {
                return false;
            }
            if to < listing.len() {
                // The rest may be a long run of hidden entries.
                if Instant::now() >= by {
                    return self.end_at(position);
                }
                tokio::task::yield_now().await;
                continue;
            }
            if !is_filled {
                return match listing.is_empty() {
                    // The mounts before this one took the time. This one comes first on the next page.
                    true => self.end_at(position),
                    false => self.end_for_time((mount, visible), listing, position),
                };
            }
        }
    }

    /// Adds the visible ones of the cached entries, starting at `from`, until the page is full or many entries were
    /// hidden. Returns the index after the last one.
    fn add_entries(
        &mut self,
        mount: &Arc<Mount>,
        visible: &Visibility,
        listing: &CachedListing<T>,
        from: usize,
    ) -> usize {
        let (mut bad, mut reason) = (0u32, None::<String>);
        let (sees_all, is_judged) = (visible.is_all(), visible.is_judged());
        let (mut judged, mut hidden) = (0, 0);
        let (page, bytes, pages) = (&mut self.page, &mut self.bytes, self.pages);
        let parts_limit = mount.parts_limit();
        let judge = |name: &str| {
            judged += usize::from(is_judged);
            if judged > JUDGED_PER_TURN {
                return EntryVerdict::Stop;
            }
            if T::is_visible(name, visible) {
                return EntryVerdict::Take;
            }
            hidden += 1;
            if hidden > HIDDEN_PER_TURN { EntryVerdict::Stop } else { EntryVerdict::Skip }
        };
        let to = listing.visit(
            ServedMount { mount, snapshot: self.snapshot },
            from,
            (!sees_all).then_some(judge),
            |mut entry: T| {
                let has_room = !is_full(page.entries.len(), *bytes, pages);
                if has_room {
                    entry.mark_parts(parts_limit);
                    *bytes += entry.weight();
                    page.entries.push((entry, mount.name.clone()));
                }
                has_room
            },
            |why| {
                bad += 1;
                reason.get_or_insert_with(|| why.to_string());
            },
        );
        let unfit = reason.map(|first| Notice::Entries { count: bad, first });
        for notice in listing.notices(from, to).into_iter().chain(unfit) {
            self.add_notice_of_list(mount, visible, notice);
        }
        to
    }

    /// Ends the page because its time is over. After [`MAX_SLOW_PAGES`] such pages in the same mount, the rest of the
    /// mount's list is cut. Otherwise a listing that never ends would keep the mounts behind it from being listed.
    fn end_for_time(
        &mut self,
        (mount, visible): (&Mount, &Visibility),
        listing: &CachedListing<T>,
        mut position: ListPosition,
    ) -> bool {
        position.slow += 1;
        if position.slow <= MAX_SLOW_PAGES {
            return self.end_at(position);
        }
        let why = format!(
            "its listing took all of the time of {MAX_SLOW_PAGES} pages; to serve more, set a longer list-time"
        );
        let notice = listing.truncate(why);
        self.add_notice_of_list(mount, visible, notice);
        false
    }

    fn end_at(&mut self, position: ListPosition) -> bool {
        self.page.next = Some(ListPosition { pages: self.pages.saturating_add(1), ..position });
        true
    }

    /// Adds a notice about a mount's whole list, as far as the principal may know it. The log has all of it.
    fn add_notice_of_list(&mut self, mount: &Mount, visible: &Visibility, notice: Notice) {
        if visible.is_all() && self.gateway.knows_all(self.principal, self.snapshot) {
            return self.add_notice(&mount.name, notice);
        }
        tracing::warn!(mount = %mount.name, "in the listing: {notice}");
        if let Some(notice) = notice.without_details() {
            self.show_notice(&mount.name, notice);
        }
    }

    fn add_notice(&mut self, mount: &MountName, notice: Notice) {
        tracing::warn!(mount = %mount, "in the listing: {notice}");
        self.show_notice(mount, notice);
    }

    fn show_notice(&mut self, mount: &MountName, notice: Notice) {
        if self.page.notices.len() < MAX_NOTICES {
            self.page.notices.push((mount.clone(), notice));
        }
    }
}
