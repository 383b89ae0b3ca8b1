//! Workbooks. Sheets of XLSX and XLSB are streams, and only the needed part is unpacked. OpenDocument is a stream of all
//! sheets. The old formats are read as a whole.

use std::io::{BufReader, Read as _};

use belljar_guest::{Error, Result};
use belljar_tree::File;
use calamine::ExcelDateTimeType::{DateTime, TimeDelta};
use calamine::{Data, DataRef, ExcelDateTime, Range as Cells, Reader as _, SheetType, SheetVisible, Xls, Xlsb, Xlsx};

use crate::cell::Value;
use crate::source::Format;
use crate::source::biff::{self, OldXls};
use crate::source::feed::Clock;
use crate::source::ods::Ods;
use crate::source::package::{Package, Sheet};
use crate::source::serial::{self, Form};
use crate::source::xlsx::Streamed;

/// The largest file of a format that is read as a whole, in bytes.
const LARGEST_WHOLE: u64 = 8 * 1024 * 1024;

/// The largest sheets that are scanned to the end for merged cells, in bytes.
const SMALL: u64 = 4 * 1024 * 1024;

/// The largest shared texts, in bytes, with which the library reads a workbook. It keeps all of them in memory.
const LARGEST_TEXTS: u64 = 6 * 1024 * 1024;

/// The largest sheets, in bytes, that the library reads. It needs ten times as long to skip rows.
const LARGEST_SHEETS: u64 = 24 * 1024 * 1024;

/// The most cells that one read scans. A cell takes about a thousand units of fuel, and a call has five billion.
pub(crate) const MAX_CELLS: u64 = 2_000_000;

/// A workbook.
pub(crate) struct Book {
    inner: Inner,
    pub(crate) sheets: Vec<Sheet>,
    /// Remarks for the reader, such as sheets that are left out.
    pub(crate) notes: Vec<String>,
    name: String,
    is_small: bool,
}

enum Inner {
    Xlsx(Box<Xlsx<BufReader<File>>>),
    Streamed(Box<Streamed>),
    Xlsb(Box<Xlsb<BufReader<File>>>),
    Xls(Box<Xls<BufReader<File>>>),
    Old(OldXls),
    Ods(Box<Ods>),
}

/// The reason why a scan of cells ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The sheet has no more cells.
    Complete,
    /// The caller has enough; the sheet has more cells.
    Enough,
    /// The limit of cells is reached; the sheet has more.
    Spent,
}

/// A cell with its row and column, both counted from 0.
#[derive(Debug)]
pub(crate) struct PositionedCell {
    pub(crate) row: u32,
    pub(crate) column: usize,
    pub(crate) value: Value,
    pub(crate) formula: Option<String>,
}

impl std::fmt::Debug for Book {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Book").field("name", &self.name).field("sheets", &self.sheets).finish_non_exhaustive()
    }
}

impl Book {
    /// Opens a workbook. `open` opens the file and may be called several times.
    pub(crate) fn open(format: Format, open: &dyn Fn() -> Result<File>, name: &str, size: u64) -> Result<Self> {
        let broken = |error: &dyn std::fmt::Display| {
            Error::failed(format_args!("\"{name}\" cannot be read as a workbook: {error}"))
        };
        let mut book = Book {
            inner: Inner::Old(OldXls::default()),
            sheets: Vec::new(),
            notes: Vec::new(),
            name: name.to_owned(),
            is_small: true,
        };
        if matches!(format, Format::Xls | Format::OldXls) {
            if size > LARGEST_WHOLE {
                return Err(Error::failed(format_args!(
                    "\"{name}\" has {size} bytes, and workbooks of this format are read up to {LARGEST_WHOLE}: as XLSX, CSV or \
                     Parquet it can be larger"
                )));
            }
            book.inner = if format == Format::Xls { Self::xls(open, name)? } else { Self::old(open, name)? };
        } else {
            let package = Package::open(open()?, name)?;
            book.is_small = package.sheets_size() <= SMALL;
            let format = package.format(name, format)?;
            book.inner = match format {
                Format::Ods => Inner::Ods(Box::new(Ods::new(package.into_archive(), name))),
                Format::Xlsb => {
                    let file = BufReader::with_capacity(64 * 1024, open()?);
                    Inner::Xlsb(Box::new(Xlsb::new(file).map_err(|error| broken(&error))?))
                }
                _ if package.texts_size() > LARGEST_TEXTS || package.sheets_size() > LARGEST_SHEETS => {
                    Inner::Streamed(Box::new(Streamed::open(open, name)?))
                }
                _ => match Xlsx::new(BufReader::with_capacity(64 * 1024, open()?)) {
                    Ok(xlsx) => Inner::Xlsx(Box::new(xlsx)),
                    Err(calamine::XlsxError::Password) => return Err(protected(name)),
                    // The library refuses a workbook with a sheet that it does not know, such as one of macros.
                    Err(error) => match Streamed::open(open, name) {
                        Ok(streamed) => Inner::Streamed(Box::new(streamed)),
                        Err(_) => return Err(broken(&error)),
                    },
                },
            };
        }
        book.list()?;
        Ok(book)
    }

    fn xls(open: &dyn Fn() -> Result<File>, name: &str) -> Result<Inner> {
        match Xls::new(BufReader::with_capacity(64 * 1024, open()?)) {
            Ok(xls) => Ok(Inner::Xls(Box::new(xls))),
            Err(error) => {
                // A password-protected XLSX file has the same container format as XLS.
                let file = BufReader::new(open()?);
                Err(match Xlsx::new(file) {
                    Err(calamine::XlsxError::Password) => protected(name),
                    _ if matches!(error, calamine::XlsError::Password) => protected(name),
                    _ => Error::failed(format_args!("\"{name}\" cannot be read as a workbook: {error}")),
                })
            }
        }
    }

    fn old(open: &dyn Fn() -> Result<File>, name: &str) -> Result<Inner> {
        let mut bytes = Vec::new();
        open()?.take(LARGEST_WHOLE).read_to_end(&mut bytes)?;
        let book = biff::parse(&bytes);
        book.map(Inner::Old)
            .map_err(|why| Error::failed(format_args!("\"{name}\" cannot be read as a workbook: {why}")))
    }

    /// Lists the sheets, and those that are left out.
    fn list(&mut self) -> Result<()> {
        let metadata = match &mut self.inner {
            Inner::Xlsx(book) => book.sheets_metadata(),
            Inner::Xlsb(book) => book.sheets_metadata(),
            Inner::Xls(book) => book.sheets_metadata(),
            Inner::Streamed(book) => {
                self.sheets = book.sheets();
                self.leave_out(self.inner_left_out());
                return Ok(());
            }
            Inner::Old(book) => {
                self.sheets = book.sheets();
                let left_out = vec![format!("{} of charts or macros", book.left_out); usize::from(book.left_out > 0)];
                self.leave_out(left_out);
                return Ok(());
            }
            Inner::Ods(book) => {
                self.sheets = book.sheets()?;
                return Ok(());
            }
        };
        let (tables, others): (Vec<_>, Vec<_>) =
            metadata.iter().partition(|sheet| matches!(sheet.typ, SheetType::WorkSheet | SheetType::MacroSheet));
        let others = others.iter().map(|sheet| sheet.name.clone()).collect();
        self.sheets = tables
            .into_iter()
            .map(|sheet| Sheet { name: sheet.name.clone(), is_hidden: sheet.visible != SheetVisible::Visible })
            .collect();
        self.leave_out(others);
        Ok(())
    }

    fn inner_left_out(&self) -> Vec<String> {
        match &self.inner {
            Inner::Streamed(book) => book.left_out.clone(),
            _ => Vec::new(),
        }
    }

    fn leave_out(&mut self, names: Vec<String>) {
        if !names.is_empty() {
            self.notes
                .push(format!("sheets without cells, such as charts and macros, are left out: {}", names.join(", ")));
        }
    }

    /// The last row and the last column of a sheet, counted from 0, if they are known.
    pub(crate) fn dimensions(&mut self, sheet: &str) -> Option<(u32, u32)> {
        let declared = |dimensions: calamine::Dimensions| {
            // A sheet without declared dimensions appears as a single cell.
            (dimensions.start != dimensions.end).then_some(dimensions.end)
        };
        match &mut self.inner {
            Inner::Xlsx(book) => declared(book.worksheet_cells_reader(sheet).ok()?.dimensions()),
            Inner::Xlsb(book) => declared(book.worksheet_cells_reader(sheet).ok()?.dimensions()),
            Inner::Streamed(book) => book.corner(sheet),
            Inner::Xls(book) => book.worksheet_range(sheet).ok()?.end(),
            Inner::Ods(book) => book.corner(sheet),
            Inner::Old(book) => {
                let cells = book.cells(sheet);
                let column = cells.iter().map(|cell| cell.column).max()?;
                Some((cells.last()?.row, u32::try_from(column).ok()?))
            }
        }
    }

    /// Calls `each` for the non-empty cells of a sheet from the row `first`, until it returns false.
    pub(crate) fn cells(
        &mut self,
        sheet: &str,
        first: u32,
        each: &mut dyn FnMut(PositionedCell) -> bool,
    ) -> Result<Ended> {
        let name = self.name.clone();
        let broken = |error: &dyn std::fmt::Display| {
            Error::failed(format_args!("the sheet \"{sheet}\" of \"{name}\" cannot be read: {error}"))
        };
        let mut clock = Clock::new();
        match &mut self.inner {
            Inner::Xlsx(book) => {
                let mut reader = book.worksheet_cells_reader(sheet).map_err(|error| broken(&error))?;
                for _ in 0..MAX_CELLS {
                    let Some(cell) = reader.next_cell_with_formula().map_err(|error| broken(&error))? else {
                        return Ok(Ended::Complete);
                    };
                    let (row, column) = cell.pos;
                    if row < first || (cell.value == DataRef::Empty && cell.formula.is_none()) {
                        continue;
                    }
                    let value = value(&cell.value);
                    if !each(PositionedCell { row, column: column as usize, value, formula: cell.formula }) {
                        return Ok(Ended::Enough);
                    }
                    if clock.is_over() {
                        break;
                    }
                }
                Ok(Ended::Spent)
            }
            Inner::Xlsb(book) => {
                let mut reader = book.worksheet_cells_reader(sheet).map_err(|error| broken(&error))?;
                for _ in 0..MAX_CELLS {
                    let Some(cell) = reader.next_cell().map_err(|error| broken(&error))? else {
                        return Ok(Ended::Complete);
                    };
                    let (row, column) = cell.get_position();
                    let value = value(cell.get_value());
                    if row < first || value == Value::Empty {
                        continue;
                    }
                    if !each(PositionedCell { row, column: column as usize, value, formula: None }) {
                        return Ok(Ended::Enough);
                    }
                    if clock.is_over() {
                        break;
                    }
                }
                Ok(Ended::Spent)
            }
            Inner::Streamed(book) => book.cells(sheet, first, each),
            Inner::Xls(book) => {
                let values = book.worksheet_range(sheet).map_err(|error| broken(&error))?;
                Ok(dense(&values, &book.worksheet_formula(sheet).unwrap_or_default(), first, each))
            }
            Inner::Old(book) => {
                let mut cells = book.cells(sheet).into_iter().filter(|cell| cell.row >= first);
                Ok(if cells.all(each) { Ended::Complete } else { Ended::Enough })
            }
            Inner::Ods(book) => book.cells(sheet, first, each),
        }
    }

    /// The merged cells of a sheet, each by its corners. `None` for large sheets and for formats without this information.
    pub(crate) fn merged(&mut self, sheet: &str) -> Option<Vec<Region>> {
        let regions = match &mut self.inner {
            Inner::Xlsx(book) if self.is_small => book.merge_cells_by_sheet_name(sheet).ok()?,
            Inner::Xls(book) => book.merge_cells_by_sheet_name(sheet).ok()?,
            Inner::Ods(book) if self.is_small => return book.merged(sheet),
            _ => return None,
        };
        Some(regions.into_iter().map(|region| (region.start, region.end)).collect())
    }

    /// True if a sheet is small enough to be scanned to its end.
    pub(crate) fn is_small(&self) -> bool {
        self.is_small
    }
}

/// Cells from one corner to the other, each by row and column.
pub(crate) type Region = ((u32, u32), (u32, u32));

fn protected(name: &str) -> Error {
    Error::failed(format_args!("\"{name}\" is protected by a password: save it without a password"))
}

/// The cells of a sheet that was read as a whole.
fn dense(
    values: &Cells<Data>,
    formulas: &Cells<String>,
    first: u32,
    each: &mut dyn FnMut(PositionedCell) -> bool,
) -> Ended {
    let (Some(start), Some(end)) = (values.start(), values.end()) else { return Ended::Complete };
    for row in start.0.max(first)..=end.0 {
        for column in start.1..=end.1 {
            let found = values.get_value((row, column));
            let formula = formulas.get_value((row, column)).filter(|formula| !formula.is_empty());
            let value = found.map_or(Value::Empty, |data| value(&reference(data)));
            if value == Value::Empty && formula.is_none() {
                continue;
            }
            let formula = formula.map(|text| text.trim_start_matches('=').to_owned());
            if !each(PositionedCell { row, column: column as usize, value, formula }) {
                return Ended::Enough;
            }
        }
    }
    Ended::Complete
}

fn reference(data: &Data) -> DataRef<'_> {
    match data {
        Data::Int(number) => DataRef::Int(*number),
        Data::Float(number) => DataRef::Float(*number),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(truth) => DataRef::Bool(*truth),
        Data::DateTime(moment) => DataRef::DateTime(*moment),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}

fn value(data: &DataRef<'_>) -> Value {
    match data {
        DataRef::Int(number) => Value::of_integer(*number),
        DataRef::Float(number) => Value::of_float(*number),
        DataRef::String(text) => text_of(text),
        DataRef::SharedString(text) => text_of(text),
        DataRef::Bool(truth) => Value::Boolean(*truth),
        DataRef::DateTime(moment) => {
            let form = if moment.is_duration() { Form::Duration } else { Form::Moment };
            // The library does not tell the epoch otherwise.
            let kind = if moment.is_duration() { TimeDelta } else { DateTime };
            let is_1904 = ExcelDateTime::new(moment.as_f64(), kind, false) != *moment;
            serial::value(moment.as_f64(), form, is_1904)
        }
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Value::Moment(text.clone()),
        DataRef::Error(error) => Value::Error(error.to_string()),
        DataRef::Empty => Value::Empty,
    }
}

fn text_of(text: &str) -> Value {
    if text.is_empty() { Value::Empty } else { Value::Text(text.to_owned()) }
}
