//! A sheet of a workbook as a table: rows below a header, or the cells of a rectangle.

use std::collections::VecDeque;

use belljar_guest::{Error, Result};

use crate::cell::Cell;
use crate::column;
use crate::infer;
use crate::query::{Query, Range};
use crate::source::book::{Book, Ended, PositionedCell};
use crate::table::{ColumnPositions, End, Header, Row, ScanRequest, Source, Start, Total};

/// The number of rows from which a header is detected.
const HEAD: usize = 20;

/// The most merged cells that are listed.
const MERGED: usize = 20;

/// A sheet.
#[derive(Debug)]
pub(crate) struct Sheet<'b> {
    book: &'b mut Book,
    name: &'b str,
    header: Option<bool>,
    /// The rows before the header. `None`: a preamble is detected.
    skip: Option<usize>,
    range: Option<Range>,
    known: Option<Beginning>,
}

/// The beginning of the table.
#[derive(Debug, Clone, Default)]
struct Beginning {
    header: Header,
    /// The sheet row at which the data begins.
    first: u32,
    note: Option<String>,
}

impl<'b> Sheet<'b> {
    pub(crate) fn new(book: &'b mut Book, name: &'b str, query: &Query) -> Self {
        Sheet { book, name, header: query.header, skip: query.skip, range: query.range, known: None }
    }

    /// The header, and the sheet row at which the data begins.
    fn beginning(&mut self) -> Result<Beginning> {
        if let Some(known) = &self.known {
            return Ok(known.clone());
        }
        if let Some(range) = self.range {
            let header = Header { names: Vec::new(), width: range.columns.1 + 1 };
            let known = Beginning { header, first: range.rows.0, note: None };
            self.known = Some(known.clone());
            return Ok(known);
        }
        let skipped = u32::try_from(self.skip.unwrap_or_default()).unwrap_or(u32::MAX);
        let mut rows: Vec<(u32, Vec<String>)> = Vec::new();
        let mut width = 0;
        self.book.cells(self.name, skipped, &mut |cell: PositionedCell| {
            if rows.last().is_none_or(|(row, _)| *row != cell.row) {
                if rows.len() == HEAD {
                    return false;
                }
                rows.push((cell.row, Vec::new()));
            }
            if let Some((_, texts)) = rows.last_mut().filter(|_| cell.column < column::MAX_COLUMNS) {
                texts.resize(texts.len().max(cell.column + 1), String::new());
                if let Some(slot) = texts.get_mut(cell.column) {
                    *slot = cell.value.as_text().chars().take(200).collect();
                }
                width = width.max(texts.len());
            }
            true
        })?;
        if let Some((_, last)) = self.book.dimensions(self.name) {
            width = width.max(last as usize + 1).min(column::MAX_COLUMNS);
        }
        let (numbers, rows): (Vec<u32>, Vec<Vec<String>>) = rows.into_iter().unzip();
        let is_automatic = self.skip.is_none() && self.header.is_none();
        let before = if is_automatic { infer::preamble(&rows) } else { 0 };
        let (left_out, table) = rows.split_at(before.min(rows.len()));
        let first = numbers.get(before).copied().unwrap_or(skipped);
        let has_header = self.header.unwrap_or_else(|| infer::has_header(table));
        let names = table.first().filter(|_| has_header).cloned();
        let first = if names.is_some() { first + 1 } else { first };
        let header = Header { names: names.unwrap_or_default(), width };
        let known = Beginning { header, first, note: (before > 0).then(|| infer::preamble_note(left_out)) };
        self.known = Some(known.clone());
        Ok(known)
    }

    fn merged(&mut self, rows: (u32, u32)) -> Option<String> {
        let regions = self.book.merged(self.name)?;
        let shown = regions.iter().filter(|(start, end)| start.0 <= rows.1 && end.0 >= rows.0);
        let names: Vec<String> = shown
            .map(|(start, end)| {
                Range { rows: (start.0, end.0), columns: (start.1 as usize, end.1 as usize) }.to_string()
            })
            .collect();
        let more = names.len().saturating_sub(MERGED);
        let listed = names.get(..names.len().min(MERGED))?.join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!listed.is_empty()).then(|| format!("merged cells, whose value is in the first one: {listed}{more}"))
    }
}

/// A row under construction.
struct PartialRow {
    row: u32,
    cells: Vec<Option<Cell>>,
    width: usize,
}

impl Source for Sheet<'_> {
    fn header(&mut self) -> Result<Header> {
        Ok(self.beginning()?.header)
    }

    fn last(&mut self, count: u64) -> Result<Option<Start>> {
        let first = self.beginning()?.first;
        let mut rows: VecDeque<u32> = VecDeque::new();
        let ended = self.book.cells(self.name, first, &mut |cell| {
            if rows.back().is_none_or(|row| *row < cell.row) {
                rows.push_back(cell.row);
                if rows.len() as u64 > count {
                    rows.pop_front();
                }
            }
            true
        })?;
        let row = rows.back().map_or(first, |last| *last).saturating_sub(first);
        let start = u64::from(row).saturating_sub(count.saturating_sub(1)) + 1;
        Ok((ended == Ended::Complete).then_some(Start { row: start, from: None }))
    }

    fn scan(&mut self, wanted: &ScanRequest<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End> {
        let Beginning { first: base, header, note } = self.beginning()?;
        // In a range, rows keep the row numbers of the sheet.
        let offset = if self.range.is_some() { 0 } else { base };
        let row_of =
            |number: u64| u32::try_from(number - 1).ok().and_then(|row| row.checked_add(offset)).unwrap_or(u32::MAX);
        let number_of = |row: u32| u64::from(row.saturating_sub(offset)) + 1;
        let first = row_of(wanted.start.row.max(1));
        // The rows of a small sheet are counted.
        let counts = self.book.is_small() && !wanted.is_search;
        let places = ColumnPositions::of(wanted.columns);
        let (mut begun, mut next, mut last): (Option<PartialRow>, Option<u32>, Option<u32>) = (None, None, None);
        let (mut is_full, mut disorder, mut shown, mut widest) = (false, 0_u64, (first, first), 0);
        let mut finish = |begun: PartialRow| {
            shown.1 = begun.row;
            each(Row { number: number_of(begun.row), cells: begun.cells, width: begun.width })
        };
        let ended = self.book.cells(self.name, first, &mut |cell: PositionedCell| {
            last = last.max(Some(cell.row));
            if is_full {
                return counts;
            }
            match &begun {
                Some(row) if row.row == cell.row => {}
                Some(row) if row.row > cell.row => {
                    disorder += 1;
                    return true;
                }
                _ => {
                    if let Some(row) = begun.take()
                        && !finish(row)
                    {
                        is_full = true;
                    }
                    if is_full || number_of(cell.row) > wanted.last {
                        (is_full, next) = (true, Some(cell.row));
                        return counts;
                    }
                    begun = Some(PartialRow { row: cell.row, cells: vec![None; wanted.columns.len()], width: 0 });
                }
            }
            let Some(row) = &mut begun else { return true };
            widest = widest.max(cell.column + 1);
            row.width = row.width.max(cell.column + 1);
            for place in places.at(cell.column) {
                let Some(slot) = row.cells.get_mut(*place) else { continue };
                let mut value = cell.value.clone();
                let cut = value.cut(wanted.longest);
                *slot = Some(Cell { value, cut, formula: cell.formula.clone() });
            }
            true
        })?;
        // The last row is whole, unless the scan stopped within it.
        let stopped = begun.as_ref().map(|row| row.row).filter(|_| ended == Ended::Spent);
        if let Some(row) = begun.take().filter(|row| stopped != Some(row.row)) {
            finish(row);
        }
        let mut end = End { total: Total::Unknown, next: None, notes: Vec::new() };
        end.notes.extend(note.into_iter().chain(self.book.notes.iter().cloned()));
        end.next = next.or(stopped).map(|row| Start { row: number_of(row), from: None });
        if ended == Ended::Spent && end.next.is_none() {
            let row = wanted.start.row;
            if last.is_none() {
                return Err(Error::failed(format_args!(
                    "row {row} of the sheet \"{}\" is too far from its beginning for one read; give the mount more \
                     \"fuel\" and \"time\", or save the sheet as CSV or Parquet, in which every row is reached at once",
                    self.name
                )));
            }
            end.next = last.map(|row| Start { row: number_of(row), from: None });
        }
        if self.range.is_none() {
            end.total = match (ended, last, self.book.dimensions(self.name)) {
                (Ended::Complete, Some(last), _) => Total::Exactly(number_of(last)),
                (Ended::Complete, None, _) if wanted.start.row <= 1 => Total::Exactly(0),
                (_, _, Some((last, _))) if last >= base => Total::About(number_of(last)),
                _ => Total::Unknown,
            };
            let width = header.width.max(header.names.len());
            if widest > width {
                end.notes.push(format!(
                    "these rows have cells up to column {widest}, and the first rows only up to {width}: columns={}-{widest} \
                     shows those",
                    width + 1
                ));
            }
        }
        if ended == Ended::Spent && next.is_none() {
            end.notes.push("stopped at the limit of one read: the sheet has more cells".to_owned());
        }
        if disorder > 0 {
            end.notes.push(format!("{disorder} cells are left out: in the file, they come after later rows"));
        }
        end.notes.extend(self.merged(shown));
        Ok(end)
    }
}
