//! Tests of the provider over temporary directories.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use belljar_guest::Contents;
use belljar_tree::Directory;

use super::*;

mod below;
mod parts;
mod revisions;
mod search;

struct Fixture {
    dir: tempfile::TempDir,
    files: Files,
}

impl Fixture {
    fn new(ignore: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = over(&[("/files", dir.path())], ignore);
        Fixture { dir, files }
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.dir.path().join(path)).unwrap();
    }
}

fn over(grants: &[(&str, &Path)], ignore: &str) -> Files {
    let grants = grants.iter().map(|(name, path)| ((*name).to_owned(), Directory::at(path).unwrap())).collect();
    Files { tree: Tree::new(grants, ignore).unwrap() }
}

fn references(page: &Page) -> Vec<&str> {
    page.resources.iter().map(|resource| resource.reference.as_str()).collect()
}

fn all(files: &Files, size: usize) -> Vec<Resource> {
    let mut page = files.page(String::new(), size).unwrap();
    let mut all = page.resources;
    while let Some(cursor) = page.next_cursor {
        page = files.page(reference::decode(&cursor).unwrap(), size).unwrap();
        assert!(page.resources.len() <= size);
        all.append(&mut page.resources);
    }
    all
}

fn one(files: &Files, reference: &str) -> Contents {
    let mut reading = files.read(reference).unwrap();
    assert_eq!(reading.contents.len(), 1);
    reading.contents.remove(0)
}

fn text(files: &Files, reference: &str) -> String {
    match one(files, reference).body {
        Body::Text(text) => text,
        Body::Blob(_) => panic!("a blob"),
    }
}

#[test]
fn an_entry_has_title_type_size_and_time() {
    let fixture = Fixture::new("");
    fixture.write("letters/für Anna.md", "# Dear Anna\n");
    let file = fs::File::options().write(true).open(fixture.dir.path().join("letters/für Anna.md")).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1_785_241_800)).unwrap();
    let page = fixture.files.list_resources(None).unwrap();
    let expected = Resource::new("letters/f%C3%BCr%20Anna.md")
        .name("für Anna.md")
        .title("Dear Anna")
        .mime_type("text/markdown")
        .size(12)
        .annotations(Annotations::new().last_modified("2026-07-28T12:30:00Z"));
    assert_eq!(page, Page::new([expected]));
}

#[test]
fn pages_are_complete_for_all_sizes() {
    let fixture = Fixture::new("");
    for n in 0..40 {
        fixture.write(&format!("{}/{}/{n}", n % 3, n % 7), "");
    }
    let whole = all(&fixture.files, 1000);
    assert_eq!(whole.len(), 40);
    for size in [1, 2, 3, 7, 39, 40, 41] {
        assert_eq!(all(&fixture.files, size), whole, "{size}");
    }
}

#[test]
fn a_full_last_page_has_no_cursor() {
    let fixture = Fixture::new("");
    fixture.write("a", "");
    fixture.write("b", "");
    assert_eq!(fixture.files.page(String::new(), 2).unwrap().next_cursor, None);
}

#[test]
fn a_foreign_cursor_is_invalid_or_a_position() {
    let fixture = Fixture::new("");
    fixture.write("b", "");
    assert!(matches!(fixture.files.list_resources(Some("%FF")), Err(Error::Invalid(_))));
    assert_eq!(references(&fixture.files.list_resources(Some("a")).unwrap()), ["b"]);
    assert_eq!(references(&fixture.files.list_resources(Some("../x")).unwrap()), ["b"]);
}

#[test]
fn everything_listed_can_be_read() {
    let fixture = Fixture::new("");
    for name in ["a b", "100%", "q?x=1", "h#1", "[x]{y}", "a:b", "+&=;,", "日本", "(a)", "'"] {
        fixture.write(name, name);
    }
    let listed = all(&fixture.files, 3);
    assert_eq!(listed.len(), 10);
    for resource in listed {
        assert_eq!(text(&fixture.files, &resource.reference), resource.name);
    }
}

#[test]
fn utf_8_is_text_and_other_contents_are_blobs() {
    let fixture = Fixture::new("");
    fixture.write("a.md", "grün");
    fixture.write("bad.txt", [b'a', 0xff]);
    fixture.write("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff");
    fixture.write("empty", "");
    let contents = |reference| one(&fixture.files, reference);
    assert_eq!(contents("a.md"), Contents::text("a.md", "grün").mime_type("text/markdown"));
    assert_eq!(contents("bad.txt"), Contents::blob("bad.txt", [b'a', 0xff]).mime_type("text/plain"));
    assert_eq!(contents("picture").mime_type.as_deref(), Some("image/png"));
    assert_eq!(contents("empty"), Contents::text("empty", "").mime_type("text/plain"));
}

#[test]
fn absent_files_are_not_found() {
    let fixture = Fixture::new("");
    fixture.write("a/b", "x");
    for reference in ["c", "a/c", "a/b/", "a/b/c", "a//b", "a%2Fb", "a%00", "%0A"] {
        assert_eq!(fixture.files.read(reference), Err(Error::NotFound), "{reference}");
    }
    for reference in ["..", "../x", "a/../a/b", "%2e%2e/x", ".", "%FF", "a/b?x=1", "a?x=1"] {
        assert!(matches!(fixture.files.read(reference), Err(Error::Invalid(_))), "{reference}");
    }
}

#[test]
fn ignored_files_are_neither_listed_nor_read() {
    let fixture = Fixture::new("*.tmp, /drafts/");
    for path in ["a.md", "a.tmp", ".env", ".git/config", "drafts/a.md", "b/drafts/a.md", "b/.x/y"] {
        fixture.write(path, "x");
    }
    assert_eq!(references(&fixture.files.list_resources(None).unwrap()), ["a.md", "b/drafts/a.md"]);
    for reference in ["a.tmp", ".env", ".git/config", ".git", "drafts/a.md", "drafts", "drafts/", "b/.x/y"] {
        assert_eq!(fixture.files.read(reference), Err(Error::NotFound), "{reference}");
    }
    assert!(!text(&fixture.files, "").contains("drafts"));
}

#[test]
fn links_are_followed_only_inside_the_granted_directory() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let fixture = Fixture::new("");
    fixture.write("real/file", "inside");
    fixture.link("real/file", "good");
    fixture.link(outside.path().join("secret"), "out");
    fixture.link(outside.path(), "out-dir");
    fixture.link("nowhere", "dangling");
    fixture.link("loop", "loop");
    fixture.link(".", "real/up");
    assert_eq!(references(&fixture.files.list_resources(None).unwrap()), ["good", "real/file"]);
    assert_eq!(text(&fixture.files, "good"), "inside");
    assert_eq!(text(&fixture.files, "real/up/file"), "inside");
    assert!(matches!(fixture.files.read("out"), Err(Error::Denied(_))));
    assert!(matches!(fixture.files.read("out-dir/secret"), Err(Error::Denied(_))));
    assert_eq!(fixture.files.read("dangling"), Err(Error::NotFound));
    assert!(fixture.files.read("loop").is_err());
}

#[test]
fn a_pipe_is_neither_listed_nor_opened() {
    let fixture = Fixture::new("");
    let status = std::process::Command::new("mkfifo").arg(fixture.dir.path().join("pipe")).status();
    assert!(status.is_ok_and(|status| status.success()));
    fixture.link("pipe", "link");
    assert_eq!(all(&fixture.files, 10), []);
    // Opening it would block for ever.
    assert!(matches!(fixture.files.read("pipe"), Err(Error::Denied(_))));
    assert!(matches!(fixture.files.read("link"), Err(Error::Denied(_))));
    assert!(!text(&fixture.files, "").contains("pipe"));
}

#[test]
fn names_that_do_not_fit_into_a_reference_are_left_out() {
    let fixture = Fixture::new("");
    fs::write(fixture.dir.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    let deep = ["d".repeat(200).as_str(); 12].join("/");
    fixture.write(&deep, "");
    fixture.write("z", "");
    assert_eq!(references(&fixture.files.list_resources(None).unwrap()), ["z"]);
}

#[test]
fn a_directory_reads_as_a_listing() {
    let fixture = Fixture::new("");
    fixture.write("n/plan (1).md", "# The plan\n");
    fixture.write("n/sub/x", "12345");
    fixture.write("n/[y]", "");
    for path in ["plan (1).md", "[y]"] {
        let file = fs::File::options().write(true).open(fixture.dir.path().join("n").join(path)).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
    }
    assert_eq!(
        text(&fixture.files, "n/"),
        "# n\n\n\
         - [\\[y\\]](%5By%5D) (0 bytes, 1970-01-01T00:00:00Z)\n\
         - [plan (1).md](plan%20%281%29.md): The plan (11 bytes, 1970-01-01T00:00:00Z)\n\
         - [sub/](sub/)\n"
    );
    // Relative to `n`, links begin with `n/`.
    assert!(text(&fixture.files, "n").contains("- [sub/](n/sub/)\n"));
    assert_eq!(text(&fixture.files, ""), "# /\n\n- [n/](n/)\n");
    assert_eq!(one(&fixture.files, "n").reference, "n");
}

#[test]
fn a_large_directory_is_listed_in_parts() {
    let fixture = Fixture::new("");
    for n in 0..1200 {
        fixture.write(&format!("{n:04}&"), "");
    }
    let first = text(&fixture.files, "");
    assert_eq!(first.lines().filter(|line| line.starts_with("- ")).count(), 1000);
    assert!(first.ends_with("\n200 more: [next](?after=0999%26)\n"), "{first}");
    let second = text(&fixture.files, "?after=0999%26");
    assert_eq!(second.lines().filter(|line| line.starts_with("- ")).count(), 200);
    assert!(second.contains("1199"));
}

#[test]
fn a_file_of_any_size_is_read_in_parts() {
    let fixture = Fixture::new("");
    let file = fs::File::create(fixture.dir.path().join("large")).unwrap();
    file.set_len(1 << 40).unwrap();
    let read = fixture.files.read_part("large", None, 1000).unwrap();
    assert_eq!(read.extent, Some(belljar_guest::Extent::new(belljar_guest::Unit::Bytes, 0, 1000, 1 << 40)));
    let listed = all(&fixture.files, 10);
    assert!(listed[0].description.as_deref().is_some_and(|text| text.contains("?lines=")));
    // A host without parts gets a reason.
    let Err(Error::Failed(why)) = fixture.files.read("large") else { panic!("read") };
    assert!(why.contains("16777216 bytes"), "{why}");
}

#[test]
fn each_of_several_grants_is_a_first_segment() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(a.path().join("1"), "a1").unwrap();
    fs::write(b.path().join("2"), "b2").unwrap();
    let files = over(&[("/notes", a.path()), ("/srv/docs", b.path())], "");
    assert_eq!(references(&files.list_resources(None).unwrap()), ["notes/1", "srv-docs/2"]);
    assert_eq!(text(&files, "srv-docs/2"), "b2");
    assert_eq!(text(&files, ""), "# /\n\n- [notes/](notes/)\n- [srv-docs/](srv-docs/)\n");
    assert!(text(&files, "notes/").starts_with("# notes\n\n- [1](1) (2 bytes"));
    for reference in ["1", "other/1", "notes/2"] {
        assert_eq!(files.read(reference), Err(Error::NotFound), "{reference}");
    }
    assert_eq!(all(&files, 1).len(), 2);
}

#[test]
fn grants_must_have_different_names() {
    let dir = tempfile::tempdir().unwrap();
    let at = || Directory::at(dir.path()).unwrap();
    assert!(matches!(Tree::new(vec![("/a/b".into(), at()), ("/a-b".into(), at())], ""), Err(Error::Failed(_))));
}

#[test]
fn the_error_without_a_grant_names_the_missing_grant() {
    let Err(Error::Denied(why)) = Files::open() else { panic!("opened") };
    assert!(why.contains("fs = { \"/files\" = \"DIR\" }"), "{why}");
}

#[test]
fn a_deleted_granted_directory_is_an_error() {
    let fixture = Fixture::new("");
    fs::remove_dir(fixture.dir.path()).unwrap();
    assert_eq!(fixture.files.list_resources(None), Err(Error::NotFound));
}

#[test]
fn completes_paths() {
    let fixture = Fixture::new("");
    for path in ["notes/plan.md", "notes/play/x", "notes/.p", "north", "south"] {
        fixture.write(path, "");
    }
    let complete = |value| fixture.files.complete(TEMPLATE, &Argument::new("path", value), &[]).unwrap();
    assert_eq!(complete("no"), Suggestions::new(["north", "notes/"]).total(2));
    assert_eq!(complete("notes/pl").values, ["notes/plan.md", "notes/play/"]);
    assert_eq!(complete("nowhere/x"), Suggestions::default());
    assert!(fixture.files.complete(TEMPLATE, &Argument::new("path", "../x"), &[]).is_err());
}
