//! The tool `query`, and the page that shows its results.

use belljar_guest::{Error, Result, Tool, ToolResult, ToolSet, Tools, View, reference};
use belljar_tree::name;
use serde::Deserialize;

use crate::place::{self, Place};
use crate::query::Query;
use crate::source::Kind;
use crate::{Tables, read, render};

/// The reference of the page.
pub(crate) const VIEW: &str = "view/table.html";

/// The page.
pub(crate) const PAGE: &str = include_str!("../view/table.html");

/// The media type of the page, which MCP Apps compares exactly.
pub(crate) const PAGE_TYPE: &str = "text/html;profile=mcp-app";

/// The most names of tables or sheets in an error.
const MAX_NAMED: usize = 20;

/// The schema of the result: the fields of `render::Document` that a client needs.
const OUTPUT: &str = r#"{"type":"object","properties":{"table":{"type":"string"},"columns":{"type":"array","items":{"type":"string"}},"rows":{"type":"array","items":{"type":"array"}},"totalRows":{"type":["integer","null"]},"nextRows":{"type":["string","null"]}},"required":["columns","rows"]}"#;

/// The schema of [`Wanted`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"table":{"type":"string","description":"Path; of a sheet book.xlsx/Orders"},"columns":{"type":"string","description":"Names, letters or numbers: name,B,4-6"},"rows":{"type":"string","description":"101-200, or nextRows; 1-100 by default"},"where":{"type":"string","description":"amount>10 and name~anna; operators = != < <= > >= ~ (contains)"},"sort":{"type":"string","description":"-amount,name"}},"required":["table"],"additionalProperties":false}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    table: String,
    columns: Option<String>,
    rows: Option<String>,
    r#where: Option<String>,
    sort: Option<String>,
}

impl Tools for Tables {
    fn tools() -> ToolSet<Self> {
        let query = Tool::reading("query", "Rows of a CSV file, sheet or Parquet file.");
        ToolSet::new().tool_with_schemas(query.input(INPUT).output(OUTPUT).view(View::new(VIEW)), Tables::query)
    }
}

impl Tables {
    fn query(&self, wanted: Wanted) -> Result<ToolResult> {
        let path = wanted.table.trim_matches('/');
        let place = place::find(&self.tree, &reference::encode(path)).map_err(|error| match error {
            Error::NotFound => self.no_table(path),
            other => other,
        })?;
        let query = Query::parse(&query_of(&wanted))?;
        let kind = Kind::of(&mut self.tree.open(&place.path)?, name(&place.path))?;
        let sheet = self.sheet(&place, kind)?;
        read::table(&self.tree, &place, kind, sheet.as_deref(), &query, result)
    }

    /// The sheet of a place in a workbook. Only one of several has to be named.
    fn sheet(&self, place: &Place, kind: Kind) -> Result<Option<String>> {
        let path = &place.path;
        match (kind, place.inside.as_slice()) {
            (Kind::Book(_), inside) => {
                let book = read::open_book(&self.tree, place, kind)?;
                match (inside, book.sheets.as_slice()) {
                    ([], [only]) => return Ok(Some(only.name.clone())),
                    ([sheet], sheets) if sheets.iter().any(|one| one.name.to_lowercase() == sheet.to_lowercase()) => {
                        return Ok(Some(sheet.clone()));
                    }
                    _ => {}
                }
                let sheets = book.sheets.iter().map(|sheet| format!("{path}/{}", sheet.name));
                let known = one_of(sheets.take(MAX_NAMED));
                let asked = [std::slice::from_ref(path), inside].concat().join("/");
                Err(Error::invalid(format_args!(
                    "\"table\" is \"{asked}\": expected a sheet of this workbook, {known}"
                )))
            }
            (_, []) => Ok(None),
            (_, inside) => {
                let asked = inside.join("/");
                Err(Error::invalid(format_args!("\"{path}\" has no sheet \"{asked}\": expected \"{path}\" alone")))
            }
        }
    }

    fn no_table(&self, path: &str) -> Error {
        let listed = self.page(String::new(), MAX_NAMED).map(|page| page.resources).unwrap_or_default();
        let names = listed.iter().filter_map(|resource| reference::decode(&resource.reference).ok());
        let known = one_of(names.take(MAX_NAMED));
        Error::invalid(format_args!("there is no table \"{path}\": expected {known}"))
    }
}

fn one_of(names: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    match quoted.as_slice() {
        [] => "none, because there is none".to_owned(),
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// The arguments as the query of a reference. `rows` may have the position of the next rows after an `@`.
fn query_of(wanted: &Wanted) -> String {
    let (rows, from) = match wanted.rows.as_deref().and_then(|rows| rows.split_once('@')) {
        Some((rows, from)) => (Some(rows), Some(from)),
        None => (wanted.rows.as_deref(), None),
    };
    let given = [
        ("columns", wanted.columns.as_deref()),
        ("rows", rows),
        ("from", from),
        ("where", wanted.r#where.as_deref()),
        ("sort", wanted.sort.as_deref()),
    ];
    let pairs = given.into_iter().filter_map(|(key, value)| {
        // In a query, "&" ends a value.
        Some(format!("{key}={}", reference::encode_segment(value?).replace('&', "%26")))
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// The rows in both forms.
fn result(sheet: &render::Sheet<'_>) -> Result<ToolResult> {
    let value = |query: Option<&str>, key: &str| -> Result<Option<String>> {
        query.map_or(Ok(None), |query| reference::query_value(query.trim_start_matches('?'), key))
    };
    let next_rows = value(sheet.next_rows, "rows")?;
    let next_rows = match value(sheet.next_rows, "from")? {
        Some(from) => next_rows.map(|rows| format!("{rows}@{from}")),
        None => next_rows,
    };
    let next_columns = value(sheet.next_columns, "columns")?;
    let sheet = render::Sheet {
        next_rows: next_rows.as_deref(),
        next_columns: next_columns.as_deref(),
        is_tool: true,
        ..*sheet
    };
    let json = sheet.json().ok_or_else(|| Error::failed("the table could not be written as JSON"))?;
    Ok(ToolResult::text(sheet.markdown()).structured(json))
}
