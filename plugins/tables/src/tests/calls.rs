//! Tests of the tool and of its page.

use belljar_guest::{BlockBody, Context, Tools as _};

use super::*;
use crate::tools::{PAGE, VIEW};

fn query(fixture: &Fixture, arguments: &Value) -> Result<(String, Value)> {
    let result = Tables::tools().call(&fixture.tables, "query", &arguments.to_string(), &Context::default())?;
    let result = result.done().unwrap();
    let [block] = result.content.as_slice() else { panic!("{result:?}") };
    let BlockBody::Text(text) = &block.body else { panic!("{block:?}") };
    Ok((text.clone(), serde_json::from_str(&result.structured.unwrap()).unwrap()))
}

fn invalid(fixture: &Fixture, arguments: &Value) -> String {
    match query(fixture, arguments) {
        Err(Error::Invalid(why)) => why,
        other => panic!("{arguments}: {other:?}"),
    }
}

#[test]
fn a_query_gives_rows_twice() {
    let fixture = Fixture::new();
    fixture.write("sub/sales.csv", SALES);
    let (text, found) =
        query(&fixture, &serde_json::json!({ "table": "sub/sales.csv", "columns": "name,A", "rows": "1-2" })).unwrap();
    assert_eq!(found["rows"], serde_json::json!([["Anna | Co", 1], ["x", 2]]));
    assert_eq!((&found["columns"], &found["table"]), (&serde_json::json!(["name", "id"]), &"sub/sales.csv".into()));
    let next = found["nextRows"].as_str().unwrap();
    assert!(next.starts_with("3-4@") && text.contains(&format!("rows 1-2 of 3; nextRows: {next}\n")), "{next}: {text}");
    assert!(text.contains("| 1 | Anna \\| Co | 1 |"), "{text}");
    // The next rows are those of the result, whatever the position in it.
    let (_, rest) = query(&fixture, &serde_json::json!({ "table": "sub/sales.csv", "rows": next })).unwrap();
    assert_eq!((&rest["rows"][0][0], &rest["nextRows"]), (&3.into(), &Value::Null));
}

#[test]
fn a_wide_table_names_its_next_columns() {
    let fixture = Fixture::new();
    let names: Vec<String> = (1..=60).map(|n| format!("c{n}")).collect();
    fixture.write("wide.csv", format!("{}\n{}\n", names.join(","), names.join(",")));
    let (text, found) = query(&fixture, &serde_json::json!({ "table": "wide.csv" })).unwrap();
    assert!(text.contains("50 of 60 columns; next: 51-60\n"), "{text}");
    assert_eq!(found["nextColumns"], "51-60");
    let (_, rest) = query(&fixture, &serde_json::json!({ "table": "wide.csv", "columns": "51-60" })).unwrap();
    assert_eq!(rest["columns"].as_array().unwrap().len(), 10);
}

#[test]
fn sheets_and_parquet_files_are_tables() {
    let fixture = Fixture::new();
    let (_, found) = query(&fixture, &serde_json::json!({ "table": "orders.xlsx/orders", "rows": "1" })).unwrap();
    assert_eq!(found["rows"].as_array().unwrap().len(), 1);
    let (_, found) = query(&fixture, &serde_json::json!({ "table": "/measures.parquet", "rows": "2" })).unwrap();
    assert_eq!(found["firstRow"], 2);
    let why = invalid(&fixture, &serde_json::json!({ "table": "orders.xlsx" }));
    assert!(why.contains("one of \"orders.xlsx/Orders\", "), "{why}");
    let why = invalid(&fixture, &serde_json::json!({ "table": "orders.xlsx/None" }));
    assert!(why.contains("\"table\" is \"orders.xlsx/None\": expected a sheet"), "{why}");
}

#[test]
fn errors_say_what_was_expected() {
    let fixture = Fixture::new();
    fixture.write("a&b.csv", "x\n1\n");
    assert!(query(&fixture, &serde_json::json!({ "table": "a&b.csv" })).is_ok());
    for (arguments, expected) in [
        (serde_json::json!({ "table": "none.csv" }), "there is no table \"none.csv\": expected one of \"a&b.csv\", "),
        (serde_json::json!({ "table": "a&b.csv/schema" }), "expected \"a&b.csv\" alone"),
        (serde_json::json!({ "table": "a&b.csv", "rows": "0" }), "such as 1-100"),
        (serde_json::json!({ "table": "a&b.csv", "columns": "y&rows=1" }), "the columns are x"),
        (serde_json::json!({ "table": "../a&b.csv" }), "\"..\""),
    ] {
        let why = invalid(&fixture, &arguments);
        assert!(why.contains(expected), "{arguments}: {why}");
    }
}

#[test]
fn the_page_is_a_resource_without_network() {
    let fixture = Fixture::new();
    let tools = Tables::tools().list();
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    let page = tool.view.as_ref().map(|view| view.page.as_str());
    assert_eq!(page, Some(VIEW));
    let reading = fixture.tables.read(VIEW).unwrap();
    assert_eq!(reading.contents[0].mime_type.as_deref(), Some("text/html;profile=mcp-app"));
    assert_eq!(fixture.text(VIEW), PAGE);
    assert!(fixture.tables.resource_revision(VIEW).is_ok());
    assert!(PAGE.len() <= 8 * 1024, "{}", PAGE.len());
    for word in [
        "http:",
        "https:",
        "//",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval",
        "fetch",
        "src=",
    ] {
        // Comments of the script are the only place for two slashes.
        let found = PAGE.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| line.contains(word));
        assert!(!found, "{word}");
    }
    let length =
        tool.description.len() + [&tool.input, &tool.output].into_iter().flatten().map(String::len).sum::<usize>();
    // About 200 tokens.
    assert!(length < 800, "{length}: {tool:?}");
}
