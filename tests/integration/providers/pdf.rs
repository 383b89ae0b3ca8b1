//! `plugins/pdf` in the real server: documents of many kinds, also encrypted, damaged and large ones.

use belljar_tests::{Client, Era, Stdio, places};
use serde_json::Value;

use crate::providers::support::{fixtures, over_data, usage};

const BASE: &str = "belljar://pdf/";

fn read(client: &mut Client<Stdio>, reference: &str) -> String {
    client.text(&format!("{BASE}{reference}"))
}

/// The message of the error of a read.
fn error(client: &mut Client<Stdio>, reference: &str) -> String {
    client.read(&format!("{BASE}{reference}")).expect_err(reference).to_string()
}

#[test]
fn documents_of_all_kinds_are_read_within_the_limits() {
    let site = over_data("pdf", "");
    fixtures(&site, "pdf");
    let mut client = site.stdio(Era::Stateless);
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

/// The read of an image returns its bytes and its MIME type.
#[test]
fn an_image_is_read_as_a_blob() {
    let site = over_data("pdf", "");
    fixtures(&site, "pdf");
    let mut client = site.stdio(Era::Stateless);
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
fn locked_damaged_and_empty_documents_have_different_errors() {
    let site = over_data("pdf", "");
    fixtures(&site, "pdf");
    let original = std::fs::read(site.path("data/latin.pdf")).unwrap();
    let at = original.windows(9).rposition(|part| part == b"startxref").unwrap();
    site.write("data/wrong-table.pdf", [&original[..at], b"startxref\n99999999\n%%EOF\n"].concat());
    site.write("data/truncated.pdf", &original[..original.len() * 7 / 10]);
    site.write("data/empty.pdf", "");
    site.write("data/words.pdf", "no document at all");
    site.write("data/head.pdf", "%PDF-1.7\nand no more");
    let mut client = site.stdio(Era::Stateless);
    assert!(read(&mut client, "wrong-table.pdf").contains("The quick brown fox 1."));
    match client.read(&format!("{BASE}truncated.pdf")) {
        Ok(answer) => assert!(answer["contents"][0]["text"].as_str().unwrap().contains("[page 1 of ")),
        Err(error) => assert!(
            error.to_string().contains("\\\"truncated.pdf\\\"") || error.to_string().contains("\"truncated.pdf\""),
            "{error}"
        ),
    }
    for (name, expected) in [
        ("locked.pdf", "is protected by a password: the operator can give it in the setting PASSWORD"),
        ("empty.pdf", "is empty"),
        ("words.pdf", "is not a PDF document"),
        ("head.pdf", "is too damaged to be read"),
        ("latin.pdf/pages/9", "there is no page 9"),
    ] {
        let message = error(&mut client, name);
        assert!(message.contains(expected), "{name}: {message}");
    }
    assert!(client.close().status.success());

    let site = over_data("pdf", "env = { PASSWORD = \"geheim\" }");
    fixtures(&site, "pdf");
    let mut client = site.stdio(Era::Stateless);
    assert!(read(&mut client, "locked.pdf").contains("The quick brown fox 1."));
}

/// The error for a document that is too large for the memory limit says to raise the limit. With a higher limit, the document
/// is read.
#[test]
fn the_error_for_a_too_large_document_names_the_cure() {
    let write_large_document = |site: &belljar_tests::Site| {
        let mut bytes = std::fs::read(places::repository().join("plugins/pdf/fixtures/latin.pdf")).unwrap();
        let at = bytes.windows(9).rposition(|part| part == b"startxref").unwrap();
        let end = bytes.split_off(at);
        bytes.extend_from_slice(&vec![b' '; 100 << 20]);
        bytes.extend_from_slice(&end);
        site.write("data/large.pdf", bytes);
    };
    let site = over_data("pdf", "");
    write_large_document(&site);
    let mut client = site.stdio(Era::Stateless);
    let message = error(&mut client, "large.pdf");
    let is_expected = message.contains("too many for the memory limit") && message.contains("raise the limit");
    assert!(is_expected, "{message}");
    let site = over_data("pdf", "[mounts.pdf.limits]\nmemory = \"192MiB\"");
    write_large_document(&site);
    let mut client = site.stdio(Era::Stateless);
    assert!(read(&mut client, "large.pdf").contains("The quick brown fox 1."));
}

/// A document of 500 pages is read in parts under the default limits, and searched.
#[test]
fn a_document_of_500_pages_is_read_in_parts() {
    const PAGES: usize = 500;
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned()];
    let kids: Vec<String> = (0..PAGES).map(|at| format!("{} 0 R", 4 + 2 * at)).collect();
    objects.push(format!("<< /Type /Pages /Count {PAGES} /Kids [{}] >>", kids.join(" ")));
    objects.push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned());
    for page in 1..=PAGES {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R /Resources << /Font << /F 3 0 R >> >> >>",
            3 + 2 * page
        ));
        let lines =
            "(The quick brown fox jumps over the lazy dog and then it rests for a while.) Tj 0 -14 Td ".repeat(45);
        let content = format!("BT /F 10 Tf 60 780 Td (This is page {page}.) Tj 0 -14 Td {lines} ET");
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut bytes = b"%PDF-1.4\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        bytes.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", at + 1).as_bytes());
    }
    bytes.extend_from_slice(b"trailer\n<< /Root 1 0 R >>\n%%EOF\n");
    let site = over_data("pdf", "");
    site.write("data/long.pdf", bytes);
    let mut client = site.stdio(Era::Stateless);
    let mut reference = "long.pdf/pages/1-200".to_owned();
    let mut found = 0;
    for _ in 0..20 {
        let text = read(&mut client, &reference);
        found += text.matches("This is page ").count();
        let Some((_, next)) = text.split_once("; next: ") else { break };
        reference = next.split(']').next().unwrap().to_owned();
    }
    assert_eq!(found, PAGES);
    let text = read(&mut client, "long.pdf?search=this%20is%20PAGE%203.");
    assert!(text.contains("[page 3](long.pdf/pages/3): This is page 3."), "{text}");
    assert!(client.close().status.success());
}
