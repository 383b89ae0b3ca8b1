//! The provider over directories of this machine.

use std::fs;
use std::time::{Duration, SystemTime};

use belljar_guest::{Body, Contents};
use belljar_tree::Directory;

use super::*;

/// A provider over an empty directory.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
    images: Images,
}

impl Fixture {
    fn new(gps: &str) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::new(vec![("/data".into(), Directory::at(dir.path()).unwrap())], "").unwrap();
        Fixture { dir, images: Images { tree, settings: Settings::parse(Some(gps), None).unwrap() } }
    }

    /// Writes a file whose time is so many seconds after others.
    fn write(&self, path: &str, bytes: &[u8], seconds: u64) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    fn read(&self, reference: &str) -> Vec<Contents> {
        self.images.read(reference).unwrap_or_else(|error| panic!("{reference}: {error}")).contents
    }

    fn fails(&self, reference: &str) -> String {
        self.images.read(reference).expect_err(reference).to_string()
    }
}

/// A PNG of one colour.
fn png(width: u32, height: u32, colour: [u8; 4]) -> Vec<u8> {
    let raster = scale::Raster::filled(width, height, colour).unwrap();
    encode::encode(&raster, format::Format::Png, None, Some(encode::Wanted::Png)).unwrap().bytes
}

fn blob(contents: &Contents) -> &[u8] {
    match &contents.body {
        Body::Blob(bytes) => bytes,
        Body::Text(text) => panic!("text: {text}"),
    }
}

fn text(contents: &Contents) -> &str {
    match &contents.body {
        Body::Text(text) => text,
        Body::Blob(_) => panic!("a blob"),
    }
}

#[test]
fn references_name_pictures_and_what_is_made_of_them() {
    let fixture = Fixture::new("");
    fixture.write("a/b.png", &png(4, 2, [1, 2, 3, 255]), 0);
    fixture.write("a/words.png", b"words", 0);
    fixture.write("sheet/latest", &png(1, 1, [9; 4]), 0);
    assert_eq!(blob(&fixture.read("a/b.png")[0]), png(4, 2, [1, 2, 3, 255]));
    assert_eq!(fixture.read("a/b.png?size=2&format=jpeg")[0].mime_type.as_deref(), Some("image/jpeg"));
    assert!(text(&fixture.read("a/b.png/info")[0]).contains("\"width\": 4"));
    assert!(text(&fixture.read("a")[0]).contains("- [b.png](a/b.png) (PNG, "));
    assert!(text(&fixture.read("")[0]).contains("- [a/](a/)"));
    // A directory and a picture come before what has the same name.
    assert!(text(&fixture.read("sheet")[0]).contains("# Pictures in sheet"));
    assert_eq!(fixture.read("sheet/latest")[0].mime_type.as_deref(), Some("image/png"));
    for (reference, why) in [
        ("a/words.png", "\"a/words.png\" is no picture"),
        ("a/b.png?size=0", "size \"0\": expected a number from 1 to 2048"),
        ("a/b.png?format=png", "expected \"size\", too"),
        ("a/b.png?size=9&format=gif", "format \"gif\": expected jpeg or png"),
        ("a/b.png?width=9", "unknown parameter \"width\": expected \"size\", \"max\", \"format\""),
        ("a/b.png/info?x=1", "unknown parameter \"x\": expected none"),
        ("a/latest?n=21", "n \"21\": expected a number from 1 to 20"),
    ] {
        let error = fixture.fails(reference);
        assert!(error.contains(why), "{reference}: {error}");
    }
    for absent in ["b.png", "a/b.png/x", "a/info", "info", "a/b.png/sheet", "x/latest", "a/b.png/"] {
        assert_eq!(fixture.images.read(absent), Err(Error::NotFound), "{absent}");
    }
}

#[test]
fn a_picture_that_does_not_fit_is_smaller_with_a_note() {
    let fixture = Fixture::new("");
    let bytes = png(600, 300, [200, 10, 10, 255]);
    fixture.write("a.png", &bytes, 0);
    let most = bytes.len() as u64;
    let whole = fixture.images.read_part("a.png", None, most).unwrap();
    assert_eq!((whole.contents.len(), blob(&whole.contents[0])), (1, bytes.as_slice()));
    // Less than the note needs: no picture fits.
    let error = fixture.images.read_part("a.png", None, 900).unwrap_err().to_string();
    assert!(error.contains("no picture fits into"), "{error}");
    let larger = [bytes.as_slice(), &vec![0; 6000]].concat();
    fixture.write("b.png", &larger, 0);
    let smaller = fixture.images.read_part("b.png", None, 6000).unwrap().contents;
    assert_eq!(smaller[0].mime_type.as_deref(), Some("image/jpeg"));
    let note = text(&smaller[1]);
    assert!(
        note.contains("more than the 6000 of an answer: this is a smaller picture of ")
            && note.contains("of 600 by 300"),
        "{note}"
    );
    let part = fixture.images.read_part("a.png", Some(Range::bytes(0, 8)), most).unwrap();
    assert_eq!(blob(&part.contents[0]), b"\x89PNG\r\n\x1a\n");
    fixture.write("c.svg", &[b"<svg>".as_slice(), &[b' '; 99]].concat(), 0);
    let error = fixture.images.read_part("c.svg", None, 99).unwrap_err().to_string();
    assert!(error.contains("cannot be made smaller, because an SVG is a drawing as text"), "{error}");
}

#[test]
fn the_newest_come_first_and_change_the_revision() {
    let fixture = Fixture::new("");
    assert!(fixture.fails("latest").contains("there is no picture among the newest"));
    for (name, seconds) in [("b/old.png", 1), ("a.png", 3), ("c.png", 3), ("d.txt", 9)] {
        let bytes = if name == "d.txt" { b"words".to_vec() } else { png(1, 1, [5; 4]) };
        fixture.write(name, &bytes, seconds);
    }
    let references = |reference: &str| -> Vec<String> {
        let read = fixture.read(reference);
        let (names, pictures) = read.split_last().unwrap();
        assert!(read.iter().all(|contents| contents.reference == reference));
        let names: serde_json::Value = serde_json::from_str(text(names)).unwrap();
        let names = names["pictures"].as_array().unwrap();
        assert_eq!(names.len(), pictures.len());
        names.iter().map(|name| name["reference"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(references("latest"), ["a.png"]);
    assert_eq!(references("latest?n=5"), ["a.png", "c.png", "b/old.png"]);
    assert_eq!(references("b/latest"), ["b/old.png"]);
    let revision = || fixture.images.resource_revision("latest").unwrap();
    let before = revision();
    fixture.write("b/old.png", &png(1, 1, [5; 4]), 2);
    assert_eq!(revision(), before);
    fixture.write("b/new.png", &png(1, 1, [5; 4]), 4);
    assert_ne!(revision(), before);
}

#[test]
fn sheets_show_each_picture_once() {
    let fixture = Fixture::new("");
    for number in 0..23 {
        fixture.write(&format!("{number:02}.png"), &png(200, 100, [number * 10, 0, 0, 255]), 0);
    }
    fixture.write("05-broken.png", b"\x89PNG\r\n\x1a\nbroken", 0);
    fixture.write("06-words.txt", b"words", 0);
    let mut reference = "sheet".to_owned();
    let mut found = Vec::new();
    loop {
        let sheet = fixture.read(&reference);
        let about: serde_json::Value = serde_json::from_str(text(&sheet[1])).unwrap();
        for picture in about["pictures"].as_array().unwrap() {
            found.push(picture["name"].as_str().unwrap().to_owned());
            let is_broken = picture["name"] == "05-broken.png";
            assert_eq!(
                picture["not_shown"].as_str().is_some_and(|why| why.contains("damaged")),
                is_broken,
                "{picture}"
            );
        }
        let Some(next) = about["next"].as_str() else { break };
        reference = next.to_owned();
    }
    let mut expected: Vec<String> = (0..23).map(|number| format!("{number:02}.png")).collect();
    expected.insert(5, "05-broken.png".to_owned());
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn pages_and_directories_list_only_pictures() {
    let fixture = Fixture::new("");
    for (name, bytes) in [
        ("a.png", png(1, 1, [1; 4])),
        ("b.txt", png(1, 1, [1; 4])),
        ("c.png", b"words".to_vec()),
        ("d/e.gif", b"GIF89a".to_vec()),
        ("f.jpg", Vec::new()),
    ] {
        fixture.write(name, &bytes, 7);
    }
    let (mut cursor, mut found) = (None::<String>, Vec::new());
    loop {
        let page = fixture.images.page(cursor.as_deref(), 1).unwrap();
        found.extend(page.resources.into_iter().map(|entry| (entry.reference, entry.mime_type.unwrap())));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let listed: Vec<(&str, &str)> = found.iter().map(|(reference, kind)| (reference.as_str(), kind.as_str())).collect();
    assert_eq!(listed, [("a.png", "image/png"), ("b.txt", "image/png"), ("d/e.gif", "image/gif")]);
    let below = fixture.images.below("", None, 100).unwrap();
    let below: Vec<&str> = below.resources.iter().map(|entry| entry.reference.as_str()).collect();
    assert_eq!(below, ["a.png", "b.txt", "d/"]);
    let complete =
        |template, name, value| fixture.images.complete(template, &Argument::new(name, value), &[]).unwrap().values;
    assert_eq!(complete(PICTURE, "path", ""), ["a.png", "b.txt", "d/"]);
    assert_eq!(complete(SHEET_BELOW, "path", ""), ["d"]);
    assert_eq!(complete(PICTURE, "size", "5"), ["512"]);
    assert!(fixture.images.complete("x", &Argument::new("path", ""), &[]).is_err());
}

#[test]
fn settings_are_checked() {
    for (gps, pixels) in [("maybe", "1"), ("show", "many")] {
        assert!(matches!(Settings::parse(Some(gps), Some(pixels)), Err(Error::Failed(_))), "{gps} {pixels}");
    }
    assert!(Settings::parse(Some(" show "), None).unwrap().shows_gps);
    assert!(!Settings::parse(Some("hide"), Some("")).unwrap().shows_gps);
    assert!(!Settings::parse(None, None).unwrap().shows_gps);
}

#[test]
fn positions_are_shown_only_if_the_operator_allows_it() {
    let mut bytes = png(4, 2, [1, 2, 3, 255]);
    let exif = hide::tests::chunk(b"eXIf", &hide::tests::exif_data(true));
    bytes.splice(33..33, exif);
    for (setting, shown) in [("show", true), ("hide", false)] {
        let fixture = Fixture::new(setting);
        fixture.write("a.png", &bytes, 0);
        let info: serde_json::Value = serde_json::from_str(text(&fixture.read("a.png/info")[0])).unwrap();
        assert_eq!(info["gps"]["latitude"].as_f64(), shown.then_some(48.856_667), "{info}");
        assert_eq!((&info["orientation"], &info["upright"]["width"]), (&6.into(), &2.into()));
        assert_eq!(blob(&fixture.read("a.png")[0]) == bytes, shown);
        assert_eq!(shown, info["gps"].as_str().is_none_or(|gps| !gps.starts_with("hidden")));
    }
}
