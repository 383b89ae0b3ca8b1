//! What is kept of a list, and for how long.

use super::super::mount::tests::mount;
use super::*;
use crate::model::{Limits, MountName, Resource};

fn entry(reference: &str) -> Resource {
    Resource {
        reference: reference.to_owned(),
        name: String::new(),
        title: Some("Title".to_owned()),
        description: None,
        mime_type: Some("text/plain".to_owned()),
        size: Some(3),
        annotations: None,
        icons: Vec::new(),
        meta: Vec::new(),
    }
}

fn entries(range: std::ops::Range<u32>) -> Vec<Resource> {
    range.map(|n| entry(&format!("n/{n:06}"))).collect()
}

fn shelves() -> Arc<Shelves> {
    Shelves::new(Budget::new(64 << 20))
}

/// Everything from `from` on, at most `most`, and where that ended.
fn walk(kept: &Kept<Resource>, mount: &Mount, from: usize, most: usize) -> (Vec<Resource>, usize) {
    let mut taken = Vec::new();
    let snapshot = Snapshot::default();
    let take = |entry| {
        let has_room = taken.len() < most;
        if has_room {
            taken.push(entry);
        }
        has_room
    };
    let to = kept.walk((mount, &snapshot), from, take, |why| panic!("{why}"));
    (taken, to)
}

#[test]
fn what_was_listed_comes_back_page_by_page() {
    let (mount, shelves) = (mount("m", "belljar://m/"), shelves());
    let kept = Kept::new(&shelves, None);
    let mut filling = Filling::default();
    let snapshot = Snapshot::default();
    kept.add((&mount, &snapshot), &mut filling, entries(0..10), Some("more".to_owned()));
    assert_eq!((kept.len(), kept.is_ended(), filling.paging.cursor()), (10, false, Some("more")));
    kept.add((&mount, &snapshot), &mut filling, entries(10..15), None);
    assert!(kept.is_ended() && kept.stands());
    let (first, to) = walk(&kept, &mount, 0, 8);
    let (rest, end) = walk(&kept, &mount, to, 100);
    assert_eq!((first.len(), to, rest.len(), end), (8, 8, 7, 15));
    let mut expected = entry("n/000009");
    expected.reference.insert_str(0, "belljar://m/");
    expected.name = expected.reference.clone();
    assert_eq!(rest[1], expected, "nothing is lost, and who has no name is called by its URI");
    assert_eq!(walk(&kept, &mount, 99, 1), (Vec::new(), 99), "a list that became shorter");
}

#[test]
fn what_may_not_be_listed_is_left_out_with_one_reason() {
    let (mount, shelves) = (mount("m", "belljar://m/"), shelves());
    let kept = Kept::new(&shelves, None);
    let all = ["a", "../b", "a", "c"].map(entry).to_vec();
    kept.add((&mount, &Snapshot::default()), &mut Filling::default(), all, None);
    assert_eq!(kept.len(), 2);
    let notices = kept.notices(0, 2);
    assert!(
        notices.len() == 1 && notices[0].starts_with("2 of its entries left out, the first because"),
        "{notices:?}"
    );
    assert!(kept.notices(3, 3).is_empty(), "told on the page where it was");
}

#[test]
fn a_list_ends_at_the_mounts_limit_and_says_so() {
    let limits = Limits { resources: 5, ..Limits::default() };
    let mount = Mount { gate: crate::admission::Gate::new(MountName::new("m").unwrap(), limits), ..mount("m", "m://") };
    let kept = Kept::new(&shelves(), None);
    kept.add((&mount, &Snapshot::default()), &mut Filling::default(), entries(0..9), Some("more".to_owned()));
    assert_eq!((kept.len(), kept.is_ended()), (5, true));
    assert!(kept.notices(0, 5)[0].contains("more than 5 resources"));
}

#[test]
fn memory_is_counted_bounded_and_given_back() {
    let budget = Budget::new(1 << 20);
    let (mount, shelves) = (mount("m", "belljar://m/"), Shelves::new(Arc::clone(&budget)));
    let one = Kept::new(&shelves, None);
    let mut filling = Filling::default();
    for page in 0..20 {
        one.add(
            (&mount, &Snapshot::default()),
            &mut filling,
            entries(page * 1000..page * 1000 + 1000),
            Some(page.to_string()),
        );
    }
    assert!(one.is_ended() && one.len() < 20_000, "{}", one.len());
    assert!(one.notices(0, one.len())[0].contains("to serve more, set a larger total-memory"));
    let bytes = shelves.used.load(Ordering::Relaxed);
    assert!(bytes <= (1 << 17) + 1024, "half of a quarter, and the entry that was one too many: {bytes}");
    let each = bytes as usize / one.len();
    assert!(each < 40, "{each} bytes each");
    drop(one);
    assert_eq!(shelves.used.load(Ordering::Relaxed), 0);
}

#[test]
fn the_list_that_was_walked_longest_ago_is_forgotten_first() {
    let (mount, shelves) = (mount("m", "belljar://m/"), shelves());
    let slot = Slot::<Resource>::default();
    let [old, new] = [(); 2].map(|()| Kept::new(&shelves, Some("r".to_owned())));
    slot.put(Arc::clone(&old));
    slot.put(Arc::clone(&new));
    assert!(Arc::ptr_eq(&slot.find(old.id()).unwrap(), &old), "walks go on in it");
    assert!(Arc::ptr_eq(&slot.current().unwrap(), &new));
    walk(&old, &mount, 0, 1);
    slot.drop_oldest();
    assert!(slot.current().is_none() && slot.find(old.id()).is_some());
    slot.drop_oldest();
    assert!(slot.oldest().is_none());
}

#[test]
fn lists_that_differ_have_other_digests() {
    let mount = mount("m", "belljar://m/");
    let digest = |all: Vec<Resource>| {
        let kept = Kept::new(&shelves(), None);
        kept.add((&mount, &Snapshot::default()), &mut Filling::default(), all, None);
        kept.digest(3)
    };
    let same = digest(entries(0..3));
    assert_eq!(digest(entries(0..3)), same);
    assert_eq!(digest(entries(0..9)), same, "what is behind the first ones is not compared");
    let mut other = entries(0..3);
    other[2].title = None;
    assert_ne!(digest(other), same);
    assert_ne!(digest(Vec::new()), same);
}
