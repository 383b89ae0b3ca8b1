//! Tables in granted directories: CSV and similar text formats, workbooks, Parquet. Each table is read in pages of rows as
//! Markdown or JSON, and has a schema.
//!
//! This module implements the provider. It is the only module that knows resources and the list. `place` finds the file of
//! a reference, and `query` parses the parameters. `read` builds the answer: a `source` (a `table::Source`) gives the rows,
//! `render` and `schema` write them. `tools` gives rows to models, and to the page `view/table.html`. Wherever the format allows it, only the needed part of a file is read.

mod cell;
mod column;
mod dialect;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod infer;
mod parts;
mod place;
mod query;
mod read;
mod render;
mod schema;
mod search;
mod source;
mod table;
mod tools;

use std::fmt::Write as _;

use belljar_guest::{
    Annotations, Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions,
    Suggestions, Template, reference,
};
use belljar_tree::{Bounds, Kind as FileKind, MAX_REFERENCE_BYTES, Meta, Step, Tree, Walk, name};

use query::Query;
use source::package::{Package, Sheet};
use source::{Format, Kind, is_served};

/// The provider.
#[derive(Debug)]
pub struct Tables {
    tree: Tree,
}

/// Entries per page of the list.
const PAGE: usize = 1000;

/// The most workbooks that are opened for one page of the list.
const MAX_OPENED: usize = 200;

/// The largest workbook that the list opens, in bytes.
const LARGEST_LISTED: u64 = 64 * 1024 * 1024;

const TABLE: &str = "{+path}{?rows,lines,columns,where,sort,format,header,skip,delimiter,quote,encoding}";
const SHEET: &str = "{+path}/{sheet}{?rows,lines,columns,where,sort,range,format,header,skip}";
const TABLE_SCHEMA: &str = "{+path}/schema{?format}";
const SHEET_SCHEMA: &str = "{+path}/{sheet}/schema{?format}";

const MARKDOWN: &str = "text/markdown";

impl Provider for Tables {
    fn open() -> Result<Self> {
        Ok(Tables { tree: Tree::open_granted()? })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Tables".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("CSV, spreadsheet and Parquet files as tables: rows, columns and schemas")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let start = cursor.map(reference::decode).transpose()?.unwrap_or_default();
        self.page(start, PAGE)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let rows = "Rows of the table at {path} as Markdown, or as JSON with {format}: the first 100, or those in {rows} \
                    (101-200), with the columns {columns} (names, letters or numbers: name,B,4-6); with {where}, the rows that \
                    meet conditions (amount>10 and name~anna; = != < <= > >= ~), and with {sort} in the order of columns (-amount)";
        Ok(vec![
            Template::new(TABLE).name("rows").title("Rows of a CSV or Parquet file").description(format!(
                "{rows}. For text files, {{header}} (yes, no), {{skip}} (lines before the header), {{delimiter}} (comma, semicolon, tab, pipe), {{quote}} (none) and \
                 {{encoding}} override the automatic detection"
            )),
            Template::new(SHEET).name("sheet").title("Rows or cells of a sheet").description(format!(
                "{}. With {{range}}, the cells of a rectangle (B2:D20), without a header",
                rows.replace("table at {path}", "sheet {sheet} of the workbook at {path}")
            )),
            Template::new(TABLE_SCHEMA).name("schema").title("Schema of a CSV or Parquet file").description(
                "The columns of the table at {path}: names, types, numbers of empty cells, examples; and the number of rows",
            ),
            Template::new(SHEET_SCHEMA).name("sheet-schema").title("Schema of a sheet").description(
                "The columns of the sheet {sheet} of the workbook at {path}: names, types, numbers of empty cells, examples",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (path, query) = reference::split(reference);
        if path.is_empty() {
            return Ok(self.index(reference)?.into());
        }
        if reference == tools::VIEW {
            return Ok(Contents::text(reference, tools::PAGE).mime_type(tools::PAGE_TYPE).into());
        }
        // An absent file is `NotFound`, even if the query is malformed.
        let place = place::find(&self.tree, path)?;
        let query = Query::parse(query)?;
        Ok(read::read(&self.tree, reference, &place, &query)?.0.into())
    }
}

impl Completion for Tables {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        if ![TABLE, SHEET, TABLE_SCHEMA, SHEET_SCHEMA].contains(&template) {
            return Err(Error::invalid(format_args!("no template \"{template}\"")));
        }
        let value = argument.value.as_str();
        let known =
            |name: &str| resolved.iter().find(|argument| argument.name == name).map(|found| found.value.as_str());
        let is_of_sheet = [SHEET, SHEET_SCHEMA].contains(&template);
        let place = || {
            let path = reference::encode(known("path").unwrap_or_default());
            let sheet = known("sheet").filter(|_| is_of_sheet);
            let whole = sheet.map_or(path.clone(), |sheet| format!("{path}/{}", reference::encode_segment(sheet)));
            place::find(&self.tree, &whole)
        };
        // A table that cannot be opened gives no suggestions.
        let or_none = |found: Result<Vec<String>>| Suggestions::starting_with(value, found.unwrap_or_default());
        let offered = template.contains(&argument.name);
        Ok(match argument.name.as_str() {
            "path" if is_of_sheet => belljar_tree::complete(&self.tree, value, |name| {
                is_served(name) && matches!(Kind::by_name(name), Kind::Book(_))
            })?,
            "path" => belljar_tree::complete(&self.tree, value, |name| {
                is_served(name) && !matches!(Kind::by_name(name), Kind::Book(_))
            })?,
            "sheet" if is_of_sheet => or_none(place().and_then(|place| {
                let file = &mut self.tree.open(&place.path)?;
                let book = read::open_book(&self.tree, &place, Kind::of(file, name(&place.path))?)?;
                Ok(book.sheets.into_iter().map(|sheet| sheet.name).collect())
            })),
            "columns" if offered => or_none(place().and_then(|place| read::columns(&self.tree, &place))),
            "rows" if offered => Suggestions::starting_with(value, ["1-100", "1-1000"]),
            "format" => Suggestions::starting_with(value, ["markdown", "json"]),
            "header" if offered => Suggestions::starting_with(value, ["auto", "yes", "no"]),
            "delimiter" if offered => Suggestions::starting_with(value, ["comma", "semicolon", "tab", "pipe", "space"]),
            "quote" if offered => Suggestions::starting_with(value, ["double", "none"]),
            "encoding" if offered => Suggestions::starting_with(
                value,
                [
                    "utf-8",
                    "utf-16le",
                    "windows-1252",
                    "windows-1251",
                    "iso-8859-15",
                    "koi8-r",
                    "shift_jis",
                    "gbk",
                    "gb18030",
                ],
            ),
            "lines" if offered => Suggestions::starting_with(value, ["1-100", "-100"]),
            "sort" if offered => or_none(place().and_then(|place| read::columns(&self.tree, &place))),
            "range" | "where" | "skip" if offered => Suggestions::default(),
            other => return Err(Error::invalid(format_args!("no variable \"{other}\" in \"{template}\""))),
        })
    }
}

impl Revisions for Tables {
    fn catalog_revision(&self) -> Result<String> {
        belljar_tree::list_revision(&self.tree, Bounds::default(), is_served)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (path, _) = reference::split(reference);
        if path.is_empty() {
            return self.catalog_revision();
        }
        if reference == tools::VIEW {
            return Ok(env!("CARGO_PKG_VERSION").to_owned());
        }
        Ok(place::find(&self.tree, path)?.meta.revision())
    }
}

impl Tables {
    /// A page of the files after the path `start`, with their sheets.
    fn page(&self, start: String, size: usize) -> Result<Page> {
        let mut walk = Walk::new(&self.tree, start, size).only(is_served);
        let (mut resources, mut opened) = (Vec::new(), 0);
        let mut last = String::new();
        loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::Paused(position) => return Ok(Page::new(resources).next_cursor(reference::encode(&position))),
                Step::End => return Ok(Page::new(resources)),
            };
            if resources.len() >= size || opened >= MAX_OPENED {
                return Ok(Page::new(resources).next_cursor(reference::encode(&last)));
            }
            last.clone_from(&path);
            let Ok(meta) = self.tree.meta(&path) else { continue };
            if meta.kind != FileKind::File {
                continue;
            }
            let sheets = self.sheets(&path, &meta);
            opened += usize::from(sheets.is_some());
            resources.extend(resource(&path, &meta));
            resources.extend(sheets.into_iter().flatten().filter_map(|sheet| sheet_resource(&path, &meta, &sheet)));
        }
    }

    /// The sheets of an XLSX workbook. `None` for other formats, which would have to be read as a whole.
    fn sheets(&self, path: &str, meta: &Meta) -> Option<Vec<Sheet>> {
        if Kind::by_name(path) != Kind::Book(Format::Xlsx) || meta.size > LARGEST_LISTED {
            return None;
        }
        let file = self.tree.open(path).ok()?;
        // A damaged workbook is listed without sheets; a read gives the error.
        Some(Package::open(file, path).ok().and_then(|mut package| package.sheets()).unwrap_or_default())
    }

    /// All tables, with links.
    fn index(&self, reference: &str) -> Result<Contents> {
        let page = self.page(String::new(), PAGE)?;
        let mut text = "# Tables\n\n".to_owned();
        for resource in &page.resources {
            let title = resource.title.as_ref().unwrap_or(&resource.name);
            let link = resource.reference.replace('(', "%28").replace(')', "%29");
            let _ = writeln!(text, "- [{}]({link})", render::inline(title));
        }
        if page.resources.is_empty() {
            text.push_str("(none: this provider serves files whose names end in .csv, .tsv, .tab, .psv, .jsonl, .ndjson, .xlsx, .xlsm, .xlsb, .xls, .ods, .parquet)\n");
        }
        if page.next_cursor.is_some() {
            text.push_str("\nThere are more tables; the list of resources has all of them.\n");
        }
        Ok(Contents::text(reference, text).mime_type(MARKDOWN))
    }
}

/// The list's entry for a file. `None` if its reference is longer than the host accepts.
fn resource(path: &str, meta: &Meta) -> Option<Resource> {
    let what = match Kind::by_name(path) {
        Kind::Delimited(_) => "Text table",
        Kind::Lines(_) => "JSON lines",
        Kind::Book(_) => "Workbook",
        Kind::Parquet => "Parquet table",
    };
    let gives = match Kind::by_name(path) {
        Kind::Book(_) => "reads as the list of its sheets",
        _ => "reads as its first 100 rows; /schema has columns and types",
    };
    let reference = reference::encode(path);
    let mut resource = Resource::new(reference)
        .name(name(path))
        .title(path)
        .mime_type(MARKDOWN)
        .description(format!("{what} of {} bytes: {gives}", render::grouped(meta.size)));
    resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
    (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
}

/// The list's entry for a sheet.
fn sheet_resource(path: &str, meta: &Meta, sheet: &Sheet) -> Option<Resource> {
    // These names are invalid as segments of a reference.
    if matches!(sheet.name.as_str(), "" | "." | "..") {
        return None;
    }
    let reference = format!("{}/{}", reference::encode(path), reference::encode_segment(&sheet.name));
    let hidden = if sheet.is_hidden { "hidden sheet" } else { "sheet" };
    let mut resource = Resource::new(reference)
        .name(sheet.name.as_str())
        .title(format!("{path}: {}", sheet.name))
        .mime_type(MARKDOWN)
        .description(format!("A {hidden}: reads as its first 100 rows; /schema has columns and types"));
    resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
    (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
}

belljar_guest::export!(Tables: Completion, Parts, Revisions, Tools);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
