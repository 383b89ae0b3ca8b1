//! The walk over all mounts, page by page. A mount's list is fetched as far as somebody walks it, kept while it stands, and
//! served from there: a page costs what is on it, however much there is in all.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::time::{Instant, timeout_at};

use super::walk::Walk;
use super::{Gateway, check};
use crate::admission::effort::MUCH;
use crate::catalog::kept::Kept;
use crate::catalog::listing::{Listed, Position, is_full, page_size};
use crate::catalog::{Mount, Snapshot};
use crate::model::error::Bound;
use crate::model::{Answer, Caller, Limit, MountName, Operation, ReadError};

/// Mounts whose first page is asked for at once.
const WINDOW: usize = 8;

/// Pages of a walk that one mount may use up by being slow.
const SLOW_PAGES: u32 = 16;

/// Reasons that a listing carries for what it left out.
const NOTICES: usize = 64;

/// A page over all mounts.
#[derive(Debug)]
pub struct Listing<T> {
    /// The entries, in the order of mounts, each mount's in its own order.
    pub entries: Vec<(T, MountName)>,
    /// Where it goes on.
    pub next: Option<Position>,
    /// What was left out, and why: the mount, then the reason; sanitised.
    pub notices: Vec<(MountName, String)>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: None, notices: Vec::new() }
    }
}

impl Gateway {
    /// One page of resources or templates over all mounts, from `start` on. A mount that fails, hangs or lies is left out,
    /// with a notice; the others are served in the listing's time. `only` restricts the walk to one mount.
    pub async fn list<T: Listed>(
        &self,
        caller: &Caller,
        start: Option<Position>,
        only: Option<&MountName>,
    ) -> Listing<T> {
        self.list_in(&Walk::new(&self.audit, caller), start, only).await
    }

    /// The same as a part of `walk`.
    pub(super) async fn list_in<T: Listed>(
        &self,
        walk: &Walk,
        start: Option<Position>,
        only: Option<&MountName>,
    ) -> Listing<T> {
        // Loading is no mount's doing, so it does not count against the time in which mounts answer.
        let snapshot = self.settled().await;
        let began = Instant::now();
        // A mount that hangs is given up before the listing's time is over, so that those behind it are still asked.
        let patience = began + self.list_time * 2 / 3;
        let end = began + self.list_time;
        let from = snapshot.from(start.as_ref().map(|p| &p.mount).or(only));
        let mut rest: VecDeque<&Arc<Mount>> =
            from.iter().take_while(|mount| only.is_none_or(|only| mount.name == *only)).collect();
        let pages = start.as_ref().map_or(0, |p| p.pages);
        let mut page = Page { gateway: self, walk, snapshot: &snapshot, pages, listing: Listing::default(), bytes: 0 };

        // Once a listing, on its first page.
        if start.is_none() {
            for one in snapshot.quarantined().iter().filter(|one| only.is_none_or(|only| one.name == *only)) {
                page.tell(&one.name, one.notice());
            }
            for one in snapshot.compiling().iter().filter(|one| only.is_none_or(|only| one.name == *only)) {
                page.tell(&one.name, one.notice());
            }
            for one in snapshot.unserved().iter().filter(|one| only.is_none_or(|only| one.name == *only)) {
                page.tell(&one.name, one.notice());
            }
        }

        // In the middle of one mount, the others are not asked until it is finished.
        if let Some(position) = start.filter(|p| !p.is_start())
            && let Some(mount) = rest.pop_front_if(|mount| mount.name == position.mount)
        {
            let kept = self.listing(walk, mount, Some(&position), end).await;
            if page.mount(mount, position, &kept, end).await {
                return page.listing;
            }
        }
        let mut ahead = FuturesOrdered::new();
        // Where lists are kept, no more mounts are asked than will fill the page.
        let mut expected = 0;
        loop {
            while ahead.len() < WINDOW
                && (ahead.is_empty() || expected < page_size(pages))
                && Instant::now() < patience
                && let Some(mount) = rest.pop_front()
            {
                expected += T::slot(mount).current().map_or(0, |kept| kept.len());
                ahead.push_back(self.first::<T>(walk, mount, patience));
            }
            let Some((mount, kept, is_filled)) = ahead.next().await else {
                // Those that nobody had time for are the first to be asked on the next page.
                if let Some(next) = rest.front() {
                    page.pause(Position::start_of(&next.name, pages));
                }
                break;
            };
            let position = Position::start_of(&mount.name, pages);
            let is_over = page.is_full() || (Instant::now() >= end && !page.listing.entries.is_empty());
            if is_over {
                page.pause(position);
                break;
            }
            // A list of which nothing came in time is given up here, unless it was hurried by those before it.
            let by = if is_filled { end } else { Instant::now() };
            if page.mount(mount, position, &kept, by).await {
                break;
            }
        }
        page.listing
    }

    async fn first<'m, T: Listed>(
        &self,
        walk: &Walk,
        mount: &'m Arc<Mount>,
        by: Instant,
    ) -> (&'m Arc<Mount>, Arc<Kept<T>>, bool) {
        let kept = self.listing(walk, mount, None, by).await;
        let is_filled = self.fill(walk, mount, &kept, 1, by).await;
        (mount, kept, is_filled)
    }

    /// The listing of `mount` for a walk that is at `position` in it, or begins with it: the one that is kept, if it still stands or the
    /// walk began in it, or a new one.
    pub(super) async fn listing<T: Listed>(
        &self,
        walk: &Walk,
        mount: &Arc<Mount>,
        position: Option<&Position>,
        by: Instant,
    ) -> Arc<Kept<T>> {
        let slot = T::slot(mount);
        let walked = position.and_then(|position| slot.find(position.list));
        if let Some(kept) = walked.or_else(|| slot.current().filter(|kept| kept.stands() || position.is_some())) {
            return kept;
        }
        // Of a crowd, one finds out.
        let turn = timeout_at(by, slot.turn.lock()).await;
        let current = slot.current();
        if let Some(kept) = current.as_ref().filter(|kept| kept.stands() || turn.is_err()) {
            return Arc::clone(kept);
        }
        // The first listing waits for no revision; the second one has it, and stands for as long as that does.
        let revision = match &current {
            Some(_) => self.list_revision(walk, mount, by.min(Instant::now() + self.list_time / 3)).await,
            None => None,
        };
        if let Some(kept) = current.filter(|kept| revision.is_some() && kept.revision() == revision.as_deref())
            && !kept.has_failed()
        {
            kept.stand();
            return kept;
        }
        let kept = Kept::new(self.catalog.shelves(), revision);
        slot.put(Arc::clone(&kept));
        kept
    }

    /// The revision of a mount's list, where its provider tells one.
    pub(super) async fn list_revision(&self, walk: &Walk, mount: &Arc<Mount>, by: Instant) -> Option<String> {
        if !mount.revises {
            return None;
        }
        if let Some(told) = walk.revision(mount) {
            return Some(told);
        }
        let answer = self.call_in(walk, mount, &Operation::CatalogRevision, Some(by)).await.0;
        let Ok(Answer::Revision(revision)) = answer else { return None };
        check::revision(revision)
            .inspect(|revision| walk.was_told(mount, revision))
            .inspect_err(|error| tracing::warn!(mount = %mount.name, "its catalog-revision is not used: {error}"))
            .ok()
    }

    /// Fetches more of a mount's list, until there are `wanted` entries, or no more. Says whether it came so far before the
    /// time was over.
    pub(super) async fn fill<T: Listed>(
        &self,
        walk: &Walk,
        mount: &Arc<Mount>,
        kept: &Kept<T>,
        wanted: usize,
        by: Instant,
    ) -> bool {
        while kept.len() < wanted && !kept.is_ended() {
            let Ok(mut filling) = timeout_at(by, kept.filling.lock()).await else { return false };
            if kept.len() >= wanted || kept.is_ended() {
                break;
            }
            let went_on = filling.paging.pages() > 0;
            if went_on && Instant::now() >= by {
                return false;
            }
            let operation = T::operation(filling.paging.cursor().map(str::to_owned));
            let (page, mut bill) = self.call_in(walk, mount, &operation, Some(by)).await;
            match page.and_then(T::unpack) {
                Ok((entries, next)) => {
                    let snapshot = self.catalog.snapshot();
                    let add = || kept.add((mount, &snapshot), &mut filling, entries, next);
                    let wrong = bill.charge(MUCH, add);
                    // The record of the walk has this call in it from here on.
                    drop(bill);
                    if let Some(why) = wrong {
                        walk.ends_in(mount, &operation, ReadError::BadOutput(why));
                    }
                    self.make_room();
                }
                // The rest of the time was too short for one more page; the next request starts with it, and has all of the
                // time.
                Err(ReadError::Exhausted(Limit { bound: Bound::ListTime, .. }) | ReadError::Busy(_)) if went_on => {
                    return false;
                }
                Err(error) if self.was_hurried(&error) => return false,
                Err(error) => {
                    kept.fail(format!("left out: {}", error.with_cure(Some(&mount.name))));
                }
            }
        }
        true
    }

    /// Forgets listings, the one that was walked longest ago first, until what is kept is within its bound.
    fn make_room(&self) {
        let shelves = self.catalog.shelves();
        while shelves.is_over() {
            let snapshot = self.catalog.snapshot();
            let ages = snapshot.mounts().iter().flat_map(|mount| {
                let (resources, templates) = &mount.lists;
                [(resources.oldest(), false, mount), (templates.oldest(), true, mount)]
            });
            let oldest = ages.filter_map(|(age, kind, mount)| Some((age?, kind, mount))).min_by_key(|(age, ..)| *age);
            match oldest {
                Some((_, false, mount)) => mount.lists.0.drop_oldest(),
                Some((_, true, mount)) => mount.lists.1.drop_oldest(),
                None => break,
            }
        }
    }
}

/// A page of a walk that is being filled.
struct Page<'a, T> {
    gateway: &'a Gateway,
    walk: &'a Walk,
    snapshot: &'a Snapshot,
    pages: u32,
    listing: Listing<T>,
    bytes: usize,
}

impl<T: Listed> Page<'_, T> {
    fn is_full(&self) -> bool {
        is_full(self.listing.entries.len(), self.bytes, self.pages)
    }

    /// Takes over a mount's entries from `position` on. Says whether the walk's page ends here.
    async fn mount(&mut self, mount: &Arc<Mount>, mut position: Position, kept: &Kept<T>, by: Instant) -> bool {
        position.list = kept.id();
        loop {
            let from = usize::try_from(position.offset).unwrap_or(usize::MAX);
            let is_filled = self.gateway.fill(self.walk, mount, kept, from.saturating_add(1), by).await;
            let to = self.take(mount, kept, from);
            position.offset = to as u64;
            if self.is_full() && (to < kept.len() || !kept.is_ended()) {
                return self.pause(position);
            }
            if to >= kept.len() && kept.is_ended() {
                return false;
            }
            if !is_filled {
                return match kept.is_empty() {
                    // Those before it took the time; on the next page it is the first.
                    true => self.pause(position),
                    false => self.pause_for_time(mount, kept, position),
                };
            }
        }
    }

    /// Takes over what is kept from `from` on, as far as the page has room. Gives where it stopped.
    fn take(&mut self, mount: &Arc<Mount>, kept: &Kept<T>, from: usize) -> usize {
        let (mut bad, mut reason) = (0u32, None);
        let (listing, bytes, pages) = (&mut self.listing, &mut self.bytes, self.pages);
        let to = kept.walk(
            (mount, self.snapshot),
            from,
            |entry: T| {
                let has_room = !is_full(listing.entries.len(), *bytes, pages);
                if has_room {
                    *bytes += entry.weight();
                    listing.entries.push((entry, mount.name.clone()));
                }
                has_room
            },
            |why| {
                bad += 1;
                reason.get_or_insert(why);
            },
        );
        kept.notices(from, to).into_iter().for_each(|why| self.tell(&mount.name, why));
        if let Some(reason) = reason {
            self.tell(&mount.name, format!("{bad} of its entries left out, the first because {reason}"));
        }
        to
    }

    /// Ends the page because its time is over, and not for the first time in this mount's listing: then the mount is cut,
    /// so that a listing that drips for ever does not keep those behind it from ever being seen.
    fn pause_for_time(&mut self, mount: &Mount, kept: &Kept<T>, mut position: Position) -> bool {
        position.slow += 1;
        if position.slow <= SLOW_PAGES {
            return self.pause(position);
        }
        let why = format!(
            "cut: its listing took all of the time of {SLOW_PAGES} pages; to serve more, set a longer list-time"
        );
        self.tell(&mount.name, why.clone());
        kept.cut(why);
        false
    }

    fn pause(&mut self, position: Position) -> bool {
        self.listing.next = Some(Position { pages: self.pages.saturating_add(1), ..position });
        true
    }

    fn tell(&mut self, mount: &MountName, reason: String) {
        tracing::warn!(mount = %mount, "in the listing: {reason}");
        if self.listing.notices.len() < NOTICES {
            self.listing.notices.push((mount.clone(), reason));
        }
    }
}
