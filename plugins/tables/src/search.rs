//! Reads the rows that meet conditions, and sorts rows. Works on every source: its rows are scanned from the beginning.

use belljar_guest::{Error, Result};

use crate::filter::Filter;
use crate::query::Query;
use crate::render::grouped;
use crate::table::{MAX_CELLS, MAX_TEXT_BYTES, Row, ScanRequest, Source, Start, Total};

/// The most rows that a sorted table has, from its beginning. They are kept in memory.
const MAX_SORTED: u64 = 10_000;

/// The most text of sorted rows, in bytes.
const MAX_SORTED_BYTES: usize = 16 * 1024 * 1024;

/// The text of a cell that conditions see, in bytes.
const LONGEST_SEARCHED: usize = 64 * 1024;

/// The rows of a search, counted among all rows that meet the conditions.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) rows: Vec<Row>,
    /// The number of the first of these rows among the matching ones.
    pub(crate) first: u64,
    /// The number of matching rows.
    pub(crate) total: Total,
    /// The number of the next matching row, and the position at which the search continues.
    pub(crate) next: Option<(u64, Option<String>)>,
    pub(crate) notes: Vec<String>,
}

/// The position at which a search continues: the matching rows before it, and the next row of the table.
struct Resumed {
    matched: u64,
    start: Start,
}

impl Resumed {
    /// Parses the text of [`Resumed::text`]. An unknown text begins the search anew.
    fn of(from: Option<&str>, first: u64) -> Self {
        let anew = || Resumed { matched: 0, start: Start { row: 1, from: None } };
        let parse = |from: &str| {
            let mut parts = from.strip_prefix('m')?.splitn(3, '.');
            let (matched, row) = (parts.next()?.parse::<u64>().ok()?, parts.next()?.parse::<u64>().ok()?);
            let from = parts.next().filter(|hint| !hint.is_empty()).map(str::to_owned);
            (matched < first && row > 0).then_some(Resumed { matched, start: Start { row, from } })
        };
        from.and_then(parse).unwrap_or_else(anew)
    }

    fn text(&self) -> String {
        format!("m{}.{}.{}", self.matched, self.start.row, self.start.from.as_deref().unwrap_or_default())
    }
}

/// Searches a table. `columns` are those of the answer, and `names` those of the table.
pub(crate) fn search(
    source: &mut dyn Source,
    query: &Query,
    names: &[String],
    columns: &[usize],
    longest: usize,
) -> Result<Found> {
    let (first, last) = query.bounds();
    let mut scanned = columns.to_vec();
    let filter = Filter::new(&query.conditions, &query.orders, names, &mut scanned)?;
    let shown = |mut row: Row| {
        row.cells.truncate(columns.len());
        for cell in row.cells.iter_mut().flatten() {
            cell.cut += cell.value.cut(longest);
        }
        row
    };
    if query.orders.is_empty() {
        return unsorted(source, query, &filter, &scanned, shown);
    }
    if last > MAX_SORTED {
        return Err(Error::invalid(format_args!(
            "rows={first}-{last}: a sorted table has its first {MAX_SORTED} rows; where= selects fewer rows, and another sort= \
             gives those from the other end"
        )));
    }
    let wanted = ScanRequest {
        start: Start { row: 1, from: None },
        last: u64::MAX,
        columns: &scanned,
        longest: LONGEST_SEARCHED,
        is_search: true,
    };
    let most = usize::try_from(last).unwrap_or(usize::MAX);
    let (mut rows, mut matched, mut text, mut is_too_much): (Vec<Row>, u64, usize, bool) = (Vec::new(), 0, 0, false);
    let mut is_sorted = false;
    let keep = |rows: &mut Vec<Row>| {
        rows.sort_by(|one, other| filter.order(&one.cells, &other.cells));
        rows.truncate(most);
    };
    let end = source.scan(&wanted, &mut |row| {
        if filter.holds(&row.cells) {
            matched += 1;
            // Most rows of a long table come after those that are kept.
            if is_sorted && rows.get(most - 1).is_some_and(|last| filter.order(&last.cells, &row.cells).is_le()) {
                return true;
            }
            let mut row = row;
            for cell in row.cells.iter_mut().flatten() {
                cell.cut += cell.value.cut(longest);
            }
            text += size(&row);
            rows.push(row);
            if rows.len() >= 2 * most + 1000 {
                keep(&mut rows);
                is_sorted = true;
                text = rows.iter().map(size).sum();
            }
            is_too_much = text > MAX_SORTED_BYTES;
        }
        !is_too_much
    })?;
    if let Some(next) = &end.next {
        let of = match end.total {
            Total::Exactly(total) => format!(" of {}", grouped(total)),
            Total::About(total) => format!(" of about {}", grouped(total)),
            Total::Unknown => String::new(),
        };
        return Err(Error::invalid(format_args!(
            "the table is too large to be sorted in one read, which reaches {} rows{of}; leave out sort=, or sort a part of the \
             table in another program",
            grouped(next.row.saturating_sub(1))
        )));
    }
    keep(&mut rows);
    let rows: Vec<Row> = rows.into_iter().skip(usize::try_from(first - 1).unwrap_or(usize::MAX)).map(shown).collect();
    let rows = fitting(rows, columns.len());
    let shown_last = (first - 1).saturating_add(rows.len() as u64);
    Ok(Found {
        next: (shown_last < matched && !rows.is_empty()).then_some((shown_last + 1, None)),
        first,
        rows,
        total: Total::Exactly(matched),
        notes: end.notes,
    })
}

fn unsorted(
    source: &mut dyn Source,
    query: &Query,
    filter: &Filter,
    scanned: &[usize],
    shown: impl Fn(Row) -> Row,
) -> Result<Found> {
    let (first, last) = query.bounds();
    let resumed = Resumed::of(query.from.as_deref(), first);
    let mut matched = resumed.matched;
    let wanted = ScanRequest {
        start: resumed.start,
        last: u64::MAX,
        columns: scanned,
        longest: LONGEST_SEARCHED,
        is_search: true,
    };
    let (mut rows, mut text): (Vec<Row>, usize) = (Vec::new(), 0);
    let end = source.scan(&wanted, &mut |row| {
        if filter.holds(&row.cells) {
            matched += 1;
            if matched >= first {
                let row = shown(row);
                text += size(&row);
                rows.push(row);
            }
        }
        matched < last && rows.len() * scanned.len().max(1) < MAX_CELLS && text < MAX_TEXT_BYTES
    })?;
    let mut notes = end.notes;
    let next = end.next.map(|start| {
        if matched < last && rows.len() * scanned.len().max(1) < MAX_CELLS && text < MAX_TEXT_BYTES {
            notes.push(format!(
                "searched up to row {} in this read; the next rows continue from there",
                grouped(start.row.saturating_sub(1))
            ));
        }
        let number = (matched + 1).max(first);
        (number, Some(Resumed { matched, start }.text()))
    });
    let total = if next.is_none() { Total::Exactly(matched) } else { Total::Unknown };
    Ok(Found { rows, first, total, next, notes })
}

fn size(row: &Row) -> usize {
    row.cells.iter().flatten().map(|cell| cell.value.as_text().len() + 16).sum()
}

/// The first rows, up to the limits of one read.
fn fitting(mut rows: Vec<Row>, columns: usize) -> Vec<Row> {
    let mut text = 0;
    let fits = rows.iter().enumerate().position(|(at, row)| {
        text += size(row);
        at > 0 && ((at + 1) * columns > MAX_CELLS || text > MAX_TEXT_BYTES)
    });
    rows.truncate(fits.unwrap_or(rows.len()));
    rows
}
