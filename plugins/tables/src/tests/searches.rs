//! Tests of conditions, sorting and preambles, of large sheets, and of the entry points for fuzzing.

use super::*;
use crate::fuzzing;

#[test]
fn a_search_continues_where_it_stopped() {
    let fixture = Fixture::new();
    let rows: String = (1..=5000).map(|n| format!("{n},name {}\n", n % 10)).collect();
    fixture.write("a.csv", format!("id,name\n{rows}"));
    let mut reference = "a.csv?where=name=name%203&rows=1-200".to_owned();
    let mut found = Vec::new();
    loop {
        let json = fixture.json(&reference);
        found.extend(json["rows"].as_array().unwrap().iter().map(|row| row[0].as_u64().unwrap()));
        match json["nextRows"].as_str() {
            Some(next) => reference = format!("a.csv{next}"),
            None => break,
        }
        assert!(found.len() <= 500, "{reference}");
    }
    assert_eq!(found, (0..500).map(|n| n * 10 + 3).collect::<Vec<u64>>());
    let text = fixture.text("a.csv?where=id%3E4990&rows=1-3");
    assert!(text.contains("| 4991 | 4991 | name 1 |") && text.contains("matching rows 1-3; [next rows]"), "{text}");
    assert!(fixture.text("a.csv?where=id%3E4998").contains("matching rows 1-2 of 2\n"));
    assert!(fixture.text("a.csv?where=id=x").contains("no matching rows"));
    assert_eq!(fixture.rows("a.csv?sort=-id&rows=1-2&columns=id"), ["[5000]", "[4999]"]);
    assert!(fixture.error("a.csv?sort=id&rows=10001-10002").contains("its first 10000 rows"));
    assert!(fixture.error("orders.xlsx/Orders?range=A1&where=id=1").contains("leave out"));
}

/// Above these sizes, the library would need more memory than a call has.
#[test]
fn a_large_sheet_is_read_in_constant_memory() {
    let fixture = Fixture::new();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut part = |name: &str, contents: String| {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut archive, contents.as_bytes()).unwrap();
    };
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relations = |inner: &str| format!("<Relationships>{inner}</Relationships>");
    part(
        "xl/workbook.xml",
        format!(
            "<workbook xmlns:r=\"{relation}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"r1\"/>\
             <sheet name=\"M\" sheetId=\"2\" r:id=\"r2\"/></sheets></workbook>"
        ),
    );
    part(
        "xl/_rels/workbook.xml.rels",
        relations(&format!(
            "<Relationship Id=\"r1\" Type=\"{relation}/worksheet\" Target=\"worksheets/sheet1.xml\"/>\
             <Relationship Id=\"r2\" Type=\"{relation}/xlMacrosheet\" Target=\"macrosheets/sheet1.xml\"/>"
        )),
    );
    part(
        "xl/styles.xml",
        "<styleSheet><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>".to_owned(),
    );
    let texts: String = (0..40_000)
        .map(
            |n| if n == 7 { "<si/>".to_owned() } else { format!("<si><t>text &amp; {n} {}</t></si>", "x".repeat(150)) },
        )
        .collect();
    part("xl/sharedStrings.xml", format!("<sst>{texts}</sst>"));
    let rows: String = (1..=40_000)
        .map(|n| {
            format!(
                "<row r=\"{n}\"><c r=\"A{n}\" t=\"s\"><v>{}</v></c><c r=\"B{n}\" s=\"1\"><v>{}</v></c><c r=\"D{n}\"><f>A1</f><v>{n}</v></c></row>",
                n - 1,
                40_000 + n % 100
            )
        })
        .collect();
    part(
        "xl/worksheets/sheet1.xml",
        format!("<worksheet><dimension ref=\"A1:D40000\"/><sheetData>{rows}</sheetData></worksheet>"),
    );
    fixture.write("large.xlsx", archive.finish().unwrap().into_inner());
    let rows = fixture.json("large.xlsx/S?header=no&rows=39999-40000")["rows"].clone();
    assert!(rows[1][0].as_str().unwrap().starts_with("text & 39999 x"), "{rows}");
    assert_eq!((&rows[1][1], &rows[1][2], &rows[1][3]), (&"2009-07-06".into(), &Value::Null, &40_000.into()));
    assert_eq!(fixture.json("large.xlsx/S?header=no&rows=8")["rows"][0][0], Value::Null);
    assert_eq!(fixture.json("large.xlsx/S?header=no")["totalRows"], 40_000);
    assert!(fixture.text("large.xlsx").contains("left out: M"));
}

#[test]
fn entry_points_for_fuzzing_take_any_bytes() {
    let seeds: [&[u8]; 7] = [
        b"a,b\n1,\"x\ny\"\n",
        b"where=a%3E1&sort=-a&rows=1-2",
        b"a>1 and b~\"x\"",
        b"{\"a\":[1,null],\"b\":\"x\"}",
        b"<sheetData><row r=\"1\"><c r=\"A1\" t=\"s\"><v>1</v></c></row></sheetData>",
        b"<table:table table:name=\"S\"><table:table-row><table:table-cell office:value-type=\"float\" office:value=\"1\"/></table:table-row>",
        b"\x09\x00\x04\x00\x02\x00\x10\x00\x04\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01a\x0a\x00\x00\x00",
    ];
    let all: [fn(&[u8]); 8] = [
        fuzzing::dialect,
        fuzzing::query,
        fuzzing::packed,
        fuzzing::json_line,
        fuzzing::old_excel,
        fuzzing::sheet_xml,
        fuzzing::open_document,
        fuzzing::xml_tags,
    ];
    for seed in seeds {
        for at in 0..seed.len() {
            for byte in [0, b'"', b'<', 0xff] {
                let mut bytes = seed.to_vec();
                bytes[at] = byte;
                all.iter().for_each(|entry| entry(&bytes));
            }
            all.iter().for_each(|entry| entry(&seed[..at]));
        }
    }
}
