//! Tests of malformed and hostile files.

use super::*;

#[test]
fn ragged_rows_and_odd_headers_are_read() {
    let fixture = Fixture::new();
    fixture.write("ragged.csv", "a,a,,b\n1\n1,2,3,4,5,6\n\n1,2,3,4\n");
    let text = fixture.text("ragged.csv");
    assert!(text.contains("| # | a | a_2 | C | b | E | F |"), "{text}");
    assert!(text.contains("1 of these rows have fewer than 4 cells"), "{text}");
    assert!(text.contains("1 of these rows have more than 4 cells, such as row 2 with 6: columns=5-6"), "{text}");
    assert_eq!(fixture.rows("ragged.csv?columns=5-6&rows=2"), ["[5,6]"]);
    fixture.write("bare.csv", "1,x\n2,y\n");
    assert_eq!(fixture.json("bare.csv")["columns"], serde_json::json!(["A", "B"]));
    assert_eq!(fixture.rows("bare.csv").len(), 2);
    assert_eq!(fixture.json("bare.csv?header=yes")["columns"], serde_json::json!(["1", "x"]));
    fixture.write("names.csv", "a,b\nc,d\n");
    assert_eq!(fixture.rows("names.csv?header=no").len(), 2);
    for (name, contents) in [("empty.csv", ""), ("lines.csv", "\n\n\n"), ("mark.csv", "\u{feff}")] {
        fixture.write(name, contents);
        assert!(fixture.text(name).contains("no rows"), "{name}");
        assert_eq!(fixture.rows(name).len(), 0);
        assert_eq!(fixture.types(&format!("{name}/schema")).len(), 0);
    }
    fixture.write("header.csv", "a,b");
    assert!(fixture.text("header.csv").contains("| # | a | b |\n|---|---|---|\n\nno rows"));
}

#[test]
fn an_unclosed_quote_gives_a_note() {
    let fixture = Fixture::new();
    fixture.write("open.csv", "a,b\n1,2\n3,\"x\n4,5\n6,7\n");
    let text = fixture.text("open.csv");
    assert!(text.contains("| 2 | 3 | x<br>4,5<br>6,7 |"), "{text}");
    assert!(text.contains("Note: the last cell of row 2 extends to the end of the file"), "{text}");
    assert_eq!(fixture.rows("open.csv?quote=none"), ["[1,2]", "[3,\"\\\"x\"]", "[4,5]", "[6,7]"]);
    fixture.write("closed.csv", "a\n\"x\ny\"");
    assert!(!fixture.text("closed.csv").contains("Note"));
    // The unclosed cell is longer than the longest row that is accepted.
    fixture.write("endless.csv", format!("a,b\n1,2\n3,\"x\n{}", "4,5\n".repeat(5_000_000)));
    let text = fixture.text("endless.csv");
    assert!(
        text.contains("| 1 | 1 | 2 |") && text.contains("row 2, which begins at byte 8, has no end within 16 MiB"),
        "{text}"
    );
    assert_eq!(fixture.rows("endless.csv?quote=none&rows=4000000"), ["[4,5]"]);
}

#[test]
fn a_cell_of_ten_megabytes_is_one_cell() {
    let fixture = Fixture::new();
    fixture.write("huge.csv", format!("a,b\n1,{}\n2,\"{}\"\n3,z\n", "x".repeat(10_000_000), "y\n".repeat(5_000_000)));
    let rows = fixture.rows("huge.csv?columns=a");
    assert_eq!(rows, ["[1]", "[2]", "[3]"]);
    let text = fixture.text("huge.csv");
    assert!(text.contains("x ... (9999000 more bytes) |"), "{}", &text[text.len() - 300..]);
    assert!(text.len() < 100_000);
}

#[test]
fn bytes_that_are_not_text_are_replaced() {
    let fixture = Fixture::new();
    fixture.write("odd.csv", b"a,b\n1,x\0y\x1b[31m\n2,gr\xfcn\n3,gr\xc3\xbcn\n");
    assert!(fixture.text("odd.csv").contains("| 1 | 1 | x\u{fffd}y\u{fffd}\\[31m |\n| 2 | 2 | grün |\n"));
    assert_eq!(fixture.json("odd.csv?encoding=iso-8859-15&columns=b")["rows"][1][0], "grün");
    let wide: Vec<u8> = "näme;ort\n1;Köln\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    fixture.write("wide.csv", [b"\xfe\xff".to_vec(), wide].concat());
    assert_eq!(fixture.json("wide.csv")["columns"], serde_json::json!(["näme", "ort"]));
    assert_eq!(fixture.rows("wide.csv"), ["[1,\"Köln\"]"]);
}

#[test]
fn the_kind_is_detected_from_the_contents() {
    let fixture = Fixture::new();
    fs::copy(fixture.dir.path().join("orders.xlsx"), fixture.dir.path().join("really.csv")).unwrap();
    assert!(fixture.text("really.csv").contains("- [Orders](really.csv/Orders)"));
    fixture.write("really.xlsx", SALES);
    assert_eq!(fixture.rows("really.xlsx").len(), 3);
    fixture.write("page.csv", "%PDF-1.4\n");
    assert!(fixture.error("page.csv").contains("\"page.csv\" is not a table: it is a PDF document"));
    for (name, bytes) in [
        ("cut.xlsx", &b"PK\x03\x04 and nothing"[..]),
        ("cut.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        ("cut.parquet", b"PAR1 and PAR1"),
    ] {
        fixture.write(name, bytes);
        assert!(fixture.error(name).contains(&format!("\"{name}\"")), "{name}");
    }
}

/// A sheet with a compression ratio of 1000 is refused by the sizes in the archive, before it is unpacked.
#[test]
fn a_zip_bomb_is_refused_before_it_is_unpacked() {
    let fixture = Fixture::new();
    let pack = |parts: &[(&str, u64)]| {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, megabytes) in parts {
            archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            for _ in 0..*megabytes {
                std::io::Write::write_all(&mut archive, &vec![b' '; 1 << 20]).unwrap();
            }
        }
        archive.finish().unwrap().into_inner()
    };
    fixture.write("bomb.xlsx", pack(&[("xl/worksheets/sheet1.xml", 100)]));
    let why = fixture.error("bomb.xlsx");
    assert!(why.contains("\"xl/worksheets/sheet1.xml\" in it unpacks to 104857600 bytes"), "{why}");
    fixture.write("styles.xlsx", pack(&[("xl/styles.xml", 20)]));
    let why = fixture.error("styles.xlsx");
    assert!(why.contains("too large for this provider: \"xl/styles.xml\" in it has 20971520 bytes"), "{why}");
}
