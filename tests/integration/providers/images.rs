//! `plugins/images` in the real server: the list, originals, thumbnails, sheets, and the sizes that its README promises.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_tests::{Client, Era, Site, Stdio};
use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Value, json};
use std::io::Write as _;

use crate::providers::support::{json as parse, over_data, usage};

const BASE: &str = "belljar://images/";

/// A PNG of 8 bits a sample with these rows, without their filters.
fn png(width: u32, height: u32, colour: u8, row: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    for y in 0..height {
        packed.write_all(&[0]).unwrap();
        packed.write_all(&row(y)).unwrap();
    }
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, colour, 0, 0, 0]);
    for (kind, data) in [(b"IHDR", header), (b"IDAT", packed.finish().unwrap()), (b"IEND", Vec::new())] {
        let mut sum = flate2::Crc::new();
        sum.update(kind);
        sum.update(&data);
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(kind);
        bytes.extend(data);
        bytes.extend(sum.sum().to_be_bytes());
    }
    bytes
}

/// A small grey picture.
fn grey(value: u8) -> Vec<u8> {
    png(40, 30, 0, |_| vec![value; 40])
}

fn contents(client: &mut Client<Stdio>, reference: &str) -> Vec<Value> {
    let read = client.read(&format!("{BASE}{reference}")).unwrap_or_else(|error| panic!("{reference}: {error}"));
    read["contents"].as_array().unwrap().clone()
}

fn blob(contents: &Value) -> Vec<u8> {
    STANDARD.decode(contents["blob"].as_str().unwrap()).unwrap()
}

fn error(client: &mut Client<Stdio>, reference: &str) -> String {
    client.read(&format!("{BASE}{reference}")).expect_err(reference).to_string()
}

/// Writes a file whose time is so many seconds after others.
fn write_at(site: &Site, name: &str, bytes: &[u8], seconds: u64) {
    let path = site.path("data").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000 + seconds);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
}

#[test]
fn pictures_are_listed_by_their_contents() {
    let site = over_data("images", "");
    write_at(&site, "a.png", &grey(1), 0);
    write_at(&site, "trip/photo.txt", &grey(2), 1);
    write_at(&site, "trip/words.png", b"no picture", 2);
    write_at(&site, "trip/empty.jpg", b"", 3);
    let mut client = site.stdio(Era::Stateless);
    let list = client.resources();
    let mut found: Vec<(&str, &str)> =
        list.iter().map(|entry| (entry["uri"].as_str().unwrap(), entry["mimeType"].as_str().unwrap())).collect();
    found.sort_unstable();
    assert_eq!(found, [("belljar://images/a.png", "image/png"), ("belljar://images/trip/photo.txt", "image/png")]);
    let photo = list.iter().find(|entry| entry["name"] == "photo.txt").unwrap();
    assert_eq!(photo["size"], json!(grey(2).len()));
    assert_eq!(photo["annotations"]["lastModified"], "2023-11-14T22:13:21Z");
    let index = client.text(&format!("{BASE}trip/"));
    assert!(index.contains("- [photo.txt](photo.txt) (PNG, ") && !index.contains("words.png"), "{index}");
    let why = error(&mut client, "trip/words.png");
    assert!(why.contains("is no picture: expected the first bytes of JPEG, PNG"), "{why}");
    assert!(client.close().status.success());
}

#[test]
fn latest_and_sheets_follow_time_and_name() {
    let site = over_data("images", "");
    for number in 0..27_u8 {
        write_at(&site, &format!("shots/{number:02}.png"), &grey(number * 9), u64::from(number % 25));
    }
    write_at(&site, "shots/notes.txt", b"newest, but no picture", 99);
    let mut client = site.stdio(Era::Stateless);
    let newest = contents(&mut client, "latest");
    assert_eq!((newest.len(), blob(&newest[0])), (2, grey(24 * 9)));
    assert_eq!(parse(newest[1]["text"].as_str().unwrap())["pictures"][0]["reference"], "shots/24.png");
    let three = contents(&mut client, "shots/latest?n=3&size=16");
    let about = parse(three[3]["text"].as_str().unwrap());
    let newest: Vec<&str> =
        about["pictures"].as_array().unwrap().iter().map(|one| one["reference"].as_str().unwrap()).collect();
    assert_eq!(newest, ["shots/24.png", "shots/23.png", "shots/22.png"]);
    let (mut reference, mut names) = ("shots/sheet".to_owned(), Vec::new());
    loop {
        let sheet = contents(&mut client, &reference);
        assert_eq!((&sheet[0]["mimeType"], &sheet[1]["mimeType"]), (&json!("image/jpeg"), &json!("application/json")));
        assert!(blob(&sheet[0]).starts_with(b"\xff\xd8\xff"));
        let about = parse(sheet[1]["text"].as_str().unwrap());
        names.extend(about["pictures"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        let Some(next) = about["next"].as_str() else { break };
        reference = format!("shots/{next}");
    }
    assert_eq!(names, (0..27).map(|number| format!("{number:02}.png")).collect::<Vec<_>>());
    let to = json!({ "type": "ref/resource", "uri": "belljar://images/{+path}{?size,format}" });
    let params = json!({ "ref": to, "argument": { "name": "path", "value": "shots/n" } });
    let completed = client.request("completion/complete", params).unwrap();
    assert_eq!(completed["completion"]["values"], json!([]), "notes.txt is no picture");
    assert!(client.close().status.success());
}

/// What the README says of sizes, under the default limits.
#[test]
fn pictures_of_the_promised_sizes_are_shown_within_the_limits() {
    let site = over_data("images", "");
    let (width, height) = (3840_u32, 2160);
    // Noise, so that the file does not fit into an answer.
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(1 << 16)
    .collect();
    let row = |y: u32| {
        noise
            .iter()
            .copied()
            .cycle()
            .skip((y as usize * width as usize * 3) % noise.len())
            .take(width as usize * 3)
            .collect()
    };
    write_at(&site, "4k.png", &png(width, height, 2, row), 0);
    write_at(&site, "large.png", &png(8_000, 5_000, 0, |_| vec![9; 8_000]), 0);
    write_at(&site, "huge.png", &png(10_001, 5_000, 0, |_| vec![9; 10_001]), 0);
    let mut client = site.stdio(Era::Stateless);
    for reference in ["4k.png?size=512", "large.png?size=256"] {
        let read = contents(&mut client, reference);
        assert!(read[0]["mimeType"].as_str().unwrap().starts_with("image/"), "{read:?}");
        let used = usage(&site, reference);
        assert!(
            used["fuel"].as_u64().unwrap() < 4_500_000_000 && used["memory"].as_u64().unwrap() < 16 << 20,
            "{used}"
        );
    }
    let whole = contents(&mut client, "4k.png");
    let note = whole[1]["text"].as_str().unwrap();
    assert!(
        blob(&whole[0]).starts_with(b"\xff\xd8\xff") && note.contains("this is a smaller picture of 1024 by 576"),
        "{note}"
    );
    let why = error(&mut client, "huge.png?size=256");
    assert!(why.contains("10001 by 5000 pixels, 51 million, and at most 50 million are decoded"), "{why}");
    let why = error(&mut client, "4k.png?size=3000");
    assert!(why.contains("expected a number from 1 to 2048"), "{why}");
    assert!(client.close().status.success());
}
