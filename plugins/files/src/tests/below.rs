//! Tests of lists of one directory, and of names that references cannot hold.

use std::ffi::OsStr;

use super::*;

/// All entries below a reference, by pages.
fn below(files: &Files, reference: &str) -> Vec<Resource> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = files.below(&belljar_tree::Path::parse(reference).unwrap(), cursor.as_deref(), 2).unwrap();
        all.extend(page.resources);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return all;
        }
    }
}

#[test]
fn a_directory_lists_what_is_directly_below_it() {
    let fixture = Fixture::new("");
    for path in ["z.md", "b/c/d", "b/e&f?.txt", "b/.hidden", "b/a b/x", "b/1", "b/2"] {
        fixture.write(path, "# x");
    }
    fixture.link("c", "b/link");
    let given = |reference: &str| -> Vec<(String, Option<String>)> {
        below(&fixture.files, reference).into_iter().map(|entry| (entry.reference, entry.mime_type)).collect()
    };
    let directory = Some("inode/directory".to_owned());
    assert_eq!(
        given(""),
        [("b/".to_owned(), directory.clone()), ("z.md".to_owned(), Some("text/markdown".to_owned()))]
    );
    for reference in ["b", "b/"] {
        assert_eq!(
            given(reference),
            [
                ("b/1".to_owned(), None),
                ("b/2".to_owned(), None),
                ("b/a%20b/".to_owned(), directory.clone()),
                ("b/c/".to_owned(), directory.clone()),
                ("b/e&f%3F.txt".to_owned(), Some("text/plain".to_owned())),
                ("b/link/".to_owned(), directory.clone()),
            ]
        );
    }
    for reference in ["absent", "z.md", "b?x=1", "b/.hidden"] {
        assert_eq!(fixture.files.list_below(reference, None), Err(Error::NotFound), "{reference}");
    }
    assert!(matches!(fixture.files.list_below("b", Some("?odd")), Err(Error::Invalid(_))));
}

#[test]
fn names_with_control_characters_are_listed_and_read() {
    let fixture = Fixture::new("");
    let names = ["two\nlines", "\u{1b}[31mred", "tab\there", "del\u{7f}", "next\u{85}", "\u{241B}0A", "d\ni\nr/f\n"];
    for name in names {
        fixture.write(name, name);
    }
    let listed = all(&fixture.files, 3);
    let mut found: Vec<String> = listed.iter().map(|entry| text(&fixture.files, &entry.reference)).collect();
    found.sort();
    let mut expected = names.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(text(&fixture.files, "two%E2%90%9B0Alines"), "two\nlines");
    assert!(text(&fixture.files, "").contains("[two␛0Alines](two%E2%90%9B0Alines)"));
    assert_eq!(below(&fixture.files, "").len(), 7);
    // No other spelling is accepted.
    assert_eq!(fixture.files.read("two%0Alines"), Err(Error::NotFound));
    assert_eq!(fixture.files.read("%E2%90%9B0A"), Err(Error::NotFound));
}

#[test]
fn names_that_are_not_utf8_are_counted_in_the_listing() {
    let fixture = Fixture::new("");
    fixture.write("a", "");
    let notice = "not UTF-8 cannot be read through WebAssembly";
    assert!(!text(&fixture.files, "").contains(notice));
    fs::write(fixture.dir.path().join(OsStr::from_bytes(b"no\xff")), "").unwrap();
    assert!(text(&fixture.files, "").contains(&format!("1 name that is {notice}, and is left out")));
    fs::write(fixture.dir.path().join(OsStr::from_bytes(b"\xfe")), "").unwrap();
    assert!(text(&fixture.files, "").contains(&format!("2 names that are {notice}, and are left out")));
    assert_eq!(references(&fixture.files.page(String::new(), 10).unwrap()), ["a"]);
}
