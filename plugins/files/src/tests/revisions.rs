//! Tests that revisions change exactly when a read or the list would show a difference.

use super::*;

impl Fixture {
    fn list(&self) -> String {
        self.files.catalog_revision().unwrap()
    }

    fn of(&self, reference: &str) -> Result<String> {
        self.files.resource_revision(reference)
    }

    /// Sets the modification time of a file, in nanoseconds.
    fn touch(&self, path: &str, nanoseconds: u64) {
        let file = fs::File::options().write(true).open(self.dir.path().join(path)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_nanos(nanoseconds)).unwrap();
    }
}

#[test]
fn size_and_time_change_the_revision_of_a_file() {
    let fixture = Fixture::new("");
    fixture.write("a/x", "one");
    fixture.touch("a/x", 1_000_000_000);
    let first = fixture.of("a/x").unwrap();
    assert_eq!(fixture.of("a/x").as_ref(), Ok(&first));
    // One nanosecond later.
    fixture.touch("a/x", 1_000_000_001);
    let second = fixture.of("a/x").unwrap();
    fixture.write("a/x", "longer");
    fixture.touch("a/x", 1_000_000_001);
    let third = fixture.of("a/x").unwrap();
    assert!(first != second && second != third && first != third);
    assert!([first, second, third].iter().all(|revision| revision.len() <= 256));
    fs::remove_file(fixture.dir.path().join("a/x")).unwrap();
    assert_eq!(fixture.of("a/x"), Err(Error::NotFound));
}

#[test]
fn a_changed_listing_changes_the_revision_of_a_directory() {
    let fixture = Fixture::new("*.tmp");
    fixture.write("a/x", "1");
    fixture.write("a/sub/y", "1");
    let [above, index] = [fixture.of("").unwrap(), fixture.of("a/").unwrap()];
    assert_eq!(fixture.of("a"), Ok(index.clone()));
    // The listing shows neither change.
    fixture.write("a/sub/y", "22");
    fixture.write("a/z.tmp", "1");
    assert_eq!([fixture.of("").unwrap(), fixture.of("a/").unwrap()], [above.clone(), index.clone()]);
    fixture.write("a/x", "22");
    let longer = fixture.of("a/").unwrap();
    fixture.write("a/w", "");
    assert!(index != longer && longer != fixture.of("a/").unwrap());
    assert_eq!(fixture.of("").unwrap(), above);
    assert!(fixture.of("a/?after=w").unwrap() != fixture.of("a/").unwrap());
    assert!(matches!(fixture.of("a/?other=1"), Err(Error::Invalid(_))));
}

#[test]
fn a_changed_entry_changes_the_revision_of_the_list() {
    let fixture = Fixture::new("*.tmp");
    for path in ["a/x", "a/b/y", "z"] {
        fixture.write(path, "1");
        fixture.touch(path, 1_000_000_000);
    }
    let mut known = vec![fixture.list()];
    let mut step = |change: &dyn Fn()| {
        change();
        let now = fixture.list();
        assert!(!known.contains(&now), "{now} again");
        assert_eq!(fixture.list(), now);
        known.push(now);
    };
    step(&|| fixture.write("a/b/new", ""));
    step(&|| fixture.touch("a/b/y", 1_000_000_001));
    step(&|| fixture.write("z", "22"));
    step(&|| fs::rename(fixture.dir.path().join("a/x"), fixture.dir.path().join("a/b/x")).unwrap());
    step(&|| fs::remove_file(fixture.dir.path().join("z")).unwrap());
    step(&|| fixture.link("a/b/x", "link"));
    // Changes of files that are not listed do not count.
    let now = fixture.list();
    fixture.write("new.tmp", "1");
    fixture.write(".git/config", "1");
    fs::create_dir(fixture.dir.path().join("empty")).unwrap();
    assert_eq!(fixture.list(), now);
}

/// Swapping the names or sizes of two files changes the revision.
#[test]
fn changes_do_not_cancel_out() {
    let fixture = Fixture::new("");
    let set = |path: &str, size: usize| {
        fixture.write(path, "x".repeat(size));
        fixture.touch(path, 1_000_000_000);
    };
    set("a", 1);
    set("b", 2);
    let before = fixture.list();
    set("a", 2);
    set("b", 1);
    assert_ne!(fixture.list(), before);
}

#[test]
fn unreadable_resources_have_no_revision() {
    let fixture = Fixture::new("*.tmp");
    for path in ["a/b", "x.tmp"] {
        fixture.write(path, "x");
    }
    fixture.link("/etc/hostname", "out");
    for reference in ["c", "a/c", "a/b/", "a/b/c", "x.tmp", ".env"] {
        assert_eq!(fixture.of(reference), Err(Error::NotFound), "{reference}");
    }
    assert!(matches!(fixture.of("out"), Err(Error::Denied(_) | Error::NotFound)));
    assert!(matches!(fixture.of("../x"), Err(Error::Invalid(_))));
    let several = ["a/b".to_owned(), "c".to_owned(), "a/".to_owned()];
    let revisions = fixture.files.resource_revisions(&several);
    assert!(
        revisions.len() == 3 && revisions[0].is_ok() && revisions[1] == Err(Error::NotFound) && revisions[2].is_ok()
    );
}

#[test]
fn a_tree_over_the_limit_fails_with_the_reason() {
    let fixture = Fixture::new("");
    for n in 0..10 {
        fixture.write(&format!("d/{n}"), "");
    }
    let list_revision =
        |files, time| belljar_tree::list_revision(&fixture.files.tree, Bounds { files, time }, |_| true);
    assert!(list_revision(10, Duration::from_secs(60)).is_ok());
    let Err(Error::Failed(why)) = list_revision(9, Duration::from_secs(60)) else {
        panic!("a tree over its limit has a revision")
    };
    assert!(why.contains("more than 9 files"), "{why}");
    let Err(Error::Failed(why)) = list_revision(10, Duration::ZERO) else {
        panic!("a tree over its limit has a revision")
    };
    assert!(why.contains("longer than 0 ms"), "{why}");
    fs::remove_dir_all(fixture.dir.path()).unwrap();
    assert_eq!(fixture.files.catalog_revision(), Err(Error::NotFound));
}
