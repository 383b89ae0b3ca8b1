//! The interface of every file format: a [`Source`] gives rows in order, and [`read`] collects a piece of them.

use std::collections::BTreeMap;

use belljar_guest::Result;

use crate::cell::Cell;

/// A row of data, below the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The row number, counted from 1; in a range of a sheet, the row number of the sheet.
    pub(crate) number: u64,
    /// The requested cells in the order of the requested columns; `None` where the row is too short.
    pub(crate) cells: Vec<Option<Cell>>,
    /// The number of cells in the row.
    pub(crate) width: usize,
}

/// The first row of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// The first row, counted from 1.
    pub(crate) row: u64,
    /// A hint for its position in the file, from an earlier read.
    pub(crate) from: Option<String>,
}

/// The number of rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Exactly(u64),
    About(u64),
    Unknown,
}

/// The end of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) total: Total,
    /// The next row, if there is one.
    pub(crate) next: Option<Start>,
    /// Remarks for the reader.
    pub(crate) notes: Vec<String>,
}

/// The header of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// The names in the header; empty for a table without a header.
    pub(crate) names: Vec<String>,
    /// The number of columns in the first rows.
    pub(crate) width: usize,
}

/// The rows and columns to scan.
#[derive(Debug)]
pub(crate) struct ScanRequest<'a> {
    pub(crate) start: Start,
    /// The last row of interest.
    pub(crate) last: u64,
    pub(crate) columns: &'a [usize],
    /// The length at which text is cut, in bytes.
    pub(crate) longest: usize,
    /// True if rows are only searched, so that the rows after the last one need not be counted.
    pub(crate) is_search: bool,
}

/// Maps columns to their positions in a [`Row`]. Optimised for columns that are not wanted: they are the most common case.
pub(crate) struct ColumnPositions {
    count: usize,
    /// Sorted by column. A column may have several positions, because it may be wanted more than once.
    by_column: Vec<(usize, Vec<usize>)>,
    end: usize,
    /// True if all columns before `end` are wanted.
    are_all: bool,
}

impl ColumnPositions {
    pub(crate) fn of(columns: &[usize]) -> Self {
        let mut by_column: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, column) in columns.iter().enumerate() {
            by_column.entry(*column).or_default().push(place);
        }
        let end = by_column.last_key_value().map_or(0, |(column, _)| column + 1);
        ColumnPositions { count: columns.len(), by_column: by_column.into_iter().collect(), end, are_all: false }
    }

    /// All of the first `count` columns; positions do not matter.
    pub(crate) fn first(count: usize) -> Self {
        ColumnPositions { count, by_column: Vec::new(), end: count, are_all: true }
    }

    /// The number of cells in a row.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The first column after which none is wanted.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The positions of a column's cell in the row.
    pub(crate) fn at(&self, column: usize) -> &[usize] {
        if column >= self.end {
            return &[];
        }
        if self.are_all {
            return &[0];
        }
        let found = self.by_column.binary_search_by_key(&column, |(column, _)| *column);
        found.ok().and_then(|at| self.by_column.get(at)).map_or(&[], |(_, places)| places.as_slice())
    }
}

/// A table in a file.
pub(crate) trait Source {
    /// Reads the header.
    fn header(&mut self) -> Result<Header>;

    /// Calls `each` for every row, until it returns false or the table ends.
    fn scan(&mut self, wanted: &ScanRequest<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End>;

    /// The first of the last `count` rows. `None` if it cannot be found within one read.
    fn last(&mut self, count: u64) -> Result<Option<Start>>;

    /// True if rows can differ in the number of cells. A sheet does not store empty cells, so it counts as regular.
    fn rows_can_be_ragged(&self) -> bool {
        false
    }

    /// The types declared in the file, by column.
    fn stated_types(&self) -> Option<Vec<String>> {
        None
    }
}

/// A piece of a table.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) rows: Vec<Row>,
    pub(crate) end: End,
}

/// The most cells in one read.
pub(crate) const MAX_CELLS: usize = 20_000;

/// The most text in one read, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 512 * 1024;

/// Reads the wanted rows, up to the limits of one read.
pub(crate) fn read(source: &mut dyn Source, wanted: &ScanRequest<'_>) -> Result<Piece> {
    let (mut rows, mut cells, mut text): (Vec<Row>, usize, usize) = (Vec::new(), 0, 0);
    let mut each = |row: Row| {
        cells += wanted.columns.len();
        let length = |cell: &Cell| cell.value.as_text().len() + cell.formula.as_ref().map_or(0, String::len);
        text += row.cells.iter().flatten().map(length).sum::<usize>();
        let is_last = row.number >= wanted.last;
        rows.push(row);
        !is_last && cells < MAX_CELLS && text < MAX_TEXT_BYTES
    };
    let end = source.scan(wanted, &mut each)?;
    Ok(Piece { rows, end })
}
