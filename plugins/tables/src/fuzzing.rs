//! Entry points for fuzzing: each runs a parser of this provider over the bytes of a stranger. None of them may panic.

use std::io::Read as _;

use crate::cell::{Cell, Value};
use crate::dialect::Dialect;
use crate::filter::{Condition, Filter, Order};
use crate::infer;
use crate::query::Query;
use crate::source::packed::Packing;
use crate::source::{Kind, biff, lines, ods, tags, xlsx};

/// The most bytes that a packed input may unpack to.
const MOST: u64 = 1024 * 1024;

/// The kind, the encoding and the dialect of a text file, and its header.
pub fn dialect(bytes: &[u8]) {
    let _ = Kind::of_bytes(bytes, "a.csv");
    let Ok(dialect) = Dialect::of(bytes, "a.csv", &Query::default()) else { return };
    let text = dialect.decode(bytes, false);
    let delimiter = char::from(dialect.delimiter);
    let rows: Vec<Vec<String>> =
        text.lines().take(20).map(|line| line.split(delimiter).map(str::to_owned).collect()).collect();
    infer::has_header(&rows);
    infer::preamble(&rows);
    for text in rows.into_iter().flatten() {
        infer::Type::of(&Value::of_text(text));
    }
}

/// The query of a reference, with its conditions and orders.
pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Query::parse(&text);
    let Ok(conditions) = Condition::parse(&text) else { return };
    let names = ["a".to_owned(), "b".to_owned()];
    let orders = Order::parse("a,-b").unwrap_or_default();
    let cells: Vec<Option<Cell>> =
        text.split('=').take(2).map(|text| Some(Value::of_text(text.to_owned()).into())).collect();
    if let Ok(filter) = Filter::new(&conditions, &orders, &names, &mut vec![0, 1]) {
        filter.holds(&cells);
        filter.order(&cells, &cells);
    }
}

/// A packed text.
pub fn packed(bytes: &[u8]) {
    if let Some(packing) = Packing::of(bytes) {
        let _ = std::io::copy(&mut packing.open(bytes).take(MOST), &mut std::io::sink());
    }
}

/// A line of JSON.
pub fn json_line(bytes: &[u8]) {
    lines::fuzz(bytes);
}

/// A workbook of Excel 2 to 5.
pub fn old_excel(bytes: &[u8]) {
    if let Ok(book) = biff::parse(bytes) {
        for sheet in book.sheets() {
            book.cells(&sheet.name);
        }
    }
}

/// The XML of a sheet of Excel, read from its rows.
pub fn sheet_xml(bytes: &[u8]) {
    xlsx::fuzz(bytes);
}

/// The content of an OpenDocument spreadsheet.
pub fn open_document(bytes: &[u8]) {
    ods::fuzz(bytes);
}

/// The tags of any XML.
pub fn xml_tags(bytes: &[u8]) {
    let mut tags = tags::Tags::new(bytes);
    while let Ok(Some(tag)) = tags.next() {
        drop((tag.text(), tag.attribute("r")));
        tags.tidy();
    }
}
