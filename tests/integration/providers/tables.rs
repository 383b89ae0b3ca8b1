//! `plugins/tables` in the real server: large files from any position, hostile files, and the fuel and memory of both.

use std::io::Write as _;

use belljar_tests::{Client, Era, RpcError, Site, Stdio, wait_until};
use serde_json::{Value, json};

use crate::providers::support::{fixtures, over_data, shared, usage};

const BASE: &str = "belljar://tables/";

/// The text of a read. A second content names the next part.
fn read(client: &mut Client<Stdio>, reference: &str) -> String {
    // The provider gives up by its clock. On a busy machine it may do so for a row that is near.
    let is_late = |error: &RpcError| error.message.contains("too far from its beginning for one read");
    let read = wait_until("a read that is not late", || match client.read(&format!("{BASE}{reference}")) {
        Err(error) if is_late(&error) => Err(error),
        read => Ok(read),
    });
    let result = read.unwrap_or_else(|error| panic!("{reference}: {error}"));
    result["contents"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// The message of the error of a read.
fn error(client: &mut Client<Stdio>, reference: &str) -> String {
    client.read(&format!("{BASE}{reference}")).expect_err(reference).to_string()
}

/// The fuel of the last read of this reference.
fn fuel(site: &Site, reference: &str) -> u64 {
    usage(site, reference)["fuel"].as_u64().unwrap()
}

/// Writes `data/big.csv` with rows of about 60 bytes, until the file has `megabytes` MiB.
fn write_big_file(site: &Site, megabytes: usize) {
    let file = std::fs::File::create(site.path("data/big.csv")).unwrap();
    let mut out = std::io::BufWriter::new(file);
    let mut written = 0;
    writeln!(out, "id,name,amount,day,text").unwrap();
    for n in 1_u64.. {
        let row = format!(
            "{n},name {n},{}.{:02},2026-{:02}-{:02},\"some text, {n}\"\n",
            n % 1000,
            n % 100,
            n % 12 + 1,
            n % 28 + 1
        );
        written += row.len();
        out.write_all(row.as_bytes()).unwrap();
        if written > megabytes << 20 {
            break;
        }
    }
}

#[test]
fn the_cost_of_the_first_rows_does_not_depend_on_the_size_of_the_file() {
    let site = over_data("tables", "");
    write_big_file(&site, 200);
    site.write("data/small.csv", "id,name\n1,a\n2,b\n");
    let mut client = site.stdio(Era::Stateless);
    let first = read(&mut client, "big.csv");
    assert!(first.contains("| 100 | 100 | name 100 |") && first.contains("rows 1-100 of about "), "{first}");
    read(&mut client, "small.csv");
    let (large, small) = (fuel(&site, "big.csv"), fuel(&site, "small.csv"));
    assert!(large < small + 50_000_000, "{large} for the large file, {small} for the small one");
    let memory = usage(&site, "big.csv")["memory"].as_u64().unwrap();
    assert!(memory < 8 << 20, "{memory}");

    // The link to the next rows contains their position in the file.
    let query = first.split("[next rows](").nth(1).unwrap().split(')').next().unwrap();
    let next = read(&mut client, &format!("big.csv{query}"));
    assert!(next.contains("| 101 | 101 | name 101 |"), "{next}");
    assert!(read(&mut client, "big.csv/schema").contains("| amount | C | decimal, scale 2 |"));

    // Several reads reach a distant row. None of them reaches a limit.
    let mut reference = "big.csv?rows=2000000-2000001".to_owned();
    let mut steps = 0;
    let distant_rows = loop {
        let text = read(&mut client, &reference);
        steps += 1;
        if text.contains("| 2000000 | 2000000 | name 2000000 |") {
            break text;
        }
        assert!(text.contains("on the way to row 2000000") && steps < 40, "{text}");
        reference = format!("big.csv{}", text.split("[next rows](").nth(1).unwrap().split(')').next().unwrap());
    };
    assert!(distant_rows.contains("| 2000001 |") && steps > 1, "{steps}");
    let far = error(&mut client, "big.csv?lines=2000000-2000001");
    assert!(far.contains("expected ?rows=2000000-2000001, whose answer has a link"), "{far}");
    assert!(client.close().status.success());
}

#[test]
fn hostile_files_give_tables_or_clear_errors_within_the_limits() {
    // The fuel and the memory are checked, and not the speed of the machine.
    let site = over_data("tables", "\n[mounts.tables.limits]\ntime = \"60s\"\n");
    fixtures(&site, "tables");
    let huge = format!("a,b\n1,{}\n2,y\n", "x".repeat(10_000_000));
    site.write("data/huge.csv", huge);
    site.write("data/open.csv", format!("a,b\n1,2\n3,\"x\n{}", "4,5\n".repeat(5_000_000)));
    site.write("data/nul.csv", b"a,b\n1,x\0y\n2,gr\xfcn\n");
    let wide: Vec<String> = (0..1000).map(|n| format!("c{n}")).collect();
    site.write(
        "data/wide.csv",
        format!("{}\n{}", wide.join(","), format!("{}\n", vec!["1"; 1000].join(",")).repeat(500)),
    );
    let commas = format!("a,b\n{}\n", ",".repeat(12_000_000));
    site.write("data/commas.csv", commas);
    site.write("data/image.csv", b"%PDF-1.7\n");
    site.write("data/cut.xlsx", std::fs::read(site.path("data/orders.xlsx")).unwrap().get(..3000).unwrap());
    let mut client = site.stdio(Era::Stateless);
    for (reference, expected) in [
        ("huge.csv", "x ... (9999000 more bytes) |"),
        ("open.csv", "has no end within 16 MiB: a quote in it is probably never closed"),
        ("open.csv?quote=none&rows=100", "| 100 | 4 | 5 |"),
        ("nul.csv", "| 2 | 2 | grün |"),
        ("wide.csv", "50 of 1000 columns; [next columns](?rows=1-100&columns=51-100)"),
        ("wide.csv/schema", "| c999 | ALL | integer |"),
        ("commas.csv", "1 of these rows have more than 2 cells, such as row 1 with 12000001"),
        ("corner.xlsx/Sheet?range=XFD1048576", "| 1048576 | far |"),
        ("orders.xlsx/Orders", "| =cmd\\|' /C calc'!A0 |"),
        ("old.xls/Old", "Größe"),
        ("open.ods/Open%2FSheet", "Köln"),
        ("measures.parquet?rows=300", "1152921504606847275"),
    ] {
        let text = read(&mut client, reference);
        assert!(text.contains(expected), "{reference}: {}", text.chars().take(2000).collect::<String>());
        assert!(text.len() < 3 << 20, "{reference}: {}", text.len());
        let used = usage(&site, reference);
        assert!(
            used["memory"].as_u64().unwrap() < 48 << 20 && used["fuel"].as_u64().unwrap() < 4_000_000_000,
            "{reference}: {used}"
        );
    }
    for (reference, expected) in [
        ("image.csv", "is not a table: it is a PDF document"),
        ("cut.xlsx", "is a damaged workbook"),
        ("wide.csv?columns=nope", "no column"),
        ("wide.csv?rows=0", "such as 1-100"),
    ] {
        let message = error(&mut client, reference);
        assert!(message.contains(expected), "{reference}: {message}");
    }
    assert!(client.close().status.success());
}

#[test]
fn sheets_are_listed_and_every_listed_table_is_read() {
    let site = over_data("tables", "");
    fixtures(&site, "tables");
    for era in Era::ALL {
        let mut client = site.stdio(era);
        let uris = client.uris();
        assert!(uris.contains(&format!("{BASE}orders.xlsx/Notes%20&%20more")), "{uris:?}");
        for uri in &uris {
            assert!(!read(&mut client, uri.strip_prefix(BASE).unwrap()).is_empty(), "{uri}");
        }
        assert!(client.close().status.success());
    }
}

/// Writes `data/big.xlsx`: rows with two texts, of which no two are equal, and six numbers.
fn write_big_workbook(site: &Site, rows: usize) {
    let file = std::fs::File::create(site.path("data/big.xlsx")).unwrap();
    let mut archive = zip::ZipWriter::new(std::io::BufWriter::new(file));
    let options = zip::write::SimpleFileOptions::default().compression_level(Some(1));
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let mut part = |name: &str, write: &mut dyn FnMut(&mut dyn std::io::Write)| {
        archive.start_file(name, options).unwrap();
        let mut out = std::io::BufWriter::new(&mut archive);
        write(&mut out);
        out.flush().unwrap();
    };
    part("xl/workbook.xml", &mut |out| {
        let sheets = "<sheets><sheet name=\"Big\" sheetId=\"1\" r:id=\"r1\"/></sheets>";
        write!(out, "<workbook xmlns:r=\"{relation}\">{sheets}</workbook>").unwrap();
    });
    part("xl/_rels/workbook.xml.rels", &mut |out| {
        let target =
            format!("<Relationship Id=\"r1\" Type=\"{relation}/worksheet\" Target=\"worksheets/sheet1.xml\"/>");
        write!(out, "<Relationships>{target}</Relationships>").unwrap();
    });
    part("xl/sharedStrings.xml", &mut |out| {
        write!(out, "<sst>").unwrap();
        for n in 0..2 * rows {
            write!(out, "<si><t>text {} of {n}</t></si>", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
        }
        write!(out, "</sst>").unwrap();
    });
    part("xl/worksheets/sheet1.xml", &mut |out| {
        write!(out, "<worksheet><dimension ref=\"A1:H{rows}\"/><sheetData>").unwrap();
        for n in 0..rows {
            let row = n + 1;
            write!(out, "<row r=\"{row}\"><c r=\"A{row}\" t=\"s\"><v>{}</v></c>", 2 * n).unwrap();
            write!(out, "<c r=\"B{row}\" t=\"s\"><v>{}</v></c>", 2 * n + 1).unwrap();
            for (at, letter) in ["C", "D", "E", "F", "G", "H"].iter().enumerate() {
                let number = (n + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                write!(out, "<c r=\"{letter}{row}\"><v>{number}</v></c>").unwrap();
            }
            write!(out, "</row>").unwrap();
        }
        write!(out, "</sheetData></worksheet>").unwrap();
    });
    archive.finish().unwrap();
}

/// What the README promises in "Sizes": under the default limits, a workbook of 50 MB and text of any size.
#[test]
fn large_workbooks_and_files_are_read_in_parts_within_the_limits() {
    let site = over_data("tables", "");
    write_big_workbook(&site, 600_000);
    let size = std::fs::metadata(site.path("data/big.xlsx")).unwrap().len();
    assert!(size > 50_000_000, "{size}");
    // A text of more than 4 GiB, most of which is a hole.
    write_big_file(&site, 1);
    let text = std::fs::read(site.path("data/big.csv")).unwrap();
    let file = std::fs::File::options().write(true).open(site.path("data/big.csv")).unwrap();
    file.set_len(5 << 30).unwrap();
    let mut client = site.stdio(Era::Stateless);
    for (reference, expected) in [
        ("big.xlsx", "[Big](big.xlsx/Big)"),
        ("big.xlsx/Big", "rows 1-100 of about 600,000"),
        ("big.xlsx/Big?rows=50000", "| 50000 | text "),
        ("big.xlsx/Big?where=C%3E0&rows=1-2", "matching rows 1-2"),
        ("big.csv", "rows 1-100 of about "),
    ] {
        let answer = read(&mut client, reference);
        assert!(answer.contains(expected), "{reference}: {}", answer.chars().take(2000).collect::<String>());
        let used = usage(&site, reference);
        assert!(used["memory"].as_u64().unwrap() < 40 << 20, "{reference}: {used}");
    }
    // The next rows are those at a position in the file, however far away.
    let first = read(&mut client, "big.csv");
    let query = first.split("[next rows](").nth(1).unwrap().split(')').next().unwrap();
    let next = read(&mut client, &format!("big.csv{query}"));
    assert!(next.contains("| 101 | 101 | name 101 |") && text.len() > 1 << 20, "{next}");
    // A page as lines, with the position of the next one.
    let uri = format!("{BASE}big.csv?lines=101-150");
    let part = client.read(&uri).unwrap();
    assert!(part["contents"][0]["text"].as_str().unwrap().contains("| 150 | 150 | name 150 |"), "{part}");
    assert!(part["contents"][0]["_meta"].to_string().contains("lines=151-"), "{part}");
    let refused = error(&mut client, "big.csv?bytes=0-99");
    assert!(refused.contains("?lines=1-100"), "{refused}");
    assert!(client.close().status.success());
}

/// In an answer as JSON, numbers have the same digits as in the file.
#[test]
fn json_keeps_the_numbers_of_the_file() {
    let site = over_data("tables", "");
    site.write("data/a.csv", "key,price,big\n007,1.50,123456789012345678\n");
    let mut client = site.stdio(Era::Stateless);
    let text = read(&mut client, "a.csv?format=json");
    assert!(text.contains(r#""rows":[["007",1.50,"123456789012345678"]]"#), "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["columns"], json!(["key", "price", "big"]));
}

#[test]
fn without_its_grant_the_error_names_the_grant() {
    let mut bare = Site::new();
    bare.mount("tables");
    bare.share(shared("tables"));
    let mut client = bare.stdio(Era::Stateless);
    let message = client.read(&format!("{BASE}a.csv")).expect_err("no grant").to_string();
    assert!(message.contains("no directory was granted"), "{message}");
}
