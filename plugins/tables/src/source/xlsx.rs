//! Reads sheets of XLSX workbooks in constant memory. For workbooks that are too large for the library, or that it refuses
//! because of a sheet that is no table. Texts are looked up in the list of shared texts when a part of a sheet needs them.

use std::collections::BTreeMap;
use std::io::BufReader;

use belljar_guest::{Error, Result};
use belljar_tree::File;
use zip::ZipArchive;

use crate::cell::Value;
use crate::query::Range;
use crate::source::book::{Ended, MAX_CELLS, PositionedCell};
use crate::source::feed::Clock;
use crate::source::package::Sheet;
use crate::source::serial::{self, Form};
use crate::source::shared::{Shared, item, unescaped};
use crate::source::tags::{Tag, Tags};

/// The cells whose texts are looked up together: at first those of one page, then more.
const BLOCKS: [usize; 2] = [4_000, 20_000];

/// The most styles, and the most bytes of the parts that are read as a whole.
const MAX_STYLES: usize = 100_000;

/// A workbook.
pub(crate) struct Streamed {
    archive: ZipArchive<BufReader<File>>,
    /// A second view of the file: a sheet and the shared texts are read at the same time.
    texts: ZipArchive<BufReader<File>>,
    name: String,
    sheets: Vec<(Sheet, String)>,
    /// The sheets that are no tables.
    pub(crate) left_out: Vec<String>,
    styles: Vec<Form>,
    is_1904: bool,
    shared: Option<String>,
    kept: BTreeMap<u32, String>,
}

/// A cell as it is stored.
struct Raw {
    row: u32,
    column: usize,
    value: RawValue,
    formula: Option<String>,
}

enum RawValue {
    Shared(u32),
    Value(Value),
}

impl Raw {
    /// The number of the shared text, for a cell that has one.
    fn shared(&self) -> Option<u32> {
        match self.value {
            RawValue::Shared(at) => Some(at),
            RawValue::Value(_) => None,
        }
    }
}

impl Streamed {
    pub(crate) fn open(open: &dyn Fn() -> Result<File>, name: &str) -> Result<Self> {
        let broken =
            |error: &dyn std::fmt::Display| Error::failed(format_args!("\"{name}\" is a damaged workbook: {error}"));
        let view = || -> Result<ZipArchive<BufReader<File>>> {
            ZipArchive::new(BufReader::with_capacity(64 * 1024, open()?)).map_err(|error| broken(&error))
        };
        let mut book = Streamed {
            archive: view()?,
            texts: view()?,
            name: name.to_owned(),
            sheets: Vec::new(),
            left_out: Vec::new(),
            styles: Vec::new(),
            is_1904: false,
            shared: None,
            kept: BTreeMap::new(),
        };
        let parts: Vec<String> = book.archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
        let find = |end: &str| parts.iter().find(|part| part.to_ascii_lowercase().ends_with(end)).cloned();
        let main = find("xl/workbook.xml").ok_or_else(|| broken(&"it has no list of sheets"))?;
        let targets = book.targets(find("xl/_rels/workbook.xml.rels").as_deref())?;
        book.shared = find("xl/sharedstrings.xml");
        if let Some(styles) = find("xl/styles.xml") {
            book.read_styles(&styles)?;
        }
        let is_part = |wanted: &str| parts.iter().find(|part| part.eq_ignore_ascii_case(wanted)).cloned();
        book.read_sheets(&main, &targets, &is_part)?;
        Ok(book)
    }

    pub(crate) fn sheets(&self) -> Vec<Sheet> {
        self.sheets.iter().map(|(sheet, _)| sheet.clone()).collect()
    }

    /// Calls `each` for every tag of a part.
    fn tags(&mut self, part: &str, mut each: impl FnMut(&Tag<'_>) -> bool) -> Result<()> {
        let name = self.name.clone();
        let broken =
            |error: &dyn std::fmt::Display| Error::failed(format_args!("\"{name}\" is a damaged workbook: {error}"));
        let mut tags = Tags::new(self.archive.by_name(part).map_err(|error| broken(&error))?);
        while let Some(tag) = tags.next().map_err(|error| broken(&error))? {
            if !each(&tag) {
                break;
            }
            tags.tidy();
        }
        Ok(())
    }

    /// The kinds and targets of the relationships of the workbook.
    fn targets(&mut self, part: Option<&str>) -> Result<BTreeMap<String, (String, String)>> {
        let mut targets = BTreeMap::new();
        let Some(part) = part else { return Ok(targets) };
        self.tags(part, |tag| {
            if tag.starts("Relationship")
                && let (Some(id), Some(kind), Some(target)) =
                    (tag.attribute("Id"), tag.attribute("Type"), tag.attribute("Target"))
            {
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                targets.insert(id, (kind, target));
            }
            true
        })?;
        Ok(targets)
    }

    fn read_sheets(
        &mut self,
        part: &str,
        targets: &BTreeMap<String, (String, String)>,
        is_part: &dyn Fn(&str) -> Option<String>,
    ) -> Result<()> {
        let folder = part.get(..part.len() - "workbook.xml".len()).unwrap_or_default().to_owned();
        let (mut sheets, mut left_out, mut is_1904) = (Vec::new(), Vec::new(), false);
        self.tags(part, |tag| {
            if tag.starts("workbookPr")
                && let Some(value) = tag.raw("date1904")
            {
                is_1904 = matches!(value, b"1" | b"true" | b"on");
            }
            if tag.starts("sheet") {
                let name = tag.attribute("name").unwrap_or_default();
                let is_hidden = tag.raw("state").is_some_and(|state| state != b"visible");
                // The prefix of relationships is `r` in all known files, but another one is allowed.
                let id = tag.attribute("r:id").or_else(|| {
                    let text = String::from_utf8_lossy(tag.attributes).into_owned();
                    let (_, rest) = text.split_once(":id=\"")?;
                    rest.split('"').next().map(str::to_owned)
                });
                let target = id.and_then(|id| targets.get(&id));
                let place = target.map(|(_, target)| match target.strip_prefix('/') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("{folder}{target}"),
                });
                match (target.map(|(kind, _)| kind.as_str()), place.and_then(|place| is_part(&place))) {
                    (Some("worksheet"), Some(place)) => sheets.push((Sheet { name, is_hidden }, place)),
                    _ => left_out.push(name),
                }
            }
            true
        })?;
        (self.sheets, self.left_out, self.is_1904) = (sheets, left_out, is_1904);
        Ok(())
    }

    fn read_styles(&mut self, part: &str) -> Result<()> {
        let (mut formats, mut styles, mut is_cells) = (BTreeMap::new(), Vec::new(), false);
        self.tags(part, |tag| {
            let id = || std::str::from_utf8(tag.raw("numFmtId")?).ok()?.parse::<u32>().ok();
            if tag.starts("numFmt")
                && let (Some(id), Some(code)) = (id(), tag.attribute("formatCode"))
            {
                formats.insert(id, serial::form(&code));
            } else if tag.name == b"cellXfs" {
                is_cells = !tag.is_end;
            } else if is_cells && tag.starts("xf") {
                let id = id().unwrap_or_default();
                styles.push(formats.get(&id).copied().unwrap_or_else(|| serial::built_in(id)));
            }
            styles.len() < MAX_STYLES
        })?;
        self.styles = styles;
        Ok(())
    }

    fn part(&self, sheet: &str) -> Result<String> {
        let found = self.sheets.iter().find(|(known, _)| known.name == sheet);
        found.map(|(_, part)| part.clone()).ok_or(Error::NotFound)
    }

    /// The last row and column that a sheet declares, counted from 0.
    pub(crate) fn corner(&mut self, sheet: &str) -> Option<(u32, u32)> {
        let part = self.part(sheet).ok()?;
        let mut declared = None;
        self.tags(&part, |tag| {
            if tag.starts("dimension") {
                declared = tag.attribute("ref");
            }
            declared.is_none() && !tag.starts("sheetData")
        })
        .ok()?;
        let range = Range::parse(&declared?)?;
        let corner = (range.rows.1, u32::try_from(range.columns.1).ok()?);
        // A sheet without known dimensions declares a single cell.
        (range.rows.0 != range.rows.1 || range.columns.0 != range.columns.1).then_some(corner)
    }

    /// Calls `each` for the cells of a sheet from the row `first` that are not empty, until it returns false.
    pub(crate) fn cells(
        &mut self,
        sheet: &str,
        first: u32,
        each: &mut dyn FnMut(PositionedCell) -> bool,
    ) -> Result<Ended> {
        let part = self.part(sheet)?;
        let name = self.name.clone();
        let broken = |error: &dyn std::fmt::Display| {
            Error::failed(format_args!("the sheet \"{sheet}\" of \"{name}\" cannot be read: {error}"))
        };
        let entry = self.archive.by_name(&part).map_err(|error| broken(&error))?;
        let mut rows = Rows::new(Tags::new(entry), &self.styles, self.is_1904);
        let mut shared = Shared { archive: &mut self.texts, part: self.shared.as_deref(), kept: &mut self.kept };
        let (mut blocks, mut clock, mut count) = (BLOCKS.into_iter(), Clock::new(), 0);
        let mut size = BLOCKS[0];
        loop {
            size = blocks.next().unwrap_or(size);
            let mut cells = Vec::new();
            let mut ended = None;
            while cells.len() < size && ended.is_none() {
                match rows.next(first, &mut cells, &mut clock).map_err(|error| broken(&error))? {
                    true if clock.is_over() => ended = Some(Ended::Spent),
                    true => {}
                    false => ended = Some(Ended::Complete),
                }
            }
            shared.find(cells.iter().filter_map(Raw::shared)).map_err(|error| broken(&error))?;
            count += cells.len() as u64;
            for cell in cells {
                let value = match cell.value {
                    RawValue::Value(value) => value,
                    RawValue::Shared(at) => shared.text(at),
                };
                if value == Value::Empty && cell.formula.is_none() {
                    continue;
                }
                if !each(PositionedCell { row: cell.row, column: cell.column, value, formula: cell.formula }) {
                    return Ok(Ended::Enough);
                }
            }
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if count > MAX_CELLS {
                return Ok(Ended::Spent);
            }
        }
    }
}

/// The rows of a sheet.
struct Rows<'s, R> {
    tags: Tags<R>,
    styles: &'s [Form],
    is_1904: bool,
    row: u32,
}

impl<'s, R: std::io::Read> Rows<'s, R> {
    fn new(tags: Tags<R>, styles: &'s [Form], is_1904: bool) -> Self {
        Rows { tags, styles, is_1904, row: 0 }
    }

    /// Reads the next row, and adds its cells. A row before `first` has none. False at the end of the sheet.
    fn next(&mut self, first: u32, cells: &mut Vec<Raw>, clock: &mut Clock) -> std::io::Result<bool> {
        loop {
            let Some(tag) = self.tags.next()? else { return Err(std::io::Error::other("it ends within its rows")) };
            if tag.ends("sheetData") || (tag.starts("sheetData") && tag.is_empty) {
                return Ok(false);
            }
            if !tag.starts("row") {
                self.tags.tidy();
                continue;
            }
            let number = tag.raw("r").and_then(|text| std::str::from_utf8(text).ok()?.parse::<u32>().ok());
            let row = number.map_or(self.row, |number| number.saturating_sub(1));
            let (is_empty, has_prefix) = (tag.is_empty, tag.has_prefix);
            self.row = row.saturating_add(1);
            self.tags.tidy();
            if is_empty {
                return Ok(true);
            }
            if row < first && !has_prefix {
                if number.is_some() {
                    self.tags.skip_blocks(b"<row ", |after| Some(number_of(after)? > first), clock)?;
                }
                if clock.is_over() {
                    return Ok(true);
                }
                return self.tags.skip_past(b"</row>");
            }
            return self.row(row, row >= first, cells);
        }
    }

    fn row(&mut self, row: u32, is_wanted: bool, cells: &mut Vec<Raw>) -> std::io::Result<bool> {
        let mut column = 0;
        let (mut style, mut kind, mut value, mut formula) = (Form::Number, Kind::Number, String::new(), None);
        // Texts of phonetic hints are not the text of a cell.
        let (mut in_text, mut in_hint) = (false, false);
        loop {
            let Some(tag) = self.tags.next()? else { return Err(std::io::Error::other("it ends within a row")) };
            match (tag.is_end, tag.name) {
                (true, b"row") => return Ok(true),
                (false, b"c") => {
                    column = tag.raw("r").and_then(column_of).unwrap_or(column);
                    let at = tag.raw("s").and_then(|text| std::str::from_utf8(text).ok()?.parse::<usize>().ok());
                    style = at.and_then(|at| self.styles.get(at)).copied().unwrap_or_default();
                    kind = Kind::of(tag.raw("t").unwrap_or(b"n"));
                    value.clear();
                    formula = None;
                    if tag.is_empty {
                        column += 1;
                    }
                }
                (true, b"c") => {
                    if is_wanted {
                        let value = kind.value(&value, style, self.is_1904);
                        cells.push(Raw { row, column, value, formula: formula.take() });
                    }
                    column += 1;
                }
                (true, b"v") => value = tag.text(),
                (true, b"f") if is_wanted => formula = Some(tag.text()).filter(|text| !text.is_empty()),
                (is_end, b"rPh") => in_hint = !is_end,
                (false, b"t") => in_text = !tag.is_empty && !in_hint,
                (true, b"t") if in_text => {
                    value.push_str(&tag.text());
                    in_text = false;
                }
                _ => {}
            }
            self.tags.tidy();
        }
    }
}

/// Reads the rows of a sheet, from its first and from a later one. For fuzzing.
pub(crate) fn fuzz(bytes: &[u8]) {
    for first in [0, 3] {
        let mut rows = Rows::new(Tags::new(bytes), &[Form::Number, Form::Moment], false);
        let mut cells = Vec::new();
        while let Ok(true) = rows.next(first, &mut cells, &mut Clock::new()) {
            cells.clear();
        }
    }
    let _ = item(&mut Tags::new(bytes));
}

/// The number of a row from the bytes after the name of its tag, if it is the first attribute.
fn number_of(after: &[u8]) -> Option<u32> {
    let digits = after.strip_prefix(b"r=\"")?;
    let end = digits.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

/// The kind of a cell's value.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    Shared,
    Text,
    Boolean,
    Error,
    Date,
}

impl Kind {
    fn of(text: &[u8]) -> Self {
        match text {
            b"s" => Kind::Shared,
            b"str" | b"inlineStr" => Kind::Text,
            b"b" => Kind::Boolean,
            b"e" => Kind::Error,
            b"d" => Kind::Date,
            _ => Kind::Number,
        }
    }

    fn value(self, text: &str, style: Form, is_1904: bool) -> RawValue {
        RawValue::Value(match self {
            Kind::Shared => {
                return text.trim().parse().map_or(RawValue::Value(Value::Empty), RawValue::Shared);
            }
            _ if text.is_empty() => Value::Empty,
            Kind::Text => Value::Text(unescaped(text)),
            Kind::Boolean => Value::Boolean(matches!(text.trim(), "1" | "true")),
            Kind::Error => Value::Error(text.to_owned()),
            Kind::Date => Value::Moment(text.to_owned()),
            Kind::Number => match text.trim().parse::<f64>() {
                Ok(number) => serial::value(number, style, is_1904),
                Err(_) => Value::Text(text.to_owned()),
            },
        })
    }
}

/// The column of a reference such as `B7`, counted from 0.
fn column_of(reference: &[u8]) -> Option<usize> {
    let letters = reference.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    crate::column::index(std::str::from_utf8(reference.get(..letters)?).ok()?)
}
