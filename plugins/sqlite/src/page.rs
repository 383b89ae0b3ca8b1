//! Pages of rows. A page continues after the key of the last row of the page before (keyset pagination), so the last page of
//! a large table costs as much as the first. Rows without keys are counted instead.
//!
//! A page ends early where a query takes too long or the database is damaged, and says where the next page goes on.

use belljar_guest::{Error, Result};
use belljar_sql::page::{Position, Wanted};
use rusqlite::types::Value;
use rusqlite::{ErrorCode, OptionalExtension as _, params_from_iter};

use crate::filter::{self, Condition, Sort};
use crate::modules;
use crate::rows::{self, PAGE_BYTES, after_key, decode_row, equals_key, is_full, list, select};
use crate::schema::{Keys, Kind, Table, quote};
use crate::snapshot::{Snapshot, error};
use crate::value::{IN_PAGE, Parameter, Row};

mod search;

/// A page of rows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    /// The rows, each with its key.
    pub(crate) rows: Vec<(Option<String>, Row)>,
    /// Where the next page begins.
    pub(crate) next: Option<Position>,
    /// Why the page ended early, or what it leaves out.
    pub(crate) notice: Option<String>,
}

/// How a query ended.
#[derive(Debug)]
enum Stop {
    /// After the last row.
    End,
    /// Before the last row: the page is full.
    Full,
    /// It took too long.
    Interrupted(Error),
    /// The database is damaged there.
    Damaged(Error),
}

/// Rows that a query found, and how it ended.
struct Found {
    rows: Vec<(Option<String>, Row)>,
    /// The position of each row, from which a page can continue.
    positions: Vec<Option<String>>,
    stop: Stop,
}

/// The query of a page.
struct Query<'a> {
    snapshot: &'a Snapshot,
    table: &'a Table,
    base: &'a str,
    /// Filters and search.
    filter: Condition,
    sorts: Vec<Sort>,
    limit: usize,
}

/// One page of a table.
pub(crate) fn read(snapshot: &Snapshot, table: &Table, base: &str, wanted: &Wanted, limit: usize) -> Result<Page> {
    match whole(snapshot, table, base, wanted, limit) {
        // A generated column may use a function of the program that made the database.
        Err(Error::Failed(why)) if why.starts_with("no such function") => {
            let mut stored = table.clone();
            stored.columns.retain(|column| !column.generated);
            if stored.columns.len() == table.columns.len() {
                return Err(Error::Failed(why));
            }
            let mut page = whole(snapshot, &stored, base, wanted, limit)?;
            page.notice = Some(join(page.notice, format!("the generated columns are left out: {why}")));
            Ok(page)
        }
        // SQLite does not even scan a table that is stored in an order it does not know.
        Err(Error::Failed(why)) if why.contains("no query solution") => {
            let collation = table.unknown_collation(&snapshot.connection)?.unwrap_or_default();
            let message = format!("no such collation sequence: {collation}");
            Err(Error::Failed(modules::explain(&message).unwrap_or(why)))
        }
        page => page,
    }
}

fn whole(snapshot: &Snapshot, table: &Table, base: &str, wanted: &Wanted, limit: usize) -> Result<Page> {
    let mut filter = filter::condition(&snapshot.connection, table, &wanted.filters)?;
    if let Some(text) = &wanted.matching {
        filter = filter.and(filter::matching(table, text)?);
    }
    let sorts = wanted.sort.as_deref().map_or_else(|| Ok(Vec::new()), |sort| filter::order(table, sort))?;
    let query = Query { snapshot, table, base, filter, sorts, limit };
    let start = match wanted.after.as_deref() {
        None => Condition::default(),
        Some(after) if query.sorts.is_empty() => after_key(table, after)?,
        Some(after) => query.after_sorted(after)?,
    };
    let found = query.run(&start, limit, wanted.skip).map_err(|error| match (&wanted.matching, error) {
        (Some(text), Error::Failed(why)) if MATCH_ERRORS.iter().any(|known| why.contains(known)) => {
            Error::invalid(format_args!("\"match\" is \"{text}\": {why}; expected words, or \"words in quotes\""))
        }
        (_, error) => error,
    })?;
    query.finish(wanted, found)
}

impl Query<'_> {
    fn page(&self, found: Found, wanted: &Wanted) -> (Page, Stop) {
        // After the last row with a key, rows without a key are counted.
        let with_key = found.positions.iter().rposition(Option::is_some);
        let next = match with_key {
            Some(at) => {
                Position { after: found.positions.get(at).cloned().flatten(), skip: (found.rows.len() - at - 1) as u64 }
            }
            None => Position { after: wanted.after.clone(), skip: wanted.skip + found.rows.len() as u64 },
        };
        let left_out = match self.table.left_out {
            0 => None,
            count => {
                Some(format!("the last {count} columns are left out: ask for them with the tool \"query\" or a view"))
            }
        };
        (Page { rows: found.rows, next: Some(next), notice: left_out }, found.stop)
    }

    fn finish(&self, wanted: &Wanted, found: Found) -> Result<Page> {
        let (mut page, stop) = self.page(found, wanted);
        match stop {
            Stop::Full => {}
            Stop::End => page.next = None,
            Stop::Interrupted(_) if !page.rows.is_empty() => {
                page.notice = Some(join(page.notice, TOOK_LONG.to_owned()));
            }
            Stop::Interrupted(error) => {
                // Only a search of a whole table in the order of its rowids can be divided.
                let is_search = !self.filter.sql.is_empty() && self.sorts.is_empty() && wanted.skip == 0;
                return match self.table.rowid().filter(|_| is_search && self.table.kind == Kind::Table) {
                    Some(rowid) => self.search(rowid, wanted.after.as_deref()),
                    None if !self.sorts.is_empty() => Err(join_error(
                        error,
                        "or leave \"sort\" out; sorting needs an index of the column, or a filter that leaves few rows",
                    )),
                    None => Err(error),
                };
            }
            Stop::Damaged(error) => {
                let from = page.next.as_ref().and_then(|next| next.after.clone());
                let rowid = self.table.rowid().filter(|_| self.sorts.is_empty());
                let readable = rowid.map(|rowid| self.after_damage(rowid, from.as_deref())).transpose()?;
                match readable {
                    Some(next) => {
                        page.notice = Some(join(page.notice, damage(from.as_deref(), &error, next.as_deref())));
                        page.next = next.map(|after| Position { after: Some(after), skip: 0 });
                    }
                    None if page.rows.is_empty() => return Err(error),
                    None => {
                        page.notice = Some(join(page.notice, damage(from.as_deref(), &error, None)));
                        page.next = None;
                    }
                }
            }
        }
        Ok(page)
    }

    /// Runs the query after `start`: at most `limit` rows, without the first `skip`.
    fn run(&self, start: &Condition, limit: usize, skip: u64) -> Result<Found> {
        let condition = self.filter.clone().and(start.clone());
        let order = self.order();
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", list(order)) };
        let offset = if skip == 0 { String::new() } else { format!(" OFFSET {skip}") };
        let sql = format!(
            "{}{}{order} LIMIT {}{offset}",
            select(self.table, IN_PAGE),
            condition.clause(),
            limit.saturating_add(1)
        );
        let mut statement = self.snapshot.connection.prepare(&sql).map_err(error)?;
        let mut rows = statement.query(params_from_iter(&condition.values)).map_err(error)?;
        let mut found = Found { rows: Vec::new(), positions: Vec::new(), stop: Stop::End };
        let (mut bytes, mut full) = (0, false);
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(found),
                Err(cause) => {
                    found.stop = match cause.sqlite_error_code() {
                        Some(ErrorCode::OperationInterrupted) => Stop::Interrupted(error(cause)),
                        Some(ErrorCode::DatabaseCorrupt) => Stop::Damaged(error(cause)),
                        _ => return Err(error(cause)),
                    };
                    return Ok(found);
                }
            };
            if found.rows.len() == limit || full {
                found.stop = Stop::Full;
                return Ok(found);
            }
            let (key, position, row) = decode_row(self.table, row, self.base, IN_PAGE)?;
            full = is_full(&row, &mut bytes, PAGE_BYTES);
            found.rows.push((key, row));
            found.positions.push(position);
        }
    }

    /// The terms of ORDER BY. The last ones are the key, so that every order is total.
    fn order(&self) -> Vec<String> {
        let term = |sort: &Sort| format!("{}{}", sort.sql, if sort.descending { " DESC" } else { "" });
        let mut terms: Vec<String> = self.sorts.iter().map(term).collect();
        terms.extend(self.key_columns().into_iter().filter(|name| !self.sorts.iter().any(|sort| sort.sql == *name)));
        terms
    }

    fn key_columns(&self) -> Vec<String> {
        match &self.table.keys {
            Keys::Rowid { alias, .. } => vec![quote(alias)],
            Keys::Primary(columns) => columns.iter().map(|column| quote(&column.name)).collect(),
            Keys::None => Vec::new(),
        }
    }

    /// The condition that selects the rows after the row with this key, in the order that is wanted.
    fn after_sorted(&self, key: &str) -> Result<Condition> {
        let equal = equals_key(self.table, key)?;
        let mut terms = self.sorts.clone();
        let keys = self.key_columns().into_iter().filter(|name| !self.sorts.iter().any(|sort| sort.sql == *name));
        terms.extend(keys.map(|sql| Sort { sql, descending: false, not_null: true }));
        let names = list(terms.iter().map(|term| term.sql.clone()));
        let sql = format!("SELECT {names} FROM {}{} LIMIT 1", quote(&self.table.name), equal.clause());
        let values: Option<Vec<Parameter>> = self
            .snapshot
            .connection
            .query_row(&sql, params_from_iter(&equal.values), |row| {
                (0..terms.len()).map(|at| row.get_ref(at).map(Parameter::from)).collect()
            })
            .optional()
            .map_err(error)?;
        let values = values.ok_or_else(|| {
            Error::invalid(format_args!(
                "\"after\" is \"{key}\": the table has no such row now; begin again without \"after\""
            ))
        })?;
        Ok(after_values(&terms, &values))
    }
}

/// The rows after these values, in the order of `terms`. NULL comes first, or last where the order descends.
fn after_values(terms: &[Sort], values: &[Parameter]) -> Condition {
    let mut whole = Condition::default();
    for (term, value) in terms.iter().zip(values).rev() {
        let (name, is_null) = (&term.sql, *value == Parameter::Value(Value::Null));
        let strict = match (term.descending, is_null) {
            (false, true) => Condition::new(format!("{name} IS NOT NULL"), Vec::new()),
            (false, false) => Condition::new(format!("{name} > ?"), vec![value.clone()]),
            (true, true) => Condition::new("0", Vec::new()),
            (true, false) if term.not_null => Condition::new(format!("{name} < ?"), vec![value.clone()]),
            (true, false) => Condition::new(format!("({name} < ? OR {name} IS NULL)"), vec![value.clone()]),
        };
        if whole.sql.is_empty() {
            whole = strict;
            continue;
        }
        // The first term repeats what the second one implies, so that SQLite can begin at the value in an index.
        let bound = match (term.descending, is_null) {
            (false, false) => Condition::new(format!("{name} >= ?"), vec![value.clone()]),
            (true, false) if term.not_null => Condition::new(format!("{name} <= ?"), vec![value.clone()]),
            _ => Condition::default(),
        };
        let mut either = strict.values;
        either.push(value.clone());
        either.extend(whole.values);
        whole = bound.and(Condition::new(format!("({} OR ({name} IS ? AND {}))", strict.sql, whole.sql), either));
    }
    whole
}

/// What SQLite says of a full-text search that it cannot parse.
const MATCH_ERRORS: [&str; 4] = ["fts5:", "malformed MATCH", "unterminated string", "no such column"];

/// The notice of a search that goes on.
const TOOK_LONG: &str = "the search took as long as one read may; \"next\" goes on with it";

fn damage(from: Option<&str>, error: &Error, next: Option<&str>) -> String {
    let place = from.map_or_else(|| "the first rows".to_owned(), |from| format!("rows after {from}"));
    let rest = next.map_or_else(|| "no rows after them".to_owned(), |next| format!("\"next\" goes on after {next}"));
    format!("{place} cannot be read: {error}; {rest}")
}

fn join(first: Option<String>, second: String) -> String {
    first.map_or(second.clone(), |first| format!("{first}; {second}"))
}

fn join_error(error: Error, more: &str) -> Error {
    match error {
        Error::Failed(why) => Error::failed(format_args!("{why}, {more}")),
        other => other,
    }
}

/// The key with which a page goes on after this rowid.
fn position_of(table: &Table, rowid: i64) -> String {
    match &table.keys {
        Keys::Rowid { column: Some(_), .. } => rowid.to_string(),
        _ => crate::key::Key::write_rowid(rowid),
    }
}

/// The condition of the rows after a rowid.
fn after_rowid(alias: &str, rowid: i64) -> Condition {
    Condition::new(format!("{} > ?", quote(alias)), vec![Value::Integer(rowid).into()])
}

/// The largest rowid that the key `after` excludes; without a key, one before all rowids.
fn excluded(snapshot: &Snapshot, table: &Table, alias: &str, after: Option<&str>) -> Result<Option<i64>> {
    let Some(after) = after else { return Ok(None) };
    let affected = rows::parse(table, after)?;
    if let crate::key::Key::Rowid(rowid) = affected {
        return Ok(Some(rowid));
    }
    if let (Keys::Rowid { others, .. }, crate::key::Key::Values(values)) = (&table.keys, &affected)
        && others.is_empty()
        && let [Parameter::Value(Value::Integer(rowid))] = values.as_slice()
    {
        return Ok(Some(*rowid));
    }
    let equal = equals_key(table, after)?;
    let sql = format!("SELECT {} FROM {}{} LIMIT 1", quote(alias), quote(&table.name), equal.clause());
    let found = snapshot.connection.query_row(&sql, params_from_iter(&equal.values), |row| row.get(0));
    found.optional().map_err(error)
}
