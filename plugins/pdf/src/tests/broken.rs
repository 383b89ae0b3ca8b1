//! Tests of damaged and hostile documents.

use super::*;

/// A document of these objects. It has no cross-reference table, so a parser has to search for the objects.
pub(super) fn made_of(objects: &[&str]) -> String {
    let mut text = "%PDF-1.4\n".to_owned();
    for (at, object) in objects.iter().enumerate() {
        text.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    text + "trailer\n<< /Root 1 0 R >>\n%%EOF\n"
}

const CONTENT: &str = "<< /Length 44 >>\nstream\nBT /F1 12 Tf 40 100 Td (Hello damaged) Tj ET\nendstream";
const FONT: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";
const PAGE: &str =
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>";

#[test]
fn broken_cross_references_are_repaired() {
    let fixture = Fixture::new();
    let whole = fs::read(fixtures().join("latin.pdf")).unwrap();
    let at = whole.windows(9).rposition(|part| part == b"startxref").unwrap();
    let mut wrong = whole[..at].to_vec();
    wrong.extend_from_slice(b"startxref\n99999999\n%%EOF\n");
    fixture.write("wrong-table.pdf", wrong);
    assert!(fixture.text("wrong-table.pdf").starts_with(FIRST));
    fixture.write("without-end.pdf", &whole[..at - 200]);
    assert!(fixture.text("without-end.pdf").contains("The quick brown fox 1."));
    fixture.write("before.pdf", [b"junk before it\n".to_vec(), whole.clone()].concat());
    assert!(fixture.text("before.pdf").starts_with(FIRST));
    let catalog = "<< /Type /Catalog /Pages 2 0 R >>";
    fixture
        .write("no-table.pdf", made_of(&[catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", PAGE, CONTENT, FONT]));
    assert_eq!(fixture.text("no-table.pdf"), "[page 1 of 1]\n\nHello damaged\n\n");
}

#[test]
fn an_unreadable_document_fails_with_its_name_and_reason() {
    let fixture = Fixture::new();
    for (name, contents, why) in [
        ("empty.pdf", "", "\"empty.pdf\" is empty"),
        ("words.pdf", "not a document at all", "\"words.pdf\" is not a PDF document"),
        ("head.pdf", "%PDF-1.7\nand no more", "\"head.pdf\" is too damaged to be read"),
    ] {
        fixture.write(name, contents);
        for part in ["", "/info", "/pages/1", "/pages/1/images"] {
            let error = fixture.error(&format!("{name}{part}"));
            assert!(error.contains(why), "{name}{part}: {error}");
        }
    }
}

/// Cyclic page trees, outlines, name trees and forms end, and their acyclic parts are read.
#[test]
fn cyclic_documents_are_read() {
    let fixture = Fixture::new();
    let loops = "<< /Type /Pages /Kids [3 0 R 2 0 R 6 0 R] /Count 9 >>";
    let below = "<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 6 0 R 3 0 R] >>";
    let catalog = "<< /Type /Catalog /Pages 2 0 R /Outlines 7 0 R /Names << /Dests 9 0 R /EmbeddedFiles 9 0 R >> >>";
    let outlines = "<< /First 8 0 R >>";
    let entry = "<< /Title (Round) /Next 8 0 R /First 8 0 R /Parent 7 0 R /Dest (x) >>";
    let names = "<< /Kids [9 0 R 9 0 R] /Names [(x) [3 0 R /Fit]] >>";
    fixture.write("loops.pdf", made_of(&[catalog, loops, PAGE, CONTENT, FONT, below, outlines, entry, names]));
    assert!(fixture.text("loops.pdf").contains("Hello damaged"));
    let info = fixture.info("loops.pdf");
    assert_eq!(info["outline"], serde_json::json!([{ "depth": 0, "title": "Round", "page": 1 }]));
    // A form that draws itself.
    let content = "<< /Length 6 /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >> >>\nstream\n/X Do \nendstream";
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources << /XObject << /X 4 0 R >> >> >>";
    let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
    fixture.write("form.pdf", made_of(&["<< /Type /Catalog /Pages 2 0 R >>", pages, page, content]));
    assert!(fixture.text("form.pdf").starts_with("[page 1 of 1: no text]"));
}

/// Truncated and overwritten documents give text or an error.
#[test]
fn damaged_documents_never_panic() {
    let fixture = Fixture::new();
    let mut state = 7_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for name in ["latin.pdf", "objects.pdf", "aes256.pdf", "images.pdf", "unicode.pdf", "attached.pdf"] {
        let whole = fs::read(fixtures().join(name)).unwrap();
        for round in 0..40 {
            let mut bytes = whole.clone();
            if round % 4 == 0 {
                bytes.truncate(random(whole.len()));
            } else {
                for _ in 0..=random(12) {
                    let at = random(bytes.len());
                    bytes[at] = random(256) as u8;
                }
            }
            fixture.write("damaged.pdf", &bytes);
            for part in ["", "/info", "/pages/1/images", "/pages/1/images/2", "/attachments/x"] {
                match fixture.documents.read(&format!("damaged.pdf{part}")) {
                    Ok(reading) => assert_eq!(reading.contents.len(), 1),
                    Err(Error::Failed(why) | Error::Invalid(why)) => assert!(!why.is_empty()),
                    Err(Error::NotFound) => {}
                    Err(error) => panic!("{name}{part}: {error}"),
                }
            }
        }
    }
}
