//! Revisions: a change that a reader or the list would show changes them, and nothing else does.

use super::*;

impl Fixture {
    fn list(&self) -> String {
        self.files.catalog_revision().unwrap()
    }

    fn of(&self, reference: &str) -> Result<String> {
        self.files.resource_revision(reference)
    }

    /// Sets a file's time of change, in nanoseconds.
    fn touch(&self, path: &str, nanoseconds: u64) {
        let file = fs::File::options().write(true).open(self.dir.path().join(path)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_nanos(nanoseconds)).unwrap();
    }
}

#[test]
fn a_file_has_another_when_its_size_or_time_changes() {
    let fixture = Fixture::new("");
    fixture.write("a/x", "one");
    fixture.touch("a/x", 1_000_000_000);
    let first = fixture.of("a/x").unwrap();
    assert_eq!(fixture.of("a/x").as_ref(), Ok(&first));
    // By a nanosecond.
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
fn a_directory_has_another_when_its_index_changes() {
    let fixture = Fixture::new("*.tmp");
    fixture.write("a/x", "1");
    fixture.write("a/sub/y", "1");
    let [above, index] = [fixture.of("").unwrap(), fixture.of("a/").unwrap()];
    assert_eq!(fixture.of("a"), Ok(index.clone()));
    // Neither is shown.
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
fn the_list_has_another_when_an_entry_changes() {
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
    // What is not listed does not count.
    let now = fixture.list();
    fixture.write("new.tmp", "1");
    fixture.write(".git/config", "1");
    fs::create_dir(fixture.dir.path().join("empty")).unwrap();
    assert_eq!(fixture.list(), now);
}

/// Two files that change places, or sizes, are two changes that must not cancel each other out.
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
fn what_cannot_be_read_has_no_revision() {
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
    let told = fixture.files.resource_revisions(&several);
    assert!(told.len() == 3 && told[0].is_ok() && told[1] == Err(Error::NotFound) && told[2].is_ok());
}

#[test]
fn a_tree_that_is_too_large_is_said_to_be() {
    let fixture = Fixture::new("");
    for n in 0..10 {
        fixture.write(&format!("d/{n}"), "");
    }
    let told = |files, time| belljar_tree::of_list(&fixture.files.tree, Bounds { files, time }, |_| true);
    assert!(told(10, Duration::from_secs(60)).is_ok());
    let Err(Error::Failed(why)) = told(9, Duration::from_secs(60)) else { panic!("told") };
    assert!(why.contains("more than 9 files"), "{why}");
    let Err(Error::Failed(why)) = told(10, Duration::ZERO) else { panic!("told") };
    assert!(why.contains("longer than 0 ms"), "{why}");
    fs::remove_dir_all(fixture.dir.path()).unwrap();
    assert_eq!(fixture.files.catalog_revision(), Err(Error::NotFound));
}
