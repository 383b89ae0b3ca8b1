//! `plugins/pdf`: documents of many kinds, locked, damaged and large ones.

use belljar_tests::{Client, Era, Stdio, places};
use serde_json::Value;

use crate::place::{fixtures, over_data, usage};

const BASE: &str = "belljar://pdf/";

fn read(client: &mut Client<Stdio>, reference: &str) -> String {
    client.text(&format!("{BASE}{reference}"))
}

fn error(client: &mut Client<Stdio>, reference: &str) -> String {
    client.read(&format!("{BASE}{reference}")).expect_err(reference).to_string()
}

#[test]
fn documents_of_all_kinds_are_read_within_the_limits() {
    let site = over_data("pdf", "");
    fixtures(&site, "pdf");
    let mut client = site.stdio(Era::Modern);
    for name in ["latin", "objects", "linear", "attached", "rc4", "aes128", "aes256", "incremental"] {
        let text = read(&mut client, &format!("{name}.pdf"));
        assert!(text.contains("Größe, Straße, café – “quoted” €5\nThe quick brown fox 1.\n"), "{name}: {text}");
        let used = usage(&site, &format!("{name}.pdf"));
        assert!(
            used["fuel"].as_u64().unwrap() < 500_000_000 && used["memory"].as_u64().unwrap() < 24 << 20,
            "{name}: {used}"
        );
    }
    for (reference, expected) in [
        ("unicode.pdf", "find the flow: Zürich"),
        ("cid.pdf", "日本語のテキスト"),
        ("columns.pdf", "left three\n\nright one"),
        ("columns.pdf/pages/1?order=position", "left one  right one"),
        ("form.pdf", "Filled In"),
        ("rotated.pdf", "turned page\nsecond line"),
        ("scanned.pdf", "no text, 1 image, perhaps scanned"),
        ("latin.pdf/info", "  - [Section 2.1 – Größe](../latin.pdf/pages/2) (page 2)"),
        ("images.pdf/pages/1/images", "- [image 1](images/1): 60 by 40 pixels, JPEG"),
        ("attached.pdf/attachments/daten%20(1).csv", "a,b\n1,2\n"),
    ] {
        let text = read(&mut client, reference);
        assert!(text.contains(expected), "{reference}: {text}");
    }
    let info: Value = serde_json::from_str(&read(&mut client, "latin.pdf/info?format=json")).unwrap();
    assert_eq!((info["pages"].as_u64(), info["title"].as_str()), (Some(5), Some("Grüße aus Köln")));
    assert!(client.close().status.success());
}

/// An image comes through as the bytes that it is, and says what it is.
#[test]
fn an_image_is_a_blob() {
    let site = over_data("pdf", "");
    fixtures(&site, "pdf");
    let mut client = site.stdio(Era::Modern);
    for (image, kind, begins) in
        [(1, "image/jpeg", &b"\xff\xd8\xff"[..]), (2, "image/png", b"\x89PNG\r\n"), (4, "image/png", b"\x89PNG")]
    {
        let answer = client.read(&format!("{BASE}images.pdf/pages/1/images/{image}")).unwrap();
        let contents = &answer["contents"][0];
        assert_eq!(contents["mimeType"], kind, "{image}");
        let bytes =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, contents["blob"].as_str().unwrap());
        assert!(bytes.unwrap().starts_with(begins), "{image}");
    }
}

#[test]
fn locked_damaged_and_empty_documents_are_told_apart() {
    let site = over_data("pdf", "");
    fixtures(&site, "pdf");
    let whole = std::fs::read(site.path("data/latin.pdf")).unwrap();
    let at = whole.windows(9).rposition(|part| part == b"startxref").unwrap();
    site.write("data/wrong-table.pdf", [&whole[..at], b"startxref\n99999999\n%%EOF\n"].concat());
    site.write("data/truncated.pdf", &whole[..whole.len() * 7 / 10]);
    site.write("data/empty.pdf", "");
    site.write("data/words.pdf", "no document at all");
    site.write("data/head.pdf", "%PDF-1.7\nand no more");
    let mut client = site.stdio(Era::Modern);
    assert!(read(&mut client, "wrong-table.pdf").contains("The quick brown fox 1."));
    match client.read(&format!("{BASE}truncated.pdf")) {
        Ok(answer) => assert!(answer["contents"][0]["text"].as_str().unwrap().contains("[page 1 of ")),
        Err(told) => assert!(
            told.to_string().contains("\\\"truncated.pdf\\\"") || told.to_string().contains("\"truncated.pdf\""),
            "{told}"
        ),
    }
    for (name, expected) in [
        ("locked.pdf", "is protected by a password: the operator can give it in the setting PASSWORD"),
        ("empty.pdf", "is empty"),
        ("words.pdf", "is no PDF, whatever its name says"),
        ("head.pdf", "is too damaged to be read"),
        ("latin.pdf/pages/9", "there is no page 9"),
    ] {
        let told = error(&mut client, name);
        assert!(told.contains(expected), "{name}: {told}");
    }
    assert!(client.close().status.success());

    let site = over_data("pdf", "env = { PASSWORD = \"geheim\" }");
    fixtures(&site, "pdf");
    let mut client = site.stdio(Era::Modern);
    assert!(read(&mut client, "locked.pdf").contains("The quick brown fox 1."));
}

/// A document that does not fit is refused with the limit that would let it in, and with it, it is read.
#[test]
fn a_document_that_does_not_fit_says_what_would_help() {
    let large = |site: &belljar_tests::Site| {
        let mut bytes = std::fs::read(places::repository().join("plugins/pdf/fixtures/latin.pdf")).unwrap();
        let at = bytes.windows(9).rposition(|part| part == b"startxref").unwrap();
        let end = bytes.split_off(at);
        bytes.extend_from_slice(&vec![b' '; 100 << 20]);
        bytes.extend_from_slice(&end);
        site.write("data/large.pdf", bytes);
    };
    let tight = over_data("pdf", "");
    large(&tight);
    let mut client = tight.stdio(Era::Modern);
    let told = error(&mut client, "large.pdf");
    assert!(told.contains("for which there is no room") && told.contains("raise the limit"), "{told}");
    let roomy = over_data("pdf", "[mounts.pdf.limits]\nmemory = \"192MiB\"");
    large(&roomy);
    let mut client = roomy.stdio(Era::Modern);
    assert!(read(&mut client, "large.pdf").contains("The quick brown fox 1."));
}
