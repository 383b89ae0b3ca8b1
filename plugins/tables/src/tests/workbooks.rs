//! Tests of workbooks and Parquet files from other programs.

use super::*;

#[test]
fn a_sheet_reads_as_values_and_lists_its_formulas() {
    let fixture = Fixture::new();
    let text = fixture.text("orders.xlsx/Orders");
    for line in [
        "| # | id | customer | amount | total | day | at | time | paid | ratio |",
        "| 1 | 1 | Anna \\| Co | 10.5 | 21 | 2026-11-21 | 2026-11-21T10:30:00 | 06:15:00 | true | #DIV/0! |",
        // Text that looks like a formula.
        "| 2 | 2 | =cmd\\|' /C calc'!A0 | 0.1 | 0.2 | 1999-01-01 | 1999-12-31T23:59:59 | 00:00:01 | false | #N/A |",
        "rows 1-3 of 3",
        "- row 1, total: `=C2*2`",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("`=cmd"), "{text}");
    let types = ["integer", "text", "decimal", "decimal", "date", "date-time", "time", "boolean", "error"];
    assert_eq!(fixture.types("orders.xlsx/Orders/schema"), types);
    assert_eq!(fixture.json("orders.xlsx/Orders")["formulas"][0]["formula"], "C2*2");
    assert!(fixture.text("orders.xlsx/hidden").starts_with("# orders.xlsx: Hidden (hidden)"));
    assert!(fixture.text("orders.xlsx/Empty").contains("no rows"));
}

#[test]
fn ranges_have_no_header() {
    let fixture = Fixture::new();
    let notes = "orders.xlsx/Notes%20%26%20more";
    let text = fixture.text(&format!("{notes}?range=A1:Z9"));
    assert!(text.contains("| # | A | B | C | D |") && text.contains("| 7 |  |  |  | PT26H30M0S |"), "{text}");
    assert!(text.contains("merged cells, whose value is in the first one: B2:D2"), "{text}");
    assert_eq!(fixture.rows(&format!("{notes}?range=B4:C5")), [r#"["key","value"]"#, r#"["a",1]"#]);
    assert_eq!(fixture.json(&format!("{notes}?range=C:C"))["columns"], serde_json::json!(["C"]));
    assert_eq!(fixture.rows("orders.xlsx/Orders?range=A2"), ["[1]"]);
    assert!(fixture.text("orders.xlsx/Orders?range=D2:D3").contains("- D2: `=C2*2`"));
}

#[test]
fn two_distant_cells_take_little_memory() {
    let fixture = Fixture::new();
    assert_eq!(fixture.rows("corner.xlsx/Sheet?range=XFD1048576"), [r#"["far"]"#]);
    assert_eq!(fixture.rows("corner.xlsx/Sheet?rows=1048575&columns=XFD"), [r#"["far"]"#]);
    assert!(fixture.text("corner.xlsx/Sheet").contains("next rows](?rows=1048575-"));
}

#[test]
fn older_and_open_workbooks_are_read() {
    let fixture = Fixture::new();
    assert_eq!(fixture.rows("old.xls/Old?rows=1"), [r#"["Größe",3,"2026-11-21"]"#]);
    assert!(fixture.text("old.xls/Old").contains("A5:C5"));
    assert!(fixture.text("open.ods").contains("[Open/Sheet](open.ods/Open%2FSheet)"));
    assert_eq!(fixture.rows("open.ods/Open%2FSheet"), [r#"["Köln",1087353]"#, r#"["Bonn",335975.5]"#]);
}

#[test]
fn parquet_is_read_with_its_declared_types() {
    let fixture = Fixture::new();
    let types =
        ["integer", "decimal(12,2)", "integer", "number", "text", "date", "date-time", "date-time", "boolean", "list"];
    assert_eq!(fixture.types("measures.parquet/schema"), types);
    // Across row groups; numbers with more digits than a double become text.
    assert_eq!(
        fixture.rows("measures.parquet?rows=300-301&columns=id,big,day,at,utc"),
        [
            r#"[299,"1152921504606847275","2026-10-27","2026-01-01T00:00:59","2026-01-01T00:00:00Z"]"#,
            r#"[300,"1152921504606847276","2026-10-28","2026-01-01T00:00:00","2026-01-01T00:00:00Z"]"#,
        ]
    );
    assert!(fixture.text("measures.parquet?rows=301&columns=price&format=json").contains("[[3.00]]"));
    assert_eq!(fixture.rows("measures.parquet?rows=8&columns=ratio,tags"), [r#"[null,["a","b"]]"#]);
    assert_eq!(fixture.json("measures.parquet?rows=990-2000")["rows"].as_array().unwrap().len(), 11);
    for codec in ["gzip", "brotli", "lz4", "zstd", "none"] {
        assert_eq!(fixture.rows(&format!("{codec}.parquet?rows=10")), [r#"[9,"name 9"]"#], "{codec}");
    }
}
