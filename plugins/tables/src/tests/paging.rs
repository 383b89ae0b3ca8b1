//! Tests of reading a table page by page.

use super::*;

/// The reference of the next page, from `nextRows` of the JSON that `reference` gave.
fn next(reference: &str, json: &Value) -> Option<String> {
    let query = json["nextRows"].as_str()?;
    Some(format!("{}{query}", reference.split('?').next().unwrap()))
}

/// The first cells of all rows, read page by page.
fn all(fixture: &Fixture, reference: &str) -> Vec<String> {
    let (mut cells, mut following) = (Vec::new(), Some(format!("{reference}&format=json")));
    while let Some(reference) = following {
        let json: Value = serde_json::from_str(&fixture.text(&reference)).unwrap();
        for (place, row) in json["rows"].as_array().unwrap().iter().enumerate() {
            if json["rowNumbers"].is_null() {
                assert_eq!(json["firstRow"].as_u64().unwrap() + place as u64, cells.len() as u64 + 1);
            }
            cells.push(row[0].to_string());
        }
        following = next(&reference, &json);
    }
    cells
}

#[test]
fn pages_follow_each_other_without_a_gap() {
    let fixture = Fixture::new();
    let rows: Vec<String> = (1..=1234).map(|n| format!("{n}\r\n")).collect();
    fixture.write("plain.csv", format!("n\r\n{}", rows.concat()));
    // Cells with line ends and delimiters.
    let rows: Vec<String> = (1..=500).map(|n| format!("\"{n}\n,\"\"x\",{n}\n")).collect();
    fixture.write("quoted.csv", format!("text,n\n{}", rows.concat()));
    let wide = |text: String| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    fixture.write(
        "wide.csv",
        [b"\xff\xfe".to_vec(), wide(format!("n\n{}", (1..=300).map(|n| format!("{n}\n")).collect::<String>()))]
            .concat(),
    );
    for step in ["1-7", "1-100", "1-1000"] {
        let expected: Vec<String> = (1..=1234).map(|n| n.to_string()).collect();
        assert_eq!(all(&fixture, &format!("plain.csv?rows={step}")), expected);
        let expected: Vec<String> = (1..=500).map(|n| format!("\"{n}\\n,\\\"x\"")).collect();
        assert_eq!(all(&fixture, &format!("quoted.csv?rows={step}")), expected);
        assert_eq!(all(&fixture, &format!("wide.csv?rows={step}")).len(), 300);
        assert_eq!(all(&fixture, &format!("measures.parquet?rows={step}")).len(), 1000);
        assert_eq!(all(&fixture, &format!("orders.xlsx/Orders?rows={step}")), ["1", "2", "3"]);
    }
}

/// The position in `from` is only a hint: a wrong one does not change the rows.
#[test]
fn an_invalid_position_is_ignored() {
    let fixture = Fixture::new();
    let table =
        |rows: std::ops::RangeInclusive<u32>| format!("n,x\n{}", rows.map(|n| format!("{n},y\n")).collect::<String>());
    fixture.write("a.csv", table(1..=2000));
    let first = fixture.json("a.csv?rows=1-10");
    let position =
        first["nextRows"].as_str().unwrap().split("from=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    assert_eq!(fixture.rows(&format!("a.csv?rows=11&from={position}")), ["[11,\"y\"]"]);
    let [row, offset, mark] = position.split('-').collect::<Vec<_>>()[..] else { panic!("{position}") };
    assert_eq!(row, "11");
    for from in [
        format!("11-0-{mark}"),
        format!("11-{offset}-0"),
        format!("10-{offset}-{mark}"),
        format!("11-99999999-{mark}"),
        "x".to_owned(),
        "--".to_owned(),
    ] {
        assert_eq!(fixture.rows(&format!("a.csv?rows=11&from={from}")), ["[11,\"y\"]"], "{from}");
    }
    // The position, used for another row, with another delimiter, and after the file has changed.
    assert_eq!(fixture.rows(&format!("a.csv?rows=12&from={position}")), ["[12,\"y\"]"]);
    assert_eq!(fixture.rows(&format!("a.csv?rows=11&from={position}&delimiter=semicolon")), ["[\"11,y\"]"]);
    fixture.write("a.csv", table(2..=2000));
    assert_eq!(fixture.rows(&format!("a.csv?rows=11&from={position}")), ["[12,\"y\"]"]);
    // After rows are appended, positions stay valid.
    fixture.write("a.csv", table(1..=9000));
    assert_eq!(fixture.rows(&format!("a.csv?rows=11&from={position}")), ["[11,\"y\"]"]);
}

#[test]
fn cut_cells_rows_and_columns_are_marked() {
    let fixture = Fixture::new();
    let rows: String = (1..=150).map(|n| format!("{n},{}\n", "x".repeat(5000))).collect();
    fixture.write("long.csv", format!("n,text\n{rows}"));
    let text = fixture.text("long.csv");
    assert!(
        text.contains("x ... (4000 more bytes) |")
            && text.contains("rows 1-100 of 150; [next rows](?rows=101-200&from="),
        "{}",
        &text[text.len() - 200..]
    );
    assert_eq!(fixture.json("long.csv?rows=3&columns=text")["rows"][0][0].as_str().unwrap().len(), 5000);
    let wide: Vec<String> = (0..1000).map(|n| format!("c{n}")).collect();
    fixture.write("wide.csv", format!("{}\n{}\n", wide.join(","), vec!["1"; 1000].join(",")));
    let json = fixture.json("wide.csv");
    assert_eq!((json["columns"].as_array().unwrap().len(), json["allColumns"].as_u64()), (50, Some(1000)));
    let reference = format!("wide.csv{}", json["nextColumns"].as_str().unwrap());
    assert_eq!(serde_json::from_str::<Value>(&fixture.text(&reference)).unwrap()["columns"][0], "c50");
    assert_eq!(fixture.types("wide.csv/schema").len(), 1000);
    // In a long file, the number of rows is estimated.
    let many: String = (0..3_000_000).map(|_| "1234567\n").collect();
    fixture.write("many.csv", format!("n\n{many}"));
    let text = fixture.text("many.csv?rows=1-5");
    assert!(text.contains("rows 1-5 of about "), "{text}");
}

#[test]
fn far_rows_are_reached_in_several_reads() {
    let fixture = Fixture::new();
    // Rows with quotes must be parsed; others are only counted.
    let row = format!("1,\"{}\"\n", "y".repeat(1021));
    fixture.write("far.csv", format!("n,text\n{}", row.repeat(100_000)));
    let json = fixture.json("far.csv?rows=99999&columns=n");
    assert_eq!(json["rows"].as_array().unwrap().len(), 0);
    assert!(json["notes"][0].as_str().unwrap().contains("on the way to row 99999"), "{json}");
    let reference = format!("far.csv{}", json["nextRows"].as_str().unwrap());
    assert!(reference.contains("rows=99999-99999&from="), "{reference}");
    let next: Value = serde_json::from_str(&fixture.text(&reference)).unwrap();
    assert_eq!((next["firstRow"].as_u64(), &next["rows"][0][0]), (Some(99999), &Value::from(1)));
}
