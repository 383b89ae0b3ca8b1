//! Which entries a cached listing contains, and how long it is served.

use std::sync::Arc;

use super::super::cached_listing::ListingSlot;
use super::super::listing_memory::ListingMemory;
use super::super::mount::tests::mount;
use super::*;
use crate::limits::memory_budget::MemoryBudget;
use crate::model::{Limits, MountName, Resource};

fn entry(reference: &str) -> Resource {
    Resource {
        title: Some("Title".to_owned()),
        mime_type: Some("text/plain".to_owned()),
        size: Some(3),
        ..Resource::named(reference, "")
    }
}

fn entries(range: std::ops::Range<u32>) -> Vec<Resource> {
    range.map(|n| entry(&format!("n/{n:06}"))).collect()
}

fn memory() -> Arc<ListingMemory> {
    ListingMemory::new(MemoryBudget::new(64 << 20))
}

fn add(
    listing: &CachedListing<Resource>,
    mount: &Mount,
    fetched: &mut FetchState,
    entries: Vec<Resource>,
    next: Option<String>,
) {
    listing.add(ServedMount { mount, snapshot: &Snapshot::default() }, fetched, ProviderPage { entries, next });
}

/// At most `most` entries, starting at `from`, and the index where that ended.
fn entries_from(listing: &CachedListing<Resource>, mount: &Mount, from: usize, most: usize) -> (Vec<Resource>, usize) {
    let mut taken = Vec::new();
    let snapshot = Snapshot::default();
    let take = |entry| {
        let has_room = taken.len() < most;
        if has_room {
            taken.push(entry);
        }
        has_room
    };
    let to = listing.visit(
        ServedMount { mount, snapshot: &snapshot },
        from,
        Some(|_: &str| EntryVerdict::Take),
        take,
        |why| panic!("{why}"),
    );
    (taken, to)
}

#[test]
fn listed_entries_are_served_page_by_page() {
    let (mount, memory) = (mount("m", "belljar://m/"), memory());
    let listing = CachedListing::new(&memory, None);
    let mut fetched = FetchState::default();
    add(&listing, &mount, &mut fetched, entries(0..10), Some("more".to_owned()));
    assert_eq!((listing.len(), listing.is_ended(), fetched.paging.cursor()), (10, false, Some("more")));
    add(&listing, &mount, &mut fetched, entries(10..15), None);
    assert!(listing.is_ended() && listing.is_current());
    let (first, to) = entries_from(&listing, &mount, 0, 8);
    let (rest, end) = entries_from(&listing, &mount, to, 100);
    assert_eq!((first.len(), to, rest.len(), end), (8, 8, 7, 15));
    let mut expected = entry("n/000009");
    expected.reference.insert_str(0, "belljar://m/");
    expected.name = expected.reference.clone();
    assert_eq!(rest[1], expected, "no entry is lost, and an entry without a name gets its URI as the name");
    assert_eq!(entries_from(&listing, &mount, 99, 1), (Vec::new(), 99), "an offset beyond the end");
}

#[test]
fn invalid_entries_are_left_out_with_one_notice() {
    let (mount, memory) = (mount("m", "belljar://m/"), memory());
    let listing = CachedListing::new(&memory, None);
    let all = ["a", "../b", "a", "c"].map(entry).to_vec();
    add(&listing, &mount, &mut FetchState::default(), all, None);
    assert_eq!(listing.len(), 2);
    let notices = listing.notices(0, 2);
    assert!(
        notices.len() == 1 && notices[0].to_string().starts_with("2 of its entries left out, the first because"),
        "{notices:?}"
    );
    assert!(listing.notices(3, 3).is_empty(), "the notice belongs to an earlier page");
}

#[test]
fn a_list_ends_at_the_limit_of_the_mount_with_a_notice() {
    let limits = Limits { resources: 5, ..Limits::default() };
    let mount = Mount { gate: crate::limits::Gate::new(MountName::new("m").unwrap(), limits), ..mount("m", "m://") };
    let listing = CachedListing::new(&memory(), None);
    add(&listing, &mount, &mut FetchState::default(), entries(0..9), Some("more".to_owned()));
    assert_eq!((listing.len(), listing.is_ended()), (5, true));
    assert!(listing.notices(0, 5)[0].to_string().contains("more than 5 resources"));
}

#[test]
fn memory_is_counted_bounded_and_released() {
    let budget = MemoryBudget::new(1 << 20);
    let (mount, memory) = (mount("m", "belljar://m/"), ListingMemory::new(Arc::clone(&budget)));
    let one = CachedListing::new(&memory, None);
    let mut fetched = FetchState::default();
    for page in 0..20 {
        add(&one, &mount, &mut fetched, entries(page * 1000..page * 1000 + 1000), Some(page.to_string()));
    }
    assert!(one.is_ended() && one.len() < 20_000, "{}", one.len());
    assert!(one.notices(0, one.len())[0].to_string().contains("to serve more, set a larger total-memory"));
    let bytes = memory.used();
    assert!(bytes <= (1 << 17) + 1024, "half of a quarter, and the entry that was one too many: {bytes}");
    let each = bytes as usize / one.len();
    assert!(each < 40, "{each} bytes each");
    drop(one);
    assert_eq!(memory.used(), 0);
}

#[test]
fn the_least_recently_used_listing_is_forgotten_first() {
    let (mount, memory) = (mount("m", "belljar://m/"), memory());
    let slot = ListingSlot::<Resource>::default();
    let [old, new] = [(); 2].map(|()| CachedListing::new(&memory, Some("r".to_owned())));
    slot.set_current(Arc::clone(&old));
    slot.set_current(Arc::clone(&new));
    assert!(Arc::ptr_eq(&slot.find(old.id()).unwrap(), &old), "list operations continue in the previous listing");
    assert!(Arc::ptr_eq(&slot.current().unwrap(), &new));
    entries_from(&old, &mount, 0, 1);
    slot.drop_oldest();
    assert!(slot.current().is_none() && slot.find(old.id()).is_some());
    slot.drop_oldest();
    assert!(slot.oldest().is_none());
}

#[test]
fn different_lists_have_different_digests() {
    let mount = mount("m", "belljar://m/");
    let digest = |all: Vec<Resource>| {
        let listing = CachedListing::new(&memory(), None);
        add(&listing, &mount, &mut FetchState::default(), all, None);
        listing.hash_of_first(3)
    };
    let same = digest(entries(0..3));
    assert_eq!(digest(entries(0..3)), same);
    assert_eq!(digest(entries(0..9)), same, "only the first entries are compared");
    let mut other = entries(0..3);
    other[2].title = None;
    assert_ne!(digest(other), same);
    assert_ne!(digest(Vec::new()), same);
}
