//! Reads OpenDocument spreadsheets as a stream of cells.

use std::io::{self, BufReader, Read};

use belljar_guest::{Error, Result};
use belljar_tree::File;
use zip::ZipArchive;

use crate::cell::Value;
use crate::column;
use crate::source::book::{Ended, MAX_CELLS, PositionedCell, Region};
use crate::source::feed::Clock;
use crate::source::package::Sheet;
use crate::source::tags::{Tag, Tags};

/// The part with all tables.
const CONTENT: &str = "content.xml";

/// The most repetitions of a row with cells. More come from a format that was applied to a whole column.
const MAX_REPEATED: u32 = 100_000;

/// Elements in a cell whose text is not the text of the cell.
const FOREIGN: [&[u8]; 8] =
    [b"annotation", b"frame", b"custom-shape", b"rect", b"line", b"ellipse", b"control", b"forms"];

/// An OpenDocument spreadsheet.
pub(crate) struct Ods {
    archive: ZipArchive<BufReader<File>>,
    name: String,
    /// The corner of each sheet that was read to its end.
    corners: Vec<(String, Option<(u32, u32)>)>,
}

/// A cell under construction.
#[derive(Default)]
struct PartialCell {
    kind: String,
    value: Option<String>,
    text: String,
    paragraphs: usize,
    /// True within a paragraph.
    is_inside: bool,
    formula: Option<String>,
    is_error: bool,
    repeated: usize,
}

impl Ods {
    pub(crate) fn new(archive: ZipArchive<BufReader<File>>, name: &str) -> Self {
        Ods { archive, name: name.to_owned(), corners: Vec::new() }
    }

    /// The tables of the document.
    pub(crate) fn sheets(&mut self) -> Result<Vec<Sheet>> {
        let name = self.name.clone();
        let broken =
            |error: &dyn std::fmt::Display| Error::failed(format_args!("\"{name}\" is a damaged workbook: {error}"));
        let content = self.archive.by_name(CONTENT).map_err(|error| broken(&error))?;
        let mut tags = Tags::new(content);
        let (mut hidden, mut style, mut sheets): (Vec<String>, String, Vec<Sheet>) =
            (Vec::new(), String::new(), Vec::new());
        let mut clock = Clock::new();
        while let Some(tag) = tags.next().map_err(|error| broken(&error))? {
            if tag.starts("style") {
                style = tag.attribute("style:name").unwrap_or_default();
            } else if tag.starts("table-properties") && tag.raw("table:display") == Some(b"false") {
                hidden.push(style.clone());
            } else if tag.starts("table") {
                let style = tag.attribute("table:style-name").unwrap_or_default();
                sheets
                    .extend(tag.attribute("table:name").map(|name| Sheet { name, is_hidden: hidden.contains(&style) }));
                let end: &[u8] = if tag.has_prefix { b"</table:table>" } else { b"</table>" };
                if !tag.is_empty {
                    tags.skip_past(end).map_err(|error| broken(&error))?;
                }
            }
            tags.tidy();
            if clock.is_over() {
                return Err(broken(&"its sheets take longer to read than one read has; save it as .xlsx or .csv"));
            }
        }
        Ok(sheets)
    }

    /// The last row and column of a sheet, if the sheet was read to its end before.
    pub(crate) fn corner(&mut self, sheet: &str) -> Option<(u32, u32)> {
        if let Some((_, corner)) = self.corners.iter().find(|(name, _)| name == sheet) {
            return *corner;
        }
        let mut corner: Option<(u32, u32)> = None;
        let ended = self.cells(sheet, 0, &mut |cell| {
            let (row, column) = corner.unwrap_or_default();
            corner = Some((row.max(cell.row), column.max(u32::try_from(cell.column).unwrap_or_default())));
            true
        });
        let corner = corner.filter(|_| matches!(ended, Ok(Ended::Complete)));
        self.corners.push((sheet.to_owned(), corner));
        corner
    }

    /// The merged cells of a sheet.
    pub(crate) fn merged(&mut self, sheet: &str) -> Option<Vec<Region>> {
        let mut regions = Vec::new();
        self.walk(sheet, 0, &mut |_| true, Some(&mut regions)).ok()?;
        Some(regions)
    }

    /// Calls `each` for the cells of a sheet from the row `first` that are not empty, until it returns false.
    pub(crate) fn cells(
        &mut self,
        sheet: &str,
        first: u32,
        each: &mut dyn FnMut(PositionedCell) -> bool,
    ) -> Result<Ended> {
        self.walk(sheet, first, each, None)
    }

    fn walk(
        &mut self,
        sheet: &str,
        first: u32,
        each: &mut dyn FnMut(PositionedCell) -> bool,
        regions: Option<&mut Vec<Region>>,
    ) -> Result<Ended> {
        let broken =
            |why: &dyn std::fmt::Display| Error::failed(format_args!("\"{}\" is a damaged workbook: {why}", self.name));
        let content = self.archive.by_name(CONTENT).map_err(|error| broken(&error))?;
        walk(content, sheet, first, each, regions).map_err(|error| broken(&error))
    }
}

/// Calls `each` for the cells of a sheet of `content` from the row `first` that are not empty, until it returns false.
fn walk(
    content: impl Read,
    sheet: &str,
    first: u32,
    each: &mut dyn FnMut(PositionedCell) -> bool,
    mut regions: Option<&mut Vec<Region>>,
) -> io::Result<Ended> {
    let mut tags = Tags::new(content);
    // Find the table.
    loop {
        let Some(tag) = tags.next()? else { return Ok(Ended::Complete) };
        if tag.starts("table") && tag.attribute("table:name").as_deref() == Some(sheet) {
            if tag.is_empty {
                return Ok(Ended::Complete);
            }
            break;
        }
        tags.tidy();
    }
    let (mut row, mut column, mut row_repeated) = (0_u32, 0_usize, 1_u32);
    let mut cells: Vec<(usize, Value, Option<String>)> = Vec::new();
    let mut cell: Option<PartialCell> = None;
    let (mut foreign, mut depth) = (0_usize, 0_usize);
    let (mut clock, mut count) = (Clock::new(), 0_u64);
    while let Some(tag) = tags.next()? {
        if foreign > 0 || FOREIGN.contains(&tag.name) {
            foreign = match (tag.is_end, tag.is_empty) {
                (true, _) => foreign.saturating_sub(1),
                (false, true) => foreign,
                (false, false) => foreign + 1,
            };
            tags.tidy();
            continue;
        }
        if let Some(cell) = &mut cell {
            cell.content(&tag);
        }
        match (tag.is_end, tag.name) {
            // A table in a cell is left out.
            (false, b"table") if !tag.is_empty => depth += 1,
            (true, b"table") if depth == 0 => return Ok(Ended::Complete),
            (true, b"table") => depth -= 1,
            _ if depth > 0 => {}
            (false, b"table-row") => {
                column = 0;
                row_repeated = number(&tag, "table:number-rows-repeated").unwrap_or(1);
                if tag.is_empty {
                    row = row.saturating_add(row_repeated);
                }
            }
            (false, b"table-cell" | b"covered-table-cell") => {
                let begun = PartialCell::begin(&tag);
                if let Some(regions) = regions.as_deref_mut() {
                    let spanned = |name| number(&tag, name).unwrap_or(1).max(1);
                    let (rows, columns) =
                        (spanned("table:number-rows-spanned"), spanned("table:number-columns-spanned"));
                    let at = u32::try_from(column).unwrap_or_default();
                    if rows > 1 || columns > 1 {
                        regions.push(((row, at), (row.saturating_add(rows - 1), at.saturating_add(columns - 1))));
                    }
                }
                match tag.is_empty {
                    true => column = begun.finish(column, &mut cells),
                    false => cell = Some(begun),
                }
            }
            (true, b"table-cell" | b"covered-table-cell") => {
                column = cell.take().map_or(column, |cell| cell.finish(column, &mut cells));
            }
            (true, b"table-row") => {
                let repeated = if cells.is_empty() { 1 } else { row_repeated.min(MAX_REPEATED) };
                for at in row..row.saturating_add(repeated) {
                    if at < first {
                        continue;
                    }
                    for (column, value, formula) in &cells {
                        let (value, formula) = (value.clone(), formula.clone());
                        if !each(PositionedCell { row: at, column: *column, value, formula }) {
                            return Ok(Ended::Enough);
                        }
                    }
                }
                count += cells.len() as u64 + 1;
                cells.clear();
                row = row.saturating_add(row_repeated);
                if count > MAX_CELLS || clock.is_over() {
                    return Ok(Ended::Spent);
                }
            }
            _ => {}
        }
        tags.tidy();
    }
    Err(io::Error::other("it ends within a sheet"))
}

/// Reads the cells of the sheet "S". For fuzzing.
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut count = 0;
    let _ = walk(
        bytes,
        "S",
        0,
        &mut |_| {
            count += 1;
            count < 100_000
        },
        Some(&mut Vec::new()),
    );
}

fn number(tag: &Tag<'_>, name: &str) -> Option<u32> {
    std::str::from_utf8(tag.raw(name)?).ok()?.parse().ok()
}

impl PartialCell {
    fn begin(tag: &Tag<'_>) -> Self {
        let kind = tag.attribute("office:value-type").or_else(|| tag.attribute("table:value-type")).unwrap_or_default();
        let value = match kind.as_str() {
            "boolean" => tag.attribute("office:boolean-value"),
            "date" => tag.attribute("office:date-value"),
            "time" => tag.attribute("office:time-value"),
            "string" => tag.attribute("office:string-value"),
            _ => tag.attribute("office:value"),
        };
        PartialCell {
            kind,
            value,
            text: String::new(),
            paragraphs: 0,
            is_inside: false,
            // Formulas have a prefix: `of:=[.A1]`.
            formula: tag
                .attribute("table:formula")
                .map(|text| text.trim_start_matches("of:").trim_start_matches('=').to_owned()),
            is_error: tag.raw("calcext:value-type") == Some(b"error"),
            repeated: number(tag, "table:number-columns-repeated").unwrap_or(1) as usize,
        }
    }

    /// Takes the text before a tag in the cell, and the tag if it stands for a character.
    fn content(&mut self, tag: &Tag<'_>) {
        if self.is_inside {
            self.text.push_str(&tag.text());
        }
        match (tag.is_end, tag.name) {
            (true, b"p" | b"h") => self.is_inside = false,
            (false, b"p" | b"h") => {
                if self.paragraphs > 0 {
                    self.text.push('\n');
                }
                self.paragraphs += 1;
                self.is_inside = !tag.is_empty;
            }
            (false, b"s") => {
                let count = number(tag, "text:c").unwrap_or(1).min(10_000) as usize;
                self.text.push_str(&" ".repeat(count));
            }
            (false, b"tab") => self.text.push('\t'),
            (false, b"line-break") => self.text.push('\n'),
            _ => {}
        }
    }

    /// Adds the cell to those of its row. Gives the column after it.
    fn finish(self, column: usize, cells: &mut Vec<(usize, Value, Option<String>)>) -> usize {
        let after = column.saturating_add(self.repeated.max(1));
        let value = self.value();
        if value != Value::Empty || self.formula.is_some() {
            for at in column..after.min(column::MAX_COLUMNS) {
                cells.push((at, value.clone(), self.formula.clone()));
            }
        }
        after
    }

    fn value(&self) -> Value {
        // Programs store an error as an empty text or as 0, and show it in the text.
        let is_shown = self.text.starts_with("Err:")
            || ["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"].contains(&self.text.as_str());
        if self.is_error || (is_shown && self.formula.is_some()) {
            let text = if self.text.is_empty() { "#ERROR!" } else { &self.text };
            return Value::Error(text.to_owned());
        }
        let given = self.value.as_deref();
        match (self.kind.as_str(), given) {
            ("float" | "currency" | "percentage", Some(number)) => match number.trim().parse::<f64>() {
                Ok(number) => Value::of_float(number),
                Err(_) => Value::Text(number.to_owned()),
            },
            ("boolean", Some(truth)) => Value::Boolean(truth == "true"),
            ("date", Some(date)) => Value::Moment(date.strip_suffix("T00:00:00").unwrap_or(date).to_owned()),
            ("time", Some(time)) => Value::Moment(clock(time).unwrap_or_else(|| time.to_owned())),
            (_, text) => match text.unwrap_or(&self.text) {
                "" => Value::Empty,
                text => Value::Text(text.to_owned()),
            },
        }
    }
}

/// `PT06H15M00S` as `06:15:00`, and `PT36H00M00S` as `PT36H0M0S`. `None` for another form.
fn clock(time: &str) -> Option<String> {
    let (hours, rest) = time.strip_prefix("PT")?.split_once('H')?;
    let (minutes, rest) = rest.split_once('M')?;
    let seconds = rest.strip_suffix('S')?;
    let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
    let number = |text: &str| text.parse::<u64>().ok();
    let (hours, minutes, seconds) = (number(hours)?, number(minutes)?, number(seconds)?);
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
    Some(match hours {
        0..24 => format!("{hours:02}:{minutes:02}:{seconds:02}{fraction}"),
        _ => format!("PT{hours}H{minutes}M{seconds}{fraction}S"),
    })
}
