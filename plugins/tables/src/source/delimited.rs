//! Delimiter-separated text as a stream. A cell of any length, or a quote that is never closed, takes no more memory than
//! its shown part.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use belljar_guest::Result;
use csv_core::{ReadFieldResult, ReadRecordResult};
use memchr::memchr;

use crate::cell::{Cell, Value};
use crate::column;
use crate::dialect::{Dialect, HEAD};
use crate::infer;
use crate::query::Query;
use crate::source::feed::{Budget, Feed, TextFile};
use crate::source::packed::Packing;
use crate::table::{ColumnPositions, End, Header, Row, ScanRequest, Source, Start, Total};

/// The longest row, in bytes. A longer row most likely has a quote that is never closed.
const MAX_ROW_BYTES: u64 = 16 * 1024 * 1024;

/// How many bytes after the requested rows are scanned to count rows.
const MAX_COUNTED_BYTES: u64 = 16 * 1024 * 1024;

/// The bytes of a cell that are parsed at once.
const SCRATCH: usize = 8 * 1024;

/// The longest name of a column, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The number of bytes before a position that are hashed to recognise it.
const MARK_BYTES: u64 = 64;

/// A text file that holds a table.
#[derive(Debug)]
pub(crate) struct Delimited<'t> {
    file: TextFile<'t>,
    pub(crate) dialect: Dialect,
    header: Option<bool>,
    /// True if a preamble is looked for.
    finds_preamble: bool,
    known: Option<Beginning>,
}

/// The beginning of the table.
#[derive(Debug, Clone)]
struct Beginning {
    header: Header,
    /// The first row of data.
    first: Position,
    /// The rows between the first position and the first row of data, for text without positions.
    discarded: usize,
    note: Option<String>,
}

/// The position of a row in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    row: u64,
    offset: u64,
}

/// A parsed row.
#[derive(Debug, Default)]
struct Record {
    /// The wanted cells in file order, each with the number of bytes cut.
    cells: Vec<(usize, Vec<u8>, u64)>,
    width: usize,
    /// True if the file ended within the last cell.
    is_unclosed: bool,
}

/// The result of parsing a row.
enum Step {
    Record(Record),
    /// The row is longer than [`MAX_ROW_BYTES`].
    Endless,
    /// The budget is used up.
    Spent,
    End,
}

impl<'t> Delimited<'t> {
    pub(crate) fn new(file: TextFile<'t>, query: &Query) -> Result<Self> {
        let dialect = Dialect::of(&file.head(HEAD)?, Packing::stripped(file.path).unwrap_or(file.path), query)?;
        let finds_preamble = query.skip.is_none() && query.header.is_none();
        Ok(Delimited { file, dialect, header: query.header, finds_preamble, known: None })
    }

    fn parse(&self, from: u64) -> Result<Parser> {
        Ok(Parser {
            feed: self.file.feed(&self.dialect, from)?,
            parser: self.dialect.parser(),
            budget: Budget::new(),
            quotes: self.dialect.quotes,
            scratch: vec![0; SCRATCH],
            ends: vec![0; 256],
        })
    }

    /// The header, and the position of the first row of data.
    fn beginning(&mut self) -> Result<Beginning> {
        if let Some(known) = &self.known {
            return Ok(known.clone());
        }
        let mut parser = self.parse(self.dialect.start)?;
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut after = vec![self.dialect.start];
        let mut read = 0;
        // The detection of the header compares the first rows, and stops at a huge one.
        while rows.len() < 20 && read < HEAD as u64 {
            let Step::Record(record) = parser.record(&ColumnPositions::first(column::MAX_COLUMNS), MAX_NAME_BYTES)?
            else {
                break;
            };
            read = parser.feed.offset().saturating_sub(self.dialect.start);
            after.push(parser.feed.offset());
            let text = |(_, bytes, cut): &(usize, Vec<u8>, u64)| self.dialect.decode(bytes, *cut > 0);
            rows.push(record.cells.iter().map(text).collect());
        }
        let before = if self.finds_preamble { infer::preamble(&rows) } else { 0 };
        let (left_out, table) = rows.split_at(before.min(rows.len()));
        let width = table.iter().map(Vec::len).max().unwrap_or_default();
        let has_header = self.header.unwrap_or_else(|| infer::has_header(table));
        let discarded = before + usize::from(has_header && !table.is_empty());
        let offset = after.get(discarded).copied().unwrap_or(self.dialect.start);
        // Without positions, the rows before the data are read and left out.
        let (offset, discarded) =
            if self.dialect.has_positions() { (offset, 0) } else { (self.dialect.start, discarded) };
        let known = Beginning {
            header: Header { names: table.first().filter(|_| has_header).cloned().unwrap_or_default(), width },
            first: Position { row: 1, offset },
            discarded,
            note: (before > 0).then(|| infer::preamble_note(left_out)),
        };
        self.known = Some(known.clone());
        Ok(known)
    }

    /// A parser at the first row of data.
    fn at_first(&mut self) -> Result<(Parser, Position)> {
        let Beginning { first, discarded, .. } = self.beginning()?;
        let mut parser = self.parse(first.offset)?;
        for _ in 0..discarded {
            parser.skip()?;
        }
        Ok((parser, first))
    }

    /// The position at which to start: the hint of an earlier read if it is still valid, or else the first row.
    fn position(&mut self, start: &Start) -> Result<Position> {
        let first = self.beginning()?.first;
        let hint = start.from.as_deref().and_then(|from| {
            let (row, rest) = from.split_once('-')?;
            let (offset, mark) = rest.split_once('-')?;
            Some((Position { row: row.parse().ok()?, offset: offset.parse().ok()? }, mark))
        });
        Ok(match hint {
            Some((position, mark))
                if (2..=start.row).contains(&position.row)
                    && self.file.text_size().is_none_or(|size| position.offset <= size)
                    && self.mark(position)? == mark =>
            {
                position
            }
            _ => first,
        })
    }

    /// A hash of the bytes before a position. It stays the same when rows are appended to the file.
    fn mark(&self, position: Position) -> Result<String> {
        let bytes = self.file.mark(position.offset, MARK_BYTES)?;
        let mut hasher = DefaultHasher::new();
        let dialect = self.dialect;
        let first = self.known.as_ref().map(|known| known.first.offset);
        (position.row, position.offset, dialect.delimiter, dialect.quotes, first, bytes).hash(&mut hasher);
        Ok(format!("{:016x}", hasher.finish()))
    }

    fn start_at(&self, position: Position) -> Result<Start> {
        let from = match self.dialect.has_positions() {
            false => None,
            true => Some(format!("{}-{}-{}", position.row, position.offset, self.mark(position)?)),
        };
        Ok(Start { row: position.row, from })
    }

    fn endless(&self, row: u64, offset: u64) -> String {
        format!(
            "row {row}, which begins at byte {offset}, has no end within {} MiB: a quote in it is probably never closed. \
             With quote=none, quotes are characters like any other",
            MAX_ROW_BYTES / (1024 * 1024)
        )
    }
}

impl Source for Delimited<'_> {
    fn header(&mut self) -> Result<Header> {
        Ok(self.beginning()?.header)
    }

    fn last(&mut self, count: u64) -> Result<Option<Start>> {
        let (mut parser, first) = self.at_first()?;
        let mut here = first;
        // Positions of some rows, so that the last of them is not after the first wanted row.
        let mut positions: VecDeque<Position> = VecDeque::from([first]);
        loop {
            match parser.skip_some(&mut here, u64::MAX)? {
                Step::Record(_) => {}
                Step::End => break,
                Step::Endless | Step::Spent => return Ok(None),
            }
            positions.push_back(here);
            while positions.get(1).is_some_and(|second| second.row + count <= here.row) {
                positions.pop_front();
            }
        }
        let row = here.row.saturating_sub(count).max(1);
        let near = positions.iter().rev().find(|position| position.row <= row).copied().unwrap_or(first);
        Ok(Some(Start { row, ..self.start_at(near)? }))
    }

    fn rows_can_be_ragged(&self) -> bool {
        true
    }

    fn scan(&mut self, wanted: &ScanRequest<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End> {
        let began = self.position(&wanted.start)?;
        let beginning = self.beginning()?;
        let mut parser = if began == beginning.first { self.at_first()?.0 } else { self.parse(began.offset)? };
        let mut here = began;
        let mut end = End { total: Total::Unknown, next: None, notes: Vec::new() };
        end.notes.extend(beginning.note.into_iter().chain(self.dialect.note()));
        // Skip the rows before the first wanted one.
        while here.row < wanted.start.row {
            match parser.skip_some(&mut here, wanted.start.row)? {
                Step::Record(_) => {}
                Step::Endless => {
                    end.notes.push(self.endless(here.row, here.offset));
                    return Ok(end);
                }
                Step::Spent => {
                    end.notes.push(format!(
                        "stopped at row {} on the way to row {}: this is the limit of one read, the next rows continue from there",
                        here.row, wanted.start.row
                    ));
                    end.total = self.estimate(here);
                    end.next = Some(Start { row: wanted.start.row, ..self.start_at(here)? });
                    return Ok(end);
                }
                Step::End => {
                    end.total = Total::Exactly(here.row.saturating_sub(1));
                    return Ok(end);
                }
            }
        }
        let places = ColumnPositions::of(wanted.columns);
        loop {
            match parser.record(&places, wanted.longest)? {
                Step::Record(record) => {
                    if record.is_unclosed {
                        end.notes.push(format!(
                            "the last cell of row {} extends to the end of the file: a quote in it is probably never closed. \
                             With quote=none, quotes are characters like any other",
                            here.row
                        ));
                    }
                    let row = self.row(here.row, record, &places);
                    here = Position { row: here.row + 1, offset: parser.feed.offset() };
                    if !each(row) {
                        break;
                    }
                }
                Step::Endless => {
                    end.notes.push(self.endless(here.row, here.offset));
                    return Ok(end);
                }
                Step::Spent => break,
                Step::End => {
                    end.total = Total::Exactly(here.row.saturating_sub(1));
                    return Ok(end);
                }
            }
        }
        if wanted.is_search {
            if !matches!(parser.skip()?, Step::End) {
                end.next = Some(self.start_at(here)?);
            }
            return Ok(end);
        }
        self.count(&mut parser, here, &mut end)?;
        Ok(end)
    }
}

impl Delimited<'_> {
    fn row(&self, number: u64, record: Record, places: &ColumnPositions) -> Row {
        let mut cells: Vec<Option<Cell>> = vec![None; places.count()];
        for (at, bytes, cut) in record.cells {
            let text = self.dialect.decode(&bytes, cut > 0);
            let value = if cut > 0 { Value::Text(text) } else { Value::of_text(text) };
            let cell = Cell { value, cut, formula: None };
            for place in places.at(at) {
                if let Some(slot) = cells.get_mut(*place) {
                    *slot = Some(cell.clone());
                }
            }
        }
        Row { number, cells, width: record.width }
    }

    /// Counts the remaining rows of a short file, and estimates those of a long one.
    fn count(&mut self, parser: &mut Parser, mut here: Position, end: &mut End) -> Result<()> {
        let next = here;
        let mut total = self.estimate(here);
        // The size of a packed text is known only at its end.
        let limit = match self.file.text_size() {
            Some(size) if size.saturating_sub(here.offset) > MAX_COUNTED_BYTES => 0,
            Some(_) => u64::MAX,
            None => here.offset.saturating_add(MAX_COUNTED_BYTES),
        };
        while here.offset < limit {
            match parser.skip_some(&mut here, u64::MAX)? {
                Step::Record(_) => {}
                Step::End => {
                    total = Total::Exactly(here.row.saturating_sub(1));
                    break;
                }
                Step::Endless | Step::Spent => {
                    total = self.estimate(here);
                    break;
                }
            }
        }
        end.total = total;
        if total != Total::Exactly(next.row.saturating_sub(1)) {
            end.next = Some(self.start_at(next)?);
        }
        Ok(())
    }

    /// Estimates the number of rows from the average length of the rows read so far.
    fn estimate(&self, here: Position) -> Total {
        let (rows, bytes) =
            (u128::from(here.row.saturating_sub(1)), u128::from(here.offset.saturating_sub(self.dialect.start)));
        let Some(size) = self.file.text_size().filter(|_| bytes > 0 && self.dialect.has_positions()) else {
            return Total::Unknown;
        };
        let all = u128::from(size.saturating_sub(self.dialect.start)) * rows / bytes;
        u64::try_from(all).map_or(Total::Unknown, |all| Total::About(rounded(all)))
    }
}

/// Rounds an estimate to two significant digits.
fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or_default().saturating_sub(1));
    number / unit * unit
}

/// A file that is being parsed.
struct Parser {
    feed: Feed,
    parser: csv_core::Reader,
    budget: Budget,
    /// True if quotes have their meaning.
    quotes: bool,
    /// A buffer for parsed cells, allocated once for all rows.
    scratch: Vec<u8>,
    ends: Vec<usize>,
}

impl Parser {
    /// Parses the next row. Keeps at most `longest` bytes of each wanted cell; cells after the last wanted one are only
    /// counted.
    fn record(&mut self, places: &ColumnPositions, longest: usize) -> Result<Step> {
        let mut record = Record::default();
        let (mut cell, mut cut, mut length, mut has_lines) = (Vec::new(), 0_u64, 0_u64, false);
        loop {
            let input = self.feed.next()?;
            let at_end = input.is_empty();
            let (result, read, written) = self.parser.read_field(input, &mut self.scratch);
            self.feed.consume(read);
            length += read as u64;
            let part = self.scratch.get(..written).unwrap_or_default();
            has_lines |= part.contains(&b'\n');
            let keep = part.get(..longest.saturating_sub(cell.len()).min(written)).unwrap_or_default();
            let is_wanted = !places.at(record.width).is_empty();
            if is_wanted {
                cell.extend_from_slice(keep);
                cut += (written - keep.len()) as u64;
            }
            match result {
                ReadFieldResult::Field { record_end } => {
                    if is_wanted {
                        record.cells.push((record.width, std::mem::take(&mut cell), std::mem::take(&mut cut)));
                    }
                    record.width += 1;
                    if record_end {
                        // A cell with line ends is quoted, and a closed quoted cell ends with a quote.
                        record.is_unclosed = at_end && has_lines && self.feed.last != Some(b'"');
                        // To keep a cell takes as much as to parse these bytes.
                        let kept = 8 * record.cells.len() as u64;
                        return Ok(if self.budget.take(length + kept) { Step::Record(record) } else { Step::Spent });
                    }
                    has_lines = false;
                    if record.width >= places.end() {
                        return self.rest(record, length);
                    }
                }
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {
                    if length > MAX_ROW_BYTES {
                        return Ok(Step::Endless);
                    }
                }
                ReadFieldResult::End => return Ok(Step::End),
            }
        }
    }

    /// Counts the remaining cells of a row.
    fn rest(&mut self, mut record: Record, mut length: u64) -> Result<Step> {
        loop {
            let input = self.feed.next()?;
            let at_end = input.is_empty();
            let (result, read, written, cells) = self.parser.read_record(input, &mut self.scratch, &mut self.ends);
            self.feed.consume(read);
            length += read as u64;
            record.width += cells;
            match result {
                ReadRecordResult::Record => {
                    let has_lines = self.scratch.get(..written).is_some_and(|part| part.contains(&b'\n'));
                    record.is_unclosed = at_end && has_lines && self.feed.last != Some(b'"');
                    return Ok(if self.budget.take(length) { Step::Record(record) } else { Step::Spent });
                }
                ReadRecordResult::End => return Ok(Step::End),
                _ if length > MAX_ROW_BYTES => return Ok(Step::Endless),
                _ => {}
            }
        }
    }

    /// Skips rows up to the row `until`: all lines of a block that have no quotes, or else one row. Moves the position.
    fn skip_some(&mut self, here: &mut Position, until: u64) -> Result<Step> {
        let block = self.feed.next()?;
        let plain = if self.quotes { memchr(b'"', block).unwrap_or(block.len()) } else { block.len() };
        let (mut used, mut rows) = (0, 0);
        while here.row + rows < until
            && let Some(end) = block.get(used..plain).and_then(|rest| memchr(b'\n', rest))
        {
            let line = block.get(used..used + end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            // In old files, a carriage return alone ends a row.
            if memchr(b'\r', line).is_some() {
                break;
            }
            // Empty lines are no rows.
            rows += u64::from(!line.is_empty());
            used += end + 1;
        }
        if rows == 0 {
            let step = self.skip()?;
            if matches!(step, Step::Record(_)) {
                *here = Position { row: here.row + 1, offset: self.feed.offset() };
            }
            return Ok(step);
        }
        self.feed.consume(used);
        *here = Position { row: here.row + rows, offset: self.feed.offset() };
        // To find the ends of lines takes an eighth of what it takes to parse them.
        Ok(if self.budget.take(used as u64 / 8 + 1) { Step::Record(Record::default()) } else { Step::Spent })
    }

    /// Skips the next row.
    fn skip(&mut self) -> Result<Step> {
        let mut length = 0_u64;
        loop {
            let (result, read, ..) = self.parser.read_record(self.feed.next()?, &mut self.scratch, &mut self.ends);
            self.feed.consume(read);
            length += read as u64;
            match result {
                ReadRecordResult::Record if self.budget.take(length) => {
                    return Ok(Step::Record(Record::default()));
                }
                ReadRecordResult::Record => return Ok(Step::Spent),
                ReadRecordResult::End => return Ok(Step::End),
                _ if length > MAX_ROW_BYTES => return Ok(Step::Endless),
                _ => {}
            }
        }
    }
}
