//! Tests of the provider over documents from other programs (`fixtures/make.py`), and over damaged ones.

mod broken;
mod pictures;
mod writing;

use std::fs;
use std::path::Path;

use belljar_guest::Body;
use belljar_tree::Directory;
use serde_json::Value;

use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    documents: Documents,
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

impl Fixture {
    /// A provider over a copy of the fixtures, without passwords.
    fn new() -> Self {
        Fixture::with(&[])
    }

    fn with(passwords: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(fixtures()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        }
        let tree = Tree::new(vec![("/docs".to_owned(), Directory::at(dir.path()).unwrap())], "").unwrap();
        let passwords = passwords.iter().map(|password| (*password).to_owned()).collect();
        Fixture { dir, documents: Documents { tree, passwords } }
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.dir.path().join(name), contents).unwrap();
    }

    fn one(&self, reference: &str) -> Contents {
        let mut reading = self.documents.read(reference).unwrap_or_else(|error| panic!("{reference}: {error}"));
        assert_eq!(reading.contents.len(), 1);
        reading.contents.remove(0)
    }

    fn text(&self, reference: &str) -> String {
        match self.one(reference).body {
            Body::Text(text) => text,
            Body::Blob(_) => panic!("a blob"),
        }
    }

    fn blob(&self, reference: &str) -> Vec<u8> {
        match self.one(reference).body {
            Body::Text(_) => panic!("a text"),
            Body::Blob(bytes) => bytes,
        }
    }

    fn error(&self, reference: &str) -> String {
        match self.documents.read(reference) {
            Err(error) => error.to_string(),
            Ok(reading) => panic!("{reference}: {:?}", reading.contents),
        }
    }

    fn info(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{name}/info?format=json"))).unwrap()
    }
}

/// The text of the first page of `latin.pdf`, equal in all its encodings.
const FIRST: &str = "[page 1 of 5]\n\nChapter 1\n\nGröße, Straße, café – “quoted” €5\nThe quick brown fox 1.\n\n";

#[test]
fn text_is_the_same_in_every_encoding_of_a_document() {
    let fixture = Fixture::new();
    for name in ["latin", "objects", "linear", "attached", "rc4", "aes128", "aes256"] {
        let text = fixture.text(&format!("{name}.pdf"));
        assert!(text.starts_with(FIRST), "{name}: {text}");
        assert!(text.ends_with("The quick brown fox 5.\n\n"), "{name}: {text}");
        assert_eq!(
            fixture.text(&format!("{name}.pdf/pages/1")).lines().last().unwrap(),
            format!("[4 pages more; next: {name}.pdf/pages/2]")
        );
        let info = fixture.info(&format!("{name}.pdf"));
        assert_eq!((info["pages"].as_u64(), info["title"].as_str()), (Some(5), Some("Grüße aus Köln")), "{name}");
        assert_eq!(info["encrypted"].as_bool(), Some(["rc4", "aes128", "aes256"].contains(&name)), "{name}");
    }
}

#[test]
fn fonts_of_many_kinds_are_read() {
    let fixture = Fixture::new();
    let text = fixture.text("unicode.pdf");
    // Ligatures become letters, because a search for a word must find it.
    assert!(text.contains("find the flow: Zürich, Århus, œuvre, Æther, Łód\nsecond line\n"), "{text}");
    assert!(fixture.text("cid.pdf").contains("日本語のテキスト"), "{}", fixture.text("cid.pdf"));
    let text = fixture.text("form.pdf");
    assert!(text.contains("Name:") && text.contains("Filled In"), "{text}");
}

#[test]
fn columns_are_read_in_reading_order_or_by_position() {
    let fixture = Fixture::new();
    let text = fixture.text("columns.pdf");
    assert!(text.contains("left one\nleft two\nleft three\n\nright one\nright two\nright three\n"), "{text}");
    assert!(text.contains("r0c0  r0c1  r0c2\nr1c0  r1c1  r1c2\n"), "{text}");
    let text = fixture.text("columns.pdf/pages/1?order=position");
    assert!(text.contains("left one  right one\nleft two  right two\n"), "{text}");
}

#[test]
fn rotated_pages_are_read_upright() {
    let text = Fixture::new().text("rotated.pdf");
    assert!(text.contains("turned page\nsecond line\n\ntext that runs upwards\n"), "{text}");
}

#[test]
fn a_range_of_pages_names_the_next_range() {
    let fixture = Fixture::new();
    let text = fixture.text("latin.pdf/pages/2-3");
    assert!(text.starts_with("[page 2 of 5]\n\nChapter 2\n") && text.contains("[page 3 of 5]"), "{text}");
    assert!(text.ends_with("[2 pages more; next: latin.pdf/pages/4-5]\n"), "{text}");
    assert!(fixture.text("latin.pdf/pages/5-").starts_with("[page 5 of 5]"));
    assert!(fixture.text("latin.pdf/pages/4-900").contains("[page 5 of 5]"));
    assert!(fixture.error("latin.pdf/pages/6").contains("there is no page 6: \"latin.pdf\" has 5 pages"));
    assert!(fixture.error("latin.pdf/pages/x").contains("expected a page or a range, such as 3, 3-7 or 3-"));
    for absent in ["no.pdf", "latin.pdf/x", "photo.jpg", "latin.pdf/attachments/x"] {
        assert_eq!(fixture.documents.read(absent), Err(Error::NotFound), "{absent}");
    }
}

#[test]
fn info_has_the_facts_and_the_outline() {
    let fixture = Fixture::new();
    let info = fixture.info("latin.pdf");
    assert_eq!((info["author"].as_str(), info["keywords"].as_str()), (Some("Anna Müller"), Some("one, two")));
    let outline: Vec<String> = info["outline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {} {}", entry["depth"], entry["title"].as_str().unwrap(), entry["page"]))
        .collect();
    let expected = [
        "0 Chapter 1 1",
        "0 Chapter 2 2",
        "1 Section 2.1 – Größe 2",
        "0 Chapter 3 3",
        "0 Chapter 4 4",
        "0 Chapter 5 5",
    ];
    assert_eq!(outline, expected);
    let text = fixture.text("latin.pdf/info");
    assert!(text.starts_with("# Grüße aus Köln\n"), "{text}");
    assert!(text.contains("  - [Section 2.1 – Größe](../latin.pdf/pages/2) (page 2)\n"), "{text}");
    // An incremental update at the end of the file takes effect.
    let info = fixture.info("incremental.pdf");
    assert_eq!((info["title"].as_str(), info["pages"].as_u64()), (Some("Changed later"), Some(6)));
    assert!(fixture.text("incremental.pdf/pages/6").starts_with("[page 6 of 6: no text]"));
}

#[test]
fn attached_files_can_be_read() {
    let fixture = Fixture::new();
    let info = fixture.info("attached.pdf");
    assert_eq!(info["attachments"], serde_json::json!([{ "name": "daten (1).csv", "description": "figures" }]));
    let contents = fixture.one("attached.pdf/attachments/daten%20(1).csv");
    assert_eq!((contents.body, contents.mime_type.as_deref()), (Body::Text("a,b\n1,2\n".into()), Some("text/csv")));
    assert!(fixture.text("attached.pdf/info").contains("(../attached.pdf/attachments/daten%20%281%29.csv): figures"));
}

#[test]
fn a_password_opens_a_protected_document() {
    let why = Fixture::new().error("locked.pdf");
    assert!(
        why.contains("\"locked.pdf\" is protected by a password: the operator can give it in the setting PASSWORD"),
        "{why}"
    );
    let why = Fixture::with(&["falsch"]).error("locked.pdf/info");
    assert!(why.contains("no password in the setting PASSWORD"), "{why}");
    let fixture = Fixture::with(&["falsch", "geheim"]);
    assert!(fixture.text("locked.pdf").starts_with(FIRST));
    assert!(fixture.text("latin.pdf").starts_with(FIRST));
}

#[test]
fn documents_are_listed_completed_and_have_revisions() {
    let fixture = Fixture::new();
    let page = fixture.documents.list_resources(None).unwrap();
    let names: Vec<&str> = page.resources.iter().map(|resource| resource.reference.as_str()).collect();
    assert_eq!(names.len(), fs::read_dir(fixtures()).unwrap().count() - 2, "{names:?}");
    let (mut start, mut one_by_one) = (String::new(), Vec::new());
    loop {
        let page = fixture.documents.page(start, 1).unwrap();
        one_by_one.extend(page.resources.into_iter().map(|resource| resource.reference));
        let Some(next) = page.next_cursor else { break };
        start = reference::decode(&next).unwrap();
    }
    assert_eq!(one_by_one, names);
    assert!(fixture.text("").contains("- [latin.pdf](latin.pdf): [facts and outline](latin.pdf/info)"));
    let complete = |template: &str, name: &str, value: &str, known: &[(&str, &str)]| {
        let known: Vec<Argument> = known.iter().map(|(name, value)| Argument::new(*name, *value)).collect();
        fixture.documents.complete(template, &Argument::new(name, value), &known).unwrap().values
    };
    assert_eq!(complete(INFO, "path", "li", &[]), ["linear.pdf"]);
    assert_eq!(complete(PAGES, "pages", "", &[("path", "latin.pdf")]), ["1", "2", "3", "4", "5", "1-5"]);
    assert_eq!(complete(IMAGE, "image", "", &[("path", "scanned.pdf"), ("page", "1")]), ["1"]);
    assert_eq!(complete(ATTACHMENT, "name", "", &[("path", "attached.pdf")]), ["daten (1).csv"]);
    assert_eq!(complete(PAGES, "pages", "", &[("path", "no.pdf")]), [""; 0]);
    let of = |reference: &str| fixture.documents.resource_revision(reference).unwrap();
    let before = (of("latin.pdf"), fixture.documents.catalog_revision().unwrap());
    assert_eq!(of("latin.pdf/pages/2"), before.0);
    fixture.write("latin.pdf", "changed");
    assert!(of("latin.pdf") != before.0 && fixture.documents.catalog_revision().unwrap() != before.1);
}
