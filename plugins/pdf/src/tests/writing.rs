//! Tests of text in many fonts, directions and forms, over documents that are written here.

use super::broken::made_of;
use super::*;

const CATALOG: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const PAGES: &str = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
const PAGE: &str =
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 400] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>";
const HELVETICA: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";

fn stream(content: &str) -> String {
    format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// The text of a page with this content and this font, and more objects from number 6.
fn text(content: &str, font: &str, more: &[&str]) -> String {
    let content = stream(content);
    let mut objects = vec![CATALOG, PAGES, PAGE, &content, font];
    objects.extend(more);
    let fixture = Fixture::new();
    fixture.write("made.pdf", made_of(&objects));
    let text = fixture.text("made.pdf");
    text.strip_prefix("[page 1 of 1]\n\n").unwrap_or(&text).trim_end().to_owned()
}

/// A composite font without an embedded program, whose codes are UTF-16.
fn unicode_font(map: &str) -> [String; 2] {
    let below = "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 600 \
                 /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>";
    [
        format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [{below}] >>"
        ),
        stream(&format!("begincmap\n1 begincodespacerange <0000> <ffff> endcodespacerange\n{map}\nendcmap")),
    ]
}

#[test]
fn right_to_left_text_is_in_reading_order() {
    let [font, map] =
        unicode_font("3 beginbfrange\n<0020> <007e> <0020>\n<05d0> <05ea> <05d0>\n<fe80> <fefc> <fe80>\nendbfrange");
    // The letters stand from left to right as on paper: the last letter of the line comes first.
    let hebrew = "BT /F 12 Tf 40 300 Td <05DD05DC05D505E2002005DD05D505DC05E9> Tj ET";
    assert_eq!(text(hebrew, &font, &[&map]), "שלום עולם");
    // The same letters, each placed to the left of the one before.
    let placed: String = ["05E9", "05DC", "05D5", "05DD"]
        .iter()
        .enumerate()
        .map(|(at, letter)| format!("1 0 0 1 {} 300 Tm <{letter}> Tj ", 200.0 - 7.2 * at as f64))
        .collect();
    assert_eq!(text(&format!("BT /F 12 Tf {placed} ET"), &font, &[&map]), "שלום");
    // Arabic presentation forms become letters, also the ligature of lam and alef.
    let arabic = "BT /F 12 Tf 40 300 Td <FEE1FEFCFEB3> Tj ET";
    assert_eq!(text(arabic, &font, &[&map]), "سلام");
}

#[test]
fn vertical_text_is_read_down_the_columns() {
    let font = |encoding: &str| {
        format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin /Encoding /{encoding} /DescendantFonts [<< /Type /Font \
             /Subtype /CIDFontType0 /BaseFont /Ryumin /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> \
             >>] >>"
        )
    };
    let content = |one: &str, two: &str| format!("BT /F 12 Tf 300 380 Td <{one}> Tj -20 0 Td <{two}> Tj ET");
    let utf16 = content("65E5672C8A9E", "306E6587");
    assert_eq!(text(&utf16, &font("UniJIS-UTF16-V"), &[]), "日本語\nの文");
    let shift_jis = content("93FA967B8CEA", "82CC95B6");
    assert_eq!(text(&shift_jis, &font("90ms-RKSJ-V"), &[]), "日本語\nの文");
    assert_eq!(text("BT /F 12 Tf 40 300 Td <93FA967B8CEA> Tj ET", &font("90ms-RKSJ-H"), &[]), "日本語");
}

#[test]
fn text_that_is_drawn_twice_is_read_once() {
    let twice = "BT /F 12 Tf 40 300 Td (Bold words) Tj 0.4 0 Td (Bold words) Tj 0 0.4 Td (Bold words) Tj ET";
    assert_eq!(text(twice, HELVETICA, &[]), "Bold words");
    let letters = "BT /F 12 Tf 1 0 0 1 40 300 Tm (B) Tj 1 0 0 1 40.3 300 Tm (B) Tj 1 0 0 1 48 300 Tm (o) Tj 1 0 0 1 48.3 \
                   300 Tm (o) Tj 1 0 0 1 54.7 300 Tm (o) Tj 1 0 0 1 55 300 Tm (o) Tj ET";
    assert_eq!(text(letters, HELVETICA, &[]), "Boo");
    assert_eq!(text("BT /F 12 Tf 40 300 Td (well well, all) Tj ET", HELVETICA, &[]), "well well, all");
}

#[test]
fn gaps_and_spacing_make_words() {
    for (content, expected) in [
        ("[(one) -300 (two) -20 (three)] TJ", "one twothree"),
        ("3 Tc (w i d e) Tj", "w i d e"),
        ("50 Tz (narrow words) Tj", "narrow words"),
        ("(x) Tj 8 0 0 8 47 304 Tm (2) Tj", "x2"),
        ("(hyphen-) Tj 0 -14 Td (ated words) Tj", "hyphenated words"),
        ("(Upper-) Tj 0 -14 Td (Case) Tj", "Upper-\nCase"),
        ("/Span << /ActualText (whole) >> BDC (wh) Tj 3 0 Td (ole) Tj EMC", "whole"),
        ("3 Tr (invisible) Tj", "invisible"),
        // An accent that is drawn over its letter, as TeX does.
        ("[(M) 0 (\\250) 420 (uller)] TJ", "Müller"),
    ] {
        let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
        assert_eq!(text(&format!("BT /F 12 Tf 40 300 Td {content} ET"), font, &[]), expected, "{content}");
    }
}

#[test]
fn glyph_names_with_codes_are_read() {
    let font = |names: &str| {
        format!(
            "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 9 9] /FontMatrix [0.1 0 0 0.1 0 0] /FirstChar 0 /LastChar 127 \
             /Widths [{}] /Encoding << /Differences [{names}] >> /CharProcs << >> /Resources << >> >>",
            "6 ".repeat(128)
        )
    };
    assert_eq!(text("BT /F 12 Tf 40 300 Td (Hi\\014) Tj ET", &font("12 /a12 72 /a72 105 /a105"), &[]), "Hifi");
    let unknown = text("BT /F 12 Tf 40 300 Td (\\001\\002) Tj ET", &font("1 /g1x /g2x"), &[]);
    assert!(unknown.starts_with("[page 1 of 1: 2 of 2 characters are unknown"), "{unknown}");
}

#[test]
fn values_of_forms_and_free_text_are_read_without_a_picture() {
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 400] /Annots [4 0 R 5 0 R 6 0 R 7 0 R] >>";
    let fixture = Fixture::new();
    fixture.write(
        "form.pdf",
        made_of(&[
            CATALOG,
            PAGES,
            page,
            "<< /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /Rect [40 300 200 320] >>",
            "<< /Subtype /Widget /Parent << /FT /Ch /V (gb) /Opt [[(de) (Germany)] [(gb) (Great Britain)]] >> /Rect [40 260 \
             200 280] >>",
            "<< /Subtype /FreeText /Contents (a note) /Rect [40 220 200 240] >>",
            "<< /Subtype /Widget /FT /Tx /Ff 8192 /V (secret) /Rect [40 180 200 200] >>",
        ]),
    );
    assert_eq!(fixture.text("form.pdf"), "[page 1 of 1]\n\nAda Lovelace\n\nGreat Britain\n\na note\n\n");
}

#[test]
fn hidden_layers_are_left_out() {
    let fixture = Fixture::new();
    let content = stream(
        "BT /F 12 Tf 40 300 Td (shown) Tj ET /OC /Off BDC BT /F 12 Tf 40 280 Td (hidden) Tj ET EMC /OC /On BDC BT /F 12 Tf 40 \
         260 Td (also shown) Tj ET EMC",
    );
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 400] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> \
                /Properties << /Off 6 0 R /On 7 0 R >> >> >>";
    let catalog = "<< /Type /Catalog /Pages 2 0 R /OCProperties << /OCGs [6 0 R 7 0 R] /D << /OFF [6 0 R] >> >> >>";
    let layer = "<< /Type /OCG /Name (a) >>";
    fixture.write("layers.pdf", made_of(&[catalog, PAGES, page, &content, HELVETICA, layer, layer]));
    assert_eq!(fixture.text("layers.pdf"), "[page 1 of 1]\n\nshown\n\nalso shown\n\n");
}

#[test]
fn pages_are_read_if_only_attached_files_are_encrypted() {
    let fixture = Fixture::new();
    let content = stream("BT /F 12 Tf 40 300 Td (open words) Tj ET");
    let filter = "<< /Filter /Standard /V 4 /R 4 /Length 128 /P -4 /O <0102> /U <0304> /CF << /StdCF << /AuthEvent /EFOpen /CFM \
                  /AESV2 /Length 16 >> >> /StmF /Identity /StrF /Identity /EFF /StdCF >>";
    let files = "<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a.txt) << /F (a.txt) /EF << /F 4 0 R >> >>] \
                 >> >> >>";
    let objects = made_of(&[files, PAGES, PAGE, &content, HELVETICA, filter]);
    // A binary string follows the reference to the encryption dictionary.
    let id = "trailer\n<< /Encrypt 6 0 R /ID [(éééééééééééé) (éééééééééééé)]";
    fixture.write("files.pdf", objects.replace("trailer\n<<", id));
    assert_eq!(fixture.text("files.pdf"), "[page 1 of 1]\n\nopen words\n\n");
    let why = fixture.error("files.pdf/attachments/a.txt");
    assert!(why.contains("the attached files of \"files.pdf\" are encrypted"), "{why}");
    // Where strings or streams are encrypted too, nothing is read without the password.
    fixture.write("locked.pdf", objects.replace("trailer\n<<", id).replace("/StmF /Identity", "/StmF /StdCF"));
    let why = fixture.error("locked.pdf");
    assert!(why.contains("\"locked.pdf\" is"), "{why}");
}

#[test]
fn words_are_searched_in_a_document() {
    let fixture = Fixture::new();
    let found = fixture.text("latin.pdf?search=brown%20FOX%203");
    assert!(found.starts_with("- [page 3](latin.pdf/pages/3): Chapter 3 Größe, Straße"), "{found}");
    assert!(found.ends_with("[1 place on pages 1-5 of 5]\n"), "{found}");
    assert!(fixture.text("latin.pdf/pages/2-4?search=chapter").contains("[3 places on pages 2-4 of 5]"));
    assert_eq!(fixture.text("latin.pdf?search=absent"), "[0 places on pages 1-5 of 5]\n");
    assert!(fixture.text("scanned.pdf?search=x").contains("cannot be searched: scanned"));
    assert!(fixture.error("latin.pdf/pages/9?search=x").contains("there is no page 9"));
}
