//! Tests of the builders and of paging.

use super::*;

fn entries(range: std::ops::Range<u32>) -> impl Iterator<Item = Resource> {
    range.map(|n| Resource::new(format!("{n:03}")))
}

#[test]
fn pages_follow_each_other_without_gap_or_duplicate() {
    let mut cursor = None;
    let mut seen = Vec::new();
    loop {
        let page = Page::of(entries(0..25), cursor.as_deref(), 10);
        seen.extend(page.resources);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, entries(0..25).collect::<Vec<_>>());
}

#[test]
fn the_last_full_page_has_no_next_one() {
    let page = Page::of(entries(0..10), None, 10);
    assert_eq!((page.resources.len(), page.next_cursor), (10, None));
}

#[test]
fn paging_survives_new_and_deleted_entries() {
    let first = Page::of(entries(0..20), None, 10);
    assert_eq!(first.next_cursor.as_deref(), Some("009"));
    let second = Page::of(
        entries(0..20).filter(|r| r.reference != "009" && r.reference != "010"),
        first.next_cursor.as_deref(),
        10,
    );
    assert_eq!(second.resources.first().map(|r| r.reference.as_str()), Some("011"));
}

#[test]
fn a_page_takes_only_the_entries_that_it_needs() {
    let mut taken = 0;
    let counted = entries(0..1000).inspect(|_| taken += 1);
    assert_eq!(Page::of(counted, None, 10).resources.len(), 10);
    assert_eq!(taken, 11);
}

#[test]
fn names_default_to_the_reference() {
    assert_eq!(Resource::new("a").name, "a");
    assert_eq!(Resource::new("a").name("b").name, "b");
    assert_eq!(Template::new("{+path}").name, "{+path}");
}

#[test]
fn bytes_are_text_when_they_are_utf8() {
    assert_eq!(Contents::from_bytes("a", "grün"), Contents::text("a", "grün"));
    assert_eq!(Contents::from_bytes("a", [0xff]), Contents::blob("a", [0xff]));
    assert_eq!(Contents::from_bytes("a", []), Contents::text("a", ""));
}

#[test]
fn suggestions_are_capped_and_counted() {
    let known = ["Berlin", "bern", "Bonn", "Würzburg"];
    assert_eq!(Suggestions::starting_with("BE", known), Suggestions::new(["Berlin", "bern"]).total(2));
    assert_eq!(Suggestions::starting_with("Wü", known).total, Some(1));
    let many = Suggestions::starting_with("", (0..250).map(|n| n.to_string()));
    assert_eq!((many.values.len(), many.total), (Suggestions::MAX, Some(250)));
}

#[test]
fn pages_by_number_follow_each_other() {
    let of = |cursor: Option<&str>| Page::at_offset(entries(0..14), cursor, 10).unwrap();
    let first = of(None);
    assert_eq!((first.resources.len(), first.next_cursor.as_deref()), (10, Some("10")));
    let second = of(Some("10"));
    assert_eq!((second.resources, second.next_cursor), (entries(10..14).collect(), None));
    assert_eq!(of(Some("14")), Page::default());
    let whole = Page::at_offset(entries(0..10), None, 10).unwrap();
    assert_eq!(whole.next_cursor, None);
}

#[test]
fn a_foreign_number_is_invalid() {
    for cursor in ["", "x", "-1", "+1", " 1", "15", "99999999999999999999999"] {
        let why = Error::invalid(format_args!("the cursor \"{cursor}\" is not one of this provider's"));
        assert_eq!(Page::at_offset(entries(0..14), Some(cursor), 10), Err(why));
    }
}

#[test]
fn times_outside_of_rfc_3339_are_left_out() {
    let at = |seconds: u64| {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap();
        Annotations::new().last_modified_at(time).last_modified
    };
    assert_eq!(at(0).as_deref(), Some("1970-01-01T00:00:00Z"));
    assert_eq!(at(YEAR_10000 - 1).as_deref(), Some("9999-12-31T23:59:59Z"));
    assert_eq!(at(YEAR_10000), None);
    let before = SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(1)).unwrap();
    assert_eq!(Annotations::new().last_modified_at(before).last_modified, None);
}
