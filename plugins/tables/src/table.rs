//! What every kind of file gives: rows one after the other, of which a piece is kept.

use std::collections::BTreeMap;

use belljar_guest::Result;

use crate::cell::Cell;

/// A row of data. The header is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Counted from 1; in a range of a sheet, the number that the sheet shows.
    pub(crate) number: u64,
    /// The cells that were asked for, by the place of their columns: `None` where the row is too short.
    pub(crate) cells: Vec<Option<Cell>>,
    /// How many cells it has.
    pub(crate) width: usize,
}

/// Where to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// The first row, counted from 1.
    pub(crate) row: u64,
    /// Where in the file that is, as an earlier reading told.
    pub(crate) from: Option<String>,
}

/// How many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Exactly(u64),
    About(u64),
    Unknown,
}

/// How a scan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) total: Total,
    /// The row to go on with; none when there is no more.
    pub(crate) next: Option<Start>,
    /// What is to be told.
    pub(crate) notes: Vec<String>,
}

/// The header of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// What the header says; empty when there is none.
    pub(crate) names: Vec<String>,
    /// How many columns the beginning of the table has.
    pub(crate) width: usize,
}

/// What to scan for.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) start: Start,
    /// The last row of interest.
    pub(crate) last: u64,
    pub(crate) columns: &'a [usize],
    /// After how many bytes a text is cut.
    pub(crate) longest: usize,
}

/// Where each wanted column goes in a row. Asked of every cell there is, and of most of them in vain.
pub(crate) struct Places {
    count: usize,
    /// In the order of columns; one may be wanted more than once.
    by_column: Vec<(usize, Vec<usize>)>,
    end: usize,
    /// All are wanted that come before it.
    are_all: bool,
}

impl Places {
    pub(crate) fn of(columns: &[usize]) -> Self {
        let mut by_column: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, column) in columns.iter().enumerate() {
            by_column.entry(*column).or_default().push(place);
        }
        let end = by_column.last_key_value().map_or(0, |(column, _)| column + 1);
        Places { count: columns.len(), by_column: by_column.into_iter().collect(), end, are_all: false }
    }

    /// All of the first `count` columns, wherever they go.
    pub(crate) fn first(count: usize) -> Self {
        Places { count, by_column: Vec::new(), end: count, are_all: true }
    }

    /// How many cells a row has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// No column from here on is wanted.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Where the cell of a column goes.
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
    /// Looks at the beginning.
    fn header(&mut self) -> Result<Header>;

    /// Gives rows, until `each` says that it has enough or there is no more.
    fn scan(&mut self, wanted: &Wanted<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End>;

    /// Whether rows can have more or fewer cells than others. A sheet has none where nothing is.
    fn rows_can_be_ragged(&self) -> bool {
        false
    }

    /// Types that the file itself states, by column.
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

/// How many cells one reading gives, and how much text.
const MOST_CELLS: usize = 20_000;
const MOST_TEXT: usize = 512 * 1024;

/// Reads a piece: all that is wanted, or as much as one reading gives.
pub(crate) fn read(source: &mut dyn Source, wanted: &Wanted<'_>) -> Result<Piece> {
    let (mut rows, mut cells, mut text): (Vec<Row>, usize, usize) = (Vec::new(), 0, 0);
    let mut each = |row: Row| {
        cells += wanted.columns.len();
        let length = |cell: &Cell| cell.value.as_text().len() + cell.formula.as_ref().map_or(0, String::len);
        text += row.cells.iter().flatten().map(length).sum::<usize>();
        let is_last = row.number >= wanted.last;
        rows.push(row);
        !is_last && cells < MOST_CELLS && text < MOST_TEXT
    };
    let end = source.scan(wanted, &mut each)?;
    Ok(Piece { rows, end })
}
