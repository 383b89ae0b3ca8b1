//! Workbooks. Sheets of XLSX are streams, and only the needed part is unpacked. Sheets of the other formats are read as a
//! whole.

use std::io::BufReader;

use belljar_guest::{Error, Result};
use belljar_tree::File;
use calamine::{Data, DataRef, ExcelDateTime, Ods, Range as Cells, Reader as _, SheetType, SheetVisible, Xls, Xlsx};

use crate::cell::Value;
use crate::source::Format;
use crate::source::package::{Package, Sheet};

/// The largest file of a format that is read as a whole, in bytes.
const LARGEST_WHOLE: u64 = 8 * 1024 * 1024;

/// The largest sheets that are scanned to the end for merged cells, in bytes.
const SMALL: u64 = 4 * 1024 * 1024;

/// The most cells that one read scans. A cell takes about a thousand units of fuel, and a call has five billion.
const MAX_CELLS: u64 = 2_000_000;

/// A workbook.
pub(crate) struct Book {
    inner: Inner,
    pub(crate) sheets: Vec<Sheet>,
    name: String,
    is_small: bool,
}

enum Inner {
    Xlsx(Box<Xlsx<BufReader<File>>>),
    Xls(Box<Xls<BufReader<File>>>),
    Ods(Box<Ods<BufReader<File>>>),
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
        let mut is_small = true;
        if format != Format::Xls {
            is_small = Package::open(open()?, name)?.sheets_size() <= SMALL;
        }
        if format != Format::Xlsx && size > LARGEST_WHOLE {
            return Err(Error::failed(format_args!(
                "\"{name}\" has {size} bytes, and workbooks of this format are read up to {LARGEST_WHOLE}: as XLSX, CSV or \
                 Parquet it can be larger"
            )));
        }
        let file = BufReader::with_capacity(64 * 1024, open()?);
        let inner = match format {
            Format::Xlsx => Inner::Xlsx(Box::new(Xlsx::new(file).map_err(|error| match error {
                calamine::XlsxError::Password => protected(name),
                error => broken(&error),
            })?)),
            Format::Xls => match Xls::new(file) {
                Ok(xls) => Inner::Xls(Box::new(xls)),
                Err(error) => {
                    // A password-protected XLSX file has the same container format as XLS.
                    let file = BufReader::new(open()?);
                    return Err(match Xlsx::new(file) {
                        Err(calamine::XlsxError::Password) => protected(name),
                        _ if matches!(error, calamine::XlsError::Password) => protected(name),
                        _ => broken(&error),
                    });
                }
            },
            Format::Ods => Inner::Ods(Box::new(Ods::new(file).map_err(|error| match error {
                calamine::OdsError::Password => protected(name),
                error => broken(&error),
            })?)),
        };
        let metadata = match &inner {
            Inner::Xlsx(book) => book.sheets_metadata(),
            Inner::Xls(book) => book.sheets_metadata(),
            Inner::Ods(book) => book.sheets_metadata(),
        };
        let tables = metadata.iter().filter(|sheet| matches!(sheet.typ, SheetType::WorkSheet | SheetType::MacroSheet));
        let sheets = tables
            .map(|sheet| Sheet { name: sheet.name.clone(), is_hidden: sheet.visible != SheetVisible::Visible })
            .collect();
        Ok(Book { inner, sheets, name: name.to_owned(), is_small })
    }

    /// The last row and the last column that a sheet declares, counted from 0.
    pub(crate) fn dimensions(&mut self, sheet: &str) -> Option<(u32, u32)> {
        match &mut self.inner {
            Inner::Xlsx(book) => {
                let (start, end) = {
                    let dimensions = book.worksheet_cells_reader(sheet).ok()?.dimensions();
                    (dimensions.start, dimensions.end)
                };
                // A sheet without declared dimensions appears as a single cell.
                (start != end).then_some(end)
            }
            Inner::Xls(book) => book.worksheet_range(sheet).ok()?.end(),
            Inner::Ods(book) => book.worksheet_range(sheet).ok()?.end(),
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
                }
                Ok(Ended::Spent)
            }
            Inner::Xls(book) => {
                let values = book.worksheet_range(sheet).map_err(|error| broken(&error))?;
                Ok(dense(&values, &book.worksheet_formula(sheet).unwrap_or_default(), first, each))
            }
            Inner::Ods(book) => {
                let values = book.worksheet_range(sheet).map_err(|error| broken(&error))?;
                Ok(dense(&values, &book.worksheet_formula(sheet).unwrap_or_default(), first, each))
            }
        }
    }

    /// The merged cells of a sheet, each by its corners. `None` for large sheets and for formats without this information.
    pub(crate) fn merged(&mut self, sheet: &str) -> Option<Vec<Region>> {
        let regions = match &mut self.inner {
            Inner::Xlsx(book) if self.is_small => book.merge_cells_by_sheet_name(sheet).ok()?,
            Inner::Xls(book) => book.merge_cells_by_sheet_name(sheet).ok()?,
            Inner::Xlsx(_) | Inner::Ods(_) => return None,
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
            // OpenDocument formulas have a prefix: `of:=[.A1]`.
            let formula = formula.map(|text| text.trim_start_matches("of:").trim_start_matches('=').to_owned());
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
        DataRef::DateTime(moment) => Value::Moment(iso(moment)),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Value::Moment(text.clone()),
        DataRef::Error(error) => Value::Error(error.to_string()),
        DataRef::Empty => Value::Empty,
    }
}

fn text_of(text: &str) -> Value {
    if text.is_empty() { Value::Empty } else { Value::Text(text.to_owned()) }
}

/// A value in ISO 8601: a date if the time is midnight, a time if there is no day, a date with a time, or a duration.
fn iso(moment: &ExcelDateTime) -> String {
    let serial = moment.as_f64();
    if moment.is_duration() {
        let milliseconds = (serial.abs() * 86_400_000.0).round();
        // A larger value is not a sensible duration.
        let all = if milliseconds < 1e15 { milliseconds as u64 } else { return serial.to_string() };
        let (seconds, rest) = (all / 1000, all % 1000);
        let sign = if serial < 0.0 { "-" } else { "" };
        let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
        return format!("{sign}PT{}H{}M{}{fraction}S", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, millisecond) = moment.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    let fraction = if millisecond == 0 { String::new() } else { format!(".{millisecond:03}") };
    let time = format!("{hour:02}:{minute:02}:{second:02}{fraction}");
    if serial.abs() < 1.0 {
        time
    } else if (hour, minute, second, millisecond) == (0, 0, 0, 0) {
        date
    } else {
        format!("{date}T{time}")
    }
}

#[cfg(test)]
mod tests {
    use calamine::ExcelDateTimeType::{DateTime, TimeDelta};

    use super::*;

    #[test]
    fn dates_and_times_are_iso() {
        for (serial, kind, text) in [
            (45_943.0, DateTime, "2025-10-13"),
            (45_943.5, DateTime, "2025-10-13T12:00:00"),
            (0.25, DateTime, "06:00:00"),
            (45_943.541, DateTime, "2025-10-13T12:59:02.400"),
            (1.5, TimeDelta, "PT36H0M0S"),
            (-0.5, TimeDelta, "-PT12H0M0S"),
        ] {
            assert_eq!(iso(&ExcelDateTime::new(serial, kind, false)), text);
        }
    }
}
