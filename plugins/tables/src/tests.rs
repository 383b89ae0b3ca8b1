//! Tests of the provider over temporary files, and over fixtures from other programs (`fixtures/make.py`).

mod calls;
mod hostile;
mod paging;
mod parts;
mod searches;
mod workbooks;

use std::fs;
use std::path::Path;

use belljar_guest::Body;
use belljar_tree::Directory;
use serde_json::Value;

use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    tables: Tables,
}

impl Fixture {
    /// A provider over a copy of the fixtures.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        }
        let tree = Tree::new(vec![("/tables".to_owned(), Directory::at(dir.path()).unwrap())], "").unwrap();
        Fixture { dir, tables: Tables { tree } }
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn text(&self, reference: &str) -> String {
        let mut reading = self.tables.read(reference).unwrap_or_else(|error| panic!("{reference}: {error}"));
        assert_eq!(reading.contents.len(), 1);
        match reading.contents.remove(0).body {
            Body::Text(text) => text,
            Body::Blob(_) => panic!("a blob"),
        }
    }

    fn json(&self, reference: &str) -> Value {
        let separator = if reference.contains('?') { '&' } else { '?' };
        serde_json::from_str(&self.text(&format!("{reference}{separator}format=json"))).unwrap()
    }

    /// The rows of a read, as JSON text.
    fn rows(&self, reference: &str) -> Vec<String> {
        self.json(reference)["rows"].as_array().unwrap().iter().map(Value::to_string).collect()
    }

    fn error(&self, reference: &str) -> String {
        match self.tables.read(reference) {
            Err(error) => error.to_string(),
            Ok(reading) => panic!("{reference}: {:?}", reading.contents),
        }
    }

    fn types(&self, reference: &str) -> Vec<String> {
        let schema = self.json(reference);
        let columns = schema["columns"].as_array().unwrap();
        columns.iter().map(|column| column["type"].as_str().unwrap().to_owned()).collect()
    }
}

const SALES: &str = "id,name,amount,day\n1,\"Anna | Co\",10.50,2026-11-21\n2,x,0.1,2026-11-22\n3,\"a\nb\",,\n";

#[test]
fn a_table_reads_as_markdown_and_json() {
    let fixture = Fixture::new();
    fixture.write("sub/sales.csv", SALES);
    assert_eq!(
        fixture.text("sub/sales.csv"),
        "# sub/sales.csv\n\n| # | id | name | amount | day |\n|---|---|---|---|---|\n\
         | 1 | 1 | Anna \\| Co | 10.50 | 2026-11-21 |\n| 2 | 2 | x | 0.1 | 2026-11-22 |\n| 3 | 3 | a<br>b |  |  |\n\n\
         rows 1-3 of 3\n"
    );
    let text = fixture.text("sub/sales.csv?format=json");
    // Numbers keep the digits of the file.
    assert!(text.contains(r#"[1,"Anna | Co",10.50,"2026-11-21"]"#), "{text}");
    let json = fixture.json("sub/sales.csv");
    assert_eq!(json["columns"], serde_json::json!(["id", "name", "amount", "day"]));
    assert_eq!((json["totalRows"].as_u64(), &json["nextRows"]), (Some(3), &Value::Null));
    assert_eq!(json["rows"][2], serde_json::json!([3, "a\nb", null, null]));
    assert_eq!(fixture.rows("sub/sales.csv?columns=day,A&rows=2"), [r#"["2026-11-22",2]"#]);
}

#[test]
fn a_schema_has_types_empty_cells_and_examples() {
    let fixture = Fixture::new();
    fixture.write("sales.csv", SALES);
    assert_eq!(fixture.types("sales.csv/schema"), ["integer", "text", "decimal", "date"]);
    let schema = fixture.json("sales.csv/schema");
    assert_eq!((schema["rows"].as_u64(), schema["rowsIsExact"].as_bool()), (Some(3), Some(true)));
    let amount = &schema["columns"][2];
    assert_eq!((amount["scale"].as_u64(), amount["empty"].as_u64()), (Some(2), Some(1)));
    assert_eq!(amount["examples"], serde_json::json!(["10.50", "0.1"]));
    let text = fixture.text("sales.csv/schema");
    assert!(text.contains("3 rows, 4 columns, the first row names them; comma-separated; UTF-8."), "{text}");
    assert!(text.contains("| amount | C | decimal, scale 2 | 1 | 5 | 10.50; 0.1 |"), "{text}");
}

#[test]
fn the_list_has_files_and_sheets() {
    let fixture = Fixture::new();
    fixture.write("sub/für Anna.csv", SALES);
    fixture.write("notes.txt", "no table");
    let page = fixture.tables.list_resources(None).unwrap();
    let references: Vec<&str> = page.resources.iter().map(|resource| resource.reference.as_str()).collect();
    for expected in ["sub/f%C3%BCr%20Anna.csv", "orders.xlsx", "orders.xlsx/Notes%20&%20more", "orders.xlsx/Hidden"] {
        assert!(references.contains(&expected), "{expected}: {references:?}");
    }
    assert!(!references.iter().any(|reference| reference.contains("notes.txt") || reference.contains("make.py")));
    for resource in &page.resources {
        assert!(!fixture.text(&resource.reference).is_empty());
    }
    // Pages of one entry give the same list.
    let (mut cursor, mut one_by_one) = (String::new(), Vec::new());
    loop {
        let page = fixture.tables.page(reference::decode(&cursor).unwrap(), 1).unwrap();
        one_by_one.extend(page.resources.into_iter().map(|resource| resource.reference));
        match page.next_cursor {
            Some(next) => cursor = next,
            None => break,
        }
    }
    assert_eq!(one_by_one, references);
    assert!(fixture.text("").contains("- [orders.xlsx: Notes & more](orders.xlsx/Notes%20&%20more)"));
}

#[test]
fn absent_tables_are_not_found_and_wrong_parameters_are_invalid() {
    let fixture = Fixture::new();
    fixture.write("sales.csv", SALES);
    fixture.write("dir.csv/inner.csv", SALES);
    for reference in
        ["no.csv", "sales.csv/x", "sales.csv/schema/x", "orders.xlsx/No", "orders.xlsx/Orders/x", "make.py", "sub"]
    {
        assert_eq!(fixture.tables.read(reference), Err(Error::NotFound), "{reference}");
    }
    assert_eq!(fixture.rows("dir.csv/inner.csv").len(), 3);
    assert!(
        fixture.error("sales.csv?columns=nope").contains("no column \"nope\": the columns are id, name, amount, day")
    );
    assert!(fixture.error("sales.csv?range=A1").contains("only for sheets"));
    assert!(fixture.error("sales.csv?page=2").contains("unknown parameter \"page\""));
}

#[test]
fn variables_are_completed() {
    let fixture = Fixture::new();
    fixture.write("sub/sales.csv", SALES);
    let complete = |template: &str, name: &str, value: &str, known: &[(&str, &str)]| {
        let known: Vec<Argument> = known.iter().map(|(name, value)| Argument::new(*name, *value)).collect();
        fixture.tables.complete(template, &Argument::new(name, value), &known).unwrap().values
    };
    assert_eq!(complete(TABLE, "path", "s", &[]), ["sub/"]);
    assert_eq!(complete(TABLE, "path", "sub/", &[]), ["sub/sales.csv"]);
    assert_eq!(complete(SHEET, "path", "or", &[]), ["orders.xlsx"]);
    assert_eq!(complete(SHEET, "sheet", "n", &[("path", "orders.xlsx")]), ["Notes & more"]);
    assert_eq!(complete(TABLE, "columns", "", &[("path", "sub/sales.csv")]), ["id", "name", "amount", "day"]);
    assert_eq!(complete(SHEET, "columns", "cu", &[("path", "orders.xlsx"), ("sheet", "Orders")]), ["customer"]);
    assert_eq!(complete(TABLE, "format", "j", &[]), ["json"]);
    assert!(fixture.tables.complete(TABLE, &Argument::new("sheet", ""), &[]).is_err());
    assert!(fixture.tables.complete("x", &Argument::new("path", ""), &[]).is_err());
}

#[test]
fn revisions_change_when_a_file_changes() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "a\n1\n");
    let of = |reference: &str| fixture.tables.resource_revision(reference).unwrap();
    let (before, list) = (of("a.csv"), fixture.tables.catalog_revision().unwrap());
    assert_eq!(of("a.csv/schema?format=json"), before);
    fixture.write("a.csv", "a\n1\n2\n");
    assert!(of("a.csv") != before && fixture.tables.catalog_revision().unwrap() != list);
    fs::remove_file(fixture.dir.path().join("a.csv")).unwrap();
    assert_eq!(fixture.tables.resource_revision("a.csv"), Err(Error::NotFound));
}
