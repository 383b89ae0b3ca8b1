//! Builds the contents of a read.

use std::fmt::Write as _;

use belljar_guest::{Contents, Error, Extent, Result, reference};
use belljar_tree::{Tree, name};

use crate::cell::Cell;
use crate::column::{self, Selection};
use crate::place::{Place, SCHEMA};
use crate::query::{Format, Query, Range};
use crate::render::{self, inline};
use crate::schema::Schema;
use crate::search;
use crate::source::Kind;
use crate::source::book::Book;
use crate::source::columnar::Columnar;
use crate::source::delimited::Delimited;
use crate::source::feed::TextFile;
use crate::source::lines::Lines;
use crate::source::sheet::Sheet;
use crate::table::{self, Header, ScanRequest, Source, Start};

const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";

/// Columns per read when the reference has no `columns`.
const COLUMNS: usize = 50;

/// The most columns in one read.
const MAX_COLUMNS: usize = 200;

/// The longest text of a cell, in bytes: in a read of many cells, of up to 12 cells, and of a single cell.
const MAX_CELL_BYTES: [usize; 3] = [1000, 16 * 1024, 1024 * 1024];

/// Reads the part of a file that `place` names. For rows of a table, also gives the numbers of these rows.
pub(crate) fn read(tree: &Tree, reference: &str, place: &Place, query: &Query) -> Result<(Contents, Option<Extent>)> {
    let kind = Kind::of(&mut tree.open(&place.path)?, name(&place.path))?;
    let inside: Vec<&str> = place.inside.iter().map(String::as_str).collect();
    let (sheet, is_schema) = match (kind, inside.as_slice()) {
        (Kind::Book(_), []) => {
            return Ok((overview(&open_book(tree, place, kind)?, reference, place, query)?, None));
        }
        (Kind::Book(_), [sheet]) => (Some(*sheet), false),
        (Kind::Book(_), [sheet, SCHEMA]) => (Some(*sheet), true),
        (Kind::Delimited(_) | Kind::Lines(_) | Kind::Parquet, []) => (None, false),
        (Kind::Delimited(_) | Kind::Lines(_) | Kind::Parquet, [SCHEMA]) => (None, true),
        _ if query.range.is_some() && !matches!(kind, Kind::Book(_)) => return Err(no_range()),
        _ => return Err(Error::NotFound),
    };
    if is_schema {
        let contents = with_source(tree, place, kind, sheet, query, |source, title, facts| {
            let schema = Schema::of(source, title, facts)?;
            Ok(match query.format {
                Format::Markdown => Contents::text(reference, schema.markdown()).mime_type(MARKDOWN),
                Format::Json => json(reference, schema.json())?,
            })
        });
        return Ok((contents?, None));
    }
    table(tree, place, kind, sheet, query, |sheet| Ok((written(reference, sheet, query)?, sheet.extent_in_lines())))
}

/// Reads rows or a rectangle of a table, and gives them to `finish`. `sheet` is the sheet of a workbook.
pub(crate) fn table<T>(
    tree: &Tree,
    place: &Place,
    kind: Kind,
    sheet: Option<&str>,
    query: &Query,
    finish: impl FnOnce(&render::Sheet<'_>) -> Result<T>,
) -> Result<T> {
    with_source(tree, place, kind, sheet, query, |source, title, _| match query.range {
        Some(range) => rectangle(source, title, query, range, finish),
        None => rows(source, title, query, finish),
    })
}

/// Opens a table, and gives it to `work` with its title and facts about its format.
fn with_source<T>(
    tree: &Tree,
    place: &Place,
    kind: Kind,
    sheet: Option<&str>,
    query: &Query,
    work: impl FnOnce(&mut dyn Source, &str, Vec<String>) -> Result<T>,
) -> Result<T> {
    match (kind, sheet) {
        (Kind::Delimited(_) | Kind::Lines(_) | Kind::Parquet, _) if query.range.is_some() => Err(no_range()),
        (Kind::Delimited(packing), None) => {
            let file = TextFile::new(tree, &place.path, place.meta.size, packing);
            let mut source = Delimited::new(file, query)?;
            let mut facts = vec![
                format!("{}-separated", source.dialect.delimiter_name()),
                source.dialect.encoding.name().to_owned(),
            ];
            facts.extend(packing.map(|packing| format!("packed with {}", packing.name())));
            work(&mut source, &place.path, facts)
        }
        (Kind::Lines(packing), None) => {
            let file = TextFile::new(tree, &place.path, place.meta.size, packing);
            let mut facts = vec!["JSON lines".to_owned()];
            facts.extend(packing.map(|packing| format!("packed with {}", packing.name())));
            work(&mut Lines::new(file, query)?, &place.path, facts)
        }
        (Kind::Parquet, None) if query.skip.is_some() => {
            Err(Error::invalid("\"skip\" works for text files and sheets: a Parquet file names its columns itself"))
        }
        (Kind::Parquet, None) => {
            let mut source = Columnar::open(tree.open(&place.path)?, &place.path, place.meta.size)?;
            work(&mut source, &place.path, vec!["Parquet".to_owned()])
        }
        (Kind::Book(_), Some(sheet)) => {
            let mut book = open_book(tree, place, kind)?;
            let sheet = find_sheet(&book, sheet)?;
            let is_hidden = book.sheets.iter().any(|other| other.name == sheet && other.is_hidden);
            let title = format!("{}: {sheet}{}", place.path, if is_hidden { " (hidden)" } else { "" });
            work(&mut Sheet::new(&mut book, &sheet, query), &title, Vec::new())
        }
        _ => Err(Error::NotFound),
    }
}

fn no_range() -> Error {
    Error::invalid("\"range\" works only for sheets of workbooks: use \"rows\" and \"columns\"")
}

/// The workbook at a place.
pub(crate) fn open_book(tree: &Tree, place: &Place, kind: Kind) -> Result<Book> {
    let Kind::Book(format) = kind else { return Err(Error::NotFound) };
    Book::open(format, &|| tree.open(&place.path), &place.path, place.meta.size)
}

/// The names of a table's columns.
pub(crate) fn columns(tree: &Tree, place: &Place) -> Result<Vec<String>> {
    let kind = Kind::of(&mut tree.open(&place.path)?, name(&place.path))?;
    let query = Query::default();
    let Header { names, width } = match (kind, place.inside.first()) {
        (Kind::Delimited(packing), _) => {
            Delimited::new(TextFile::new(tree, &place.path, place.meta.size, packing), &query)?.header()?
        }
        (Kind::Lines(packing), _) => {
            Lines::new(TextFile::new(tree, &place.path, place.meta.size, packing), &query)?.header()?
        }
        (Kind::Parquet, _) => Columnar::open(tree.open(&place.path)?, &place.path, place.meta.size)?.header()?,
        (Kind::Book(_), Some(sheet)) => {
            let mut book = open_book(tree, place, kind)?;
            let sheet = find_sheet(&book, sheet)?;
            Sheet::new(&mut book, &sheet, &query).header()?
        }
        (Kind::Book(_), None) => Header::default(),
    };
    Ok(column::names(&names, width))
}

/// The sheet with this name; an exact match takes precedence over one that differs in case.
fn find_sheet(book: &Book, name: &str) -> Result<String> {
    let exact = book.sheets.iter().find(|sheet| sheet.name == name);
    let alike = || book.sheets.iter().find(|sheet| sheet.name.to_lowercase() == name.to_lowercase());
    exact.or_else(alike).map(|sheet| sheet.name.clone()).ok_or(Error::NotFound)
}

fn json(reference: &str, text: Option<String>) -> Result<Contents> {
    let text = text.ok_or_else(|| Error::failed("the table could not be written as JSON"))?;
    Ok(Contents::text(reference, text).mime_type(JSON))
}

fn longest(cells: usize) -> usize {
    let [many, few, one] = MAX_CELL_BYTES;
    match cells {
        0..=1 => one,
        2..=12 => few,
        _ => many,
    }
}

/// Rows below the header.
fn rows<T>(
    source: &mut dyn Source,
    title: &str,
    query: &Query,
    finish: impl FnOnce(&render::Sheet<'_>) -> Result<T>,
) -> Result<T> {
    let Header { names: header, width } = source.header()?;
    let names = column::names(&header, width);
    let most = if query.columns.is_some() { MAX_COLUMNS } else { COLUMNS };
    let Selection { columns, is_cut } = column::select(query.columns.as_deref(), &names, most)?;
    if query.is_search() {
        return matching(source, title, query, &names, &Selection { columns, is_cut }, finish);
    }
    let (first, last) = query.bounds();
    let (start, last) = match query.last {
        None => (Start { row: first, from: query.from.clone() }, last),
        Some(count) => {
            let start = source.last(count)?.ok_or_else(|| {
                Error::invalid(format_args!(
                    "the last {count} rows cannot be found in one read, because the table is too large; expected rows from the \
                     beginning, such as ?lines=1-{count}"
                ))
            })?;
            let last = start.row.saturating_add(count - 1);
            (start, last)
        }
    };
    let first = start.row;
    let asked = usize::try_from(last - first + 1).unwrap_or(usize::MAX).saturating_mul(columns.len());
    let wanted = ScanRequest { start, last, columns: &columns, longest: longest(asked), is_search: false };
    let piece = table::read(source, &wanted)?;
    let mut notes = piece.end.notes;
    if source.rows_can_be_ragged() {
        let expected = if header.is_empty() { names.len() } else { header.len() };
        let (fewer, more): (Vec<_>, Vec<_>) =
            piece.rows.iter().filter(|row| row.width != expected).partition(|row| row.width < expected);
        if !fewer.is_empty() {
            notes.push(format!("{} of these rows have fewer than {expected} cells", fewer.len()));
        }
        if let Some(row) = more.first() {
            notes.push(format!(
                "{} of these rows have more than {expected} cells, such as row {} with {}: columns={}-{} shows those",
                more.len(),
                row.number,
                row.width,
                expected + 1,
                row.width
            ));
        }
    }
    // The link to the next rows asks for the same number of rows.
    let next_rows = piece
        .end
        .next
        .as_ref()
        .map(|next| query.with_rows(next.row, next.row.saturating_add(last - first), next.from.as_deref()));
    let next_columns = (is_cut && query.columns.is_none())
        .then(|| query.with_columns(&format!("{}-{}", COLUMNS + 1, (COLUMNS * 2).min(names.len()))));
    let sheet = render::Sheet {
        title,
        columns: &columns,
        names: &names,
        rows: &piece.rows,
        total: piece.end.total,
        start: first,
        first_match: None,
        is_range: false,
        next_rows: next_rows.as_deref(),
        next_columns: next_columns.as_deref(),
        next_row: piece.end.next.as_ref().map(|next| next.row),
        is_tool: false,
        notes: &notes,
    };
    finish(&sheet)
}

/// The rows that meet conditions, in their order.
fn matching<T>(
    source: &mut dyn Source,
    title: &str,
    query: &Query,
    names: &[String],
    selection: &Selection,
    finish: impl FnOnce(&render::Sheet<'_>) -> Result<T>,
) -> Result<T> {
    if query.last.is_some() {
        return Err(Error::invalid(
            "the last matching rows are not known before all rows are read: expected rows from the beginning, such as \
             ?lines=1-100, or sort=-column",
        ));
    }
    let (first, last) = query.bounds();
    let asked = usize::try_from(last - first + 1).unwrap_or(usize::MAX).saturating_mul(selection.columns.len());
    let found = search::search(source, query, names, &selection.columns, longest(asked))?;
    let next_rows = found
        .next
        .as_ref()
        .map(|(number, from)| query.with_rows(*number, number.saturating_add(last - first), from.as_deref()));
    let next_columns = (selection.is_cut && query.columns.is_none())
        .then(|| query.with_columns(&format!("{}-{}", COLUMNS + 1, (COLUMNS * 2).min(names.len()))));
    let sheet = render::Sheet {
        title,
        columns: &selection.columns,
        names,
        rows: &found.rows,
        total: found.total,
        start: first,
        first_match: Some(found.first),
        is_range: false,
        next_rows: next_rows.as_deref(),
        next_columns: next_columns.as_deref(),
        next_row: None,
        is_tool: false,
        notes: &found.notes,
    };
    finish(&sheet)
}

/// The cells of a rectangle.
fn rectangle<T>(
    source: &mut dyn Source,
    title: &str,
    query: &Query,
    range: Range,
    finish: impl FnOnce(&render::Sheet<'_>) -> Result<T>,
) -> Result<T> {
    /// The most rows of a rectangle in one read.
    const ROWS: u32 = 1000;
    let wide = range.columns.1.min(range.columns.0.saturating_add(MAX_COLUMNS - 1));
    let last = range.rows.1.min(range.rows.0.saturating_add(ROWS - 1));
    let mut columns: Vec<usize> = (range.columns.0..=wide).collect();
    let asked = usize::try_from(last - range.rows.0 + 1).unwrap_or(usize::MAX).saturating_mul(columns.len());
    let row = u64::from(range.rows.0) + 1;
    let wanted = ScanRequest {
        start: Start { row, from: None },
        last: u64::from(last) + 1,
        columns: &columns,
        longest: longest(asked),
        is_search: false,
    };
    let mut piece = table::read(source, &wanted)?;
    let used = |row: &table::Row| row.cells.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
    // Drop the columns at the right that are empty in all rows.
    let widest = piece.rows.iter().map(used).max().unwrap_or_default().max(1);
    columns.truncate(widest);
    for row in &mut piece.rows {
        row.cells.truncate(widest);
    }
    piece.rows.retain(|row| row.cells.iter().flatten().any(|cell| *cell != Cell::default()));
    let next =
        piece.end.next.as_ref().and_then(|next| u32::try_from(next.row - 1).ok()).filter(|row| *row <= range.rows.1);
    let next_rows = next.map(|row| query.with_range(Range { rows: (row, range.rows.1), ..range }));
    let mut notes = piece.end.notes;
    if wide < range.columns.1 && widest == MAX_COLUMNS {
        let rest = Range { columns: (wide + 1, range.columns.1), ..range };
        notes.push(format!("at most {MAX_COLUMNS} columns are shown; the others are the range {rest}"));
    }
    let names: Vec<String> = (0..=wide).map(column::letters).collect();
    let sheet = render::Sheet {
        title: &format!("{title}, {range}"),
        columns: &columns,
        names: &names,
        rows: &piece.rows,
        total: table::Total::Unknown,
        start: u64::from(range.rows.0) + 1,
        first_match: None,
        is_range: true,
        next_rows: next_rows.as_deref(),
        next_columns: None,
        next_row: None,
        is_tool: false,
        notes: &notes,
    };
    finish(&sheet)
}

fn written(reference: &str, sheet: &render::Sheet<'_>, query: &Query) -> Result<Contents> {
    match query.format {
        Format::Markdown => Ok(Contents::text(reference, sheet.markdown()).mime_type(MARKDOWN)),
        Format::Json => json(reference, sheet.json()),
    }
}

/// A workbook: its sheets, with links.
fn overview(book: &Book, reference: &str, place: &Place, query: &Query) -> Result<Contents> {
    if query.format == Format::Json {
        let sheets: Vec<serde_json::Value> = book
            .sheets
            .iter()
            .map(|sheet| serde_json::json!({ "name": sheet.name, "hidden": sheet.is_hidden }))
            .collect();
        let document = serde_json::json!({ "workbook": place.path, "sheets": sheets, "notes": book.notes });
        return json(reference, Some(document.to_string()));
    }
    let mut text = format!("# {}\n\n", inline(&place.path));
    // Relative to `a/book.xlsx`, a sheet is `book.xlsx/name`.
    let base = if reference.split('?').next().is_some_and(|path| path.ends_with('/')) {
        String::new()
    } else {
        format!("{}/", link(name(&place.path)))
    };
    for sheet in &book.sheets {
        let hidden = if sheet.is_hidden { " (hidden)" } else { "" };
        let target = link(&sheet.name);
        let _ =
            writeln!(text, "- [{}]({base}{target}){hidden}: [schema]({base}{target}/{SCHEMA})", inline(&sheet.name));
    }
    if book.sheets.is_empty() {
        text.push_str("(no sheets with cells)\n");
    }
    for note in &book.notes {
        let _ = writeln!(text, "\nNote: {}", inline(note));
    }
    Ok(Contents::text(reference, text).mime_type(MARKDOWN))
}

/// A name as the target of a Markdown link. Parentheses are encoded, because they would end the target.
pub(crate) fn link(name: &str) -> String {
    reference::encode_segment(name).replace('(', "%28").replace(')', "%29")
}
