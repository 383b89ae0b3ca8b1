//! Pages of rows. A page goes on after the key of the last row of the page before (keyset pagination), so the last page of a
//! large table costs as much as the first. Rows of a table without a key are found by their places; others are counted.

use belljar_guest::{Error, Result};

use crate::connection::{Connection, Query};
use crate::failure::{Failure, Outcome};
use crate::filter::{self, Conditions, Sort};
use crate::key::{self, Key};
use crate::rows::{self, Read, Reader, add_key};
use crate::table::Table;
use crate::value::IN_PAGE;
use belljar_sql::page::{MAX_ROWS, Position, Wanted};

/// The approximate size of a page as JSON, in bytes. The last row may exceed it.
pub(crate) const PAGE_BYTES: usize = 512 * 1024;

/// How many ranges of places one page searches. Each is larger than the one before.
const MAX_ROUNDS: u32 = 6;

/// How much larger.
const GROWTH: u64 = 8;

/// The least blocks in a range of places.
const MIN_BLOCKS: u64 = 8;

const COUNTED: &str = "the rows have no key that pages can follow: they are counted, and each page reads the rows before it again; \"sort\" by a unique column makes the order certain";
const SEARCHED: &str = "the search took as long as one read may; \"next\" goes on with it";

/// A page of rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Read>,
    /// Where the next page begins.
    pub(crate) next: Option<Position>,
    /// Why the page ended early, or what it leaves out.
    pub(crate) notice: Option<String>,
}

/// The order of the rows, which says how the next page is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// After a key.
    Key,
    /// After a place in the table.
    Place(u64),
    /// After a number of rows.
    Count,
}

/// The query of a page.
struct Plan<'a> {
    table: &'a Table,
    reader: Reader<'a>,
    filter: Conditions,
    sorts: Vec<Sort>,
    way: Way,
    limit: usize,
    skip: u64,
}

impl<'a> Plan<'a> {
    fn new(table: &'a Table, wanted: &Wanted, limit: usize) -> Result<Plan<'a>> {
        let mut filter = Conditions::default();
        filter.filter(table, &wanted.filters)?;
        if let Some(text) = &wanted.matching {
            filter.search(table, text)?;
        }
        let sorts = wanted.sort.as_deref().map_or_else(|| Ok(Vec::new()), |sort| filter::order(table, sort))?;
        let way = match table.blocks {
            _ if table.has_ordered_key() => Way::Key,
            Some(blocks) if sorts.is_empty() && wanted.skip == 0 => Way::Place(blocks),
            _ => Way::Count,
        };
        if let (Some(after), Way::Count) = (&wanted.after, way) {
            return Err(Error::invalid(format_args!(
                "\"after\" is \"{after}\", but the rows of \"{}\" are counted here: expected \"skip\"",
                table.written()
            )));
        }
        Ok(Plan { table, reader: Reader::new(table, IN_PAGE), filter, sorts, way, limit, skip: wanted.skip })
    }

    fn select(&self, conditions: &Conditions, order: &[String], limit: usize, skip: u64) -> Query {
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        let offset = if skip == 0 { String::new() } else { format!(" OFFSET {skip}") };
        let (terms, from, clause) = (self.reader.terms(), self.table.quoted(), conditions.clause());
        let sql = format!("SELECT {terms} FROM {from}{clause}{order} LIMIT {}{offset}", limit.saturating_add(1));
        Query::new(sql, conditions.values.clone())
    }

    /// All columns of the order. The last ones are the key, so that the order is total.
    fn total_order(&self) -> Vec<Sort> {
        let mut all = self.sorts.clone();
        let keys: Vec<Sort> = match self.way {
            Way::Key => {
                let of =
                    |column: &crate::table::Column| Sort { sql: column.quoted(), descending: false, not_null: true };
                self.table.key_columns().map(of).collect()
            }
            Way::Place(_) | Way::Count if self.table.blocks.is_some() => {
                vec![Sort { sql: "ctid".to_owned(), descending: false, not_null: true }]
            }
            Way::Place(_) | Way::Count => Vec::new(),
        };
        all.extend(keys.into_iter().filter(|key| !self.sorts.iter().any(|sort| sort.sql == key.sql)));
        all
    }

    fn order(&self) -> Vec<String> {
        let term = |sort: &Sort| format!("{}{}", sort.sql, if sort.descending { " DESC" } else { "" });
        self.total_order().iter().map(term).collect()
    }

    /// The queries of a page that goes on after a key, or begins with the first row. The rows of a second query follow
    /// those of the first.
    fn queries(&self, connection: &mut Connection, after: Option<&str>) -> Outcome<Vec<Query>> {
        let order = self.order();
        let Some(after) = after else { return Ok(vec![self.select(&self.filter, &order, self.limit, self.skip)]) };
        let terms = self.total_order();
        let values = if self.sorts.is_empty() {
            let Key::Values(values) = rows::parse(self.table, after)? else {
                return Err(Error::invalid(format_args!("\"after\" is \"{after}\": expected values of the key")).into());
            };
            values.into_iter().map(Some).collect()
        } else {
            self.values_of(connection, after, &terms)?
        };
        let parts = after_values(&self.filter, &terms, &values);
        if let [only] = parts.as_slice() {
            return Ok(vec![self.select(only, &order, self.limit, self.skip)]);
        }
        // The rows that are skipped may lie in both parts.
        let most = self.limit.saturating_add(usize::try_from(self.skip).unwrap_or(usize::MAX));
        Ok(parts.iter().map(|part| self.select(part, &order, most, 0)).collect())
    }

    /// The values of the order's columns in the row with this key.
    fn values_of(&self, connection: &mut Connection, key: &str, terms: &[Sort]) -> Outcome<Vec<Option<String>>> {
        let mut equal = Conditions::default();
        add_key(self.table, key, &mut equal)?;
        let names: Vec<&str> = terms.iter().map(|term| term.sql.as_str()).collect();
        let sql = format!("SELECT {} FROM {}{} LIMIT 1", names.join(", "), self.table.quoted(), equal.clause());
        let found = connection.all(&[Query::new(sql, equal.values)])?.pop_front().unwrap_or_default();
        let row = found.first().ok_or_else(|| {
            Error::invalid(format_args!(
                "\"after\" is \"{key}\": the table has no such row now; begin again without \"after\""
            ))
        })?;
        Ok((0..terms.len()).map(|at| row.text(at).map(std::borrow::Cow::into_owned)).collect())
    }

    /// The places of the first range after this one: where it begins and ends, and how many blocks it has.
    fn range(&self, blocks: u64, start: (u64, u32), round: u32) -> (Query, u64) {
        let per_block = if self.table.density > 0.5 { self.table.density } else { 20.0 };
        let wanted = ((self.limit + 1) as f64 / per_block).ceil() as u64 * 2;
        let width = wanted.max(MIN_BLOCKS).saturating_mul(GROWTH.saturating_pow(round));
        let end = start.0.saturating_add(width).min(blocks.max(start.0));
        let mut conditions = self.filter.clone();
        let (from, to) = (conditions.bind(key::place(start.0, start.1)), conditions.bind(key::place(end, 0)));
        conditions.add(format!("ctid > {from} AND ctid < {to}"));
        (self.select(&conditions, &["ctid".to_owned()], self.limit, 0), end)
    }
}

/// One page of a table.
pub(crate) fn read(connection: &mut Connection, table: &Table, wanted: &Wanted, limit: usize) -> Outcome<Page> {
    let plan = Plan::new(table, wanted, limit)?;
    let mut page = match plan.way {
        Way::Place(blocks) => by_place(connection, &plan, blocks, wanted.after.as_deref()),
        Way::Key | Way::Count => in_order(connection, &plan, wanted),
    }
    .map_err(|failure| failure.of_caller(&about(wanted)))?;
    if !table.denied.is_empty() {
        let names = belljar_sql::one_of(table.denied.iter().map(String::as_str));
        let of = &connection.destination.user;
        add_notice(&mut page, &format!("columns that the user \"{of}\" may not read are left out: {names}"));
    }
    Ok(page)
}

/// The server's plan of a page, as text.
pub(crate) fn explain(connection: &mut Connection, table: &Table, wanted: &Wanted, limit: usize) -> Outcome<String> {
    let plan = Plan::new(table, wanted, limit)?;
    let query = match plan.way {
        Way::Place(blocks) => plan.range(blocks, start(table, wanted.after.as_deref())?, 0).0,
        Way::Key | Way::Count => {
            let mut queries = plan.queries(connection, wanted.after.as_deref())?;
            queries.truncate(1);
            queries.pop().unwrap_or_default()
        }
    };
    explain_query(connection, &query).map_err(|failure| failure.of_caller(&about(wanted)))
}

/// The server's plan of a query, as text.
pub(crate) fn explain_query(connection: &mut Connection, query: &Query) -> Outcome<String> {
    let query = Query::new(format!("EXPLAIN {}", query.sql), query.values.clone());
    let rows = connection.all(&[query])?.pop_front().unwrap_or_default();
    Ok(rows.iter().map(|row| row.string(0) + "\n").collect())
}

/// Names the parameters that a caller wrote.
fn about(wanted: &Wanted) -> String {
    let mut given: Vec<String> = wanted.filters.iter().map(|filter| format!("\"where\" is \"{filter}\"")).collect();
    for (name, value) in [("match", &wanted.matching), ("sort", &wanted.sort), ("after", &wanted.after)] {
        given.extend(value.as_ref().map(|value| format!("\"{name}\" is \"{value}\"")));
    }
    given.join(", ")
}

fn add_notice(page: &mut Page, more: &str) {
    page.notice = Some(page.notice.take().map_or_else(|| more.to_owned(), |first| format!("{first}; {more}")));
}

/// A page in the order of keys, of sorted columns, or in no certain order.
fn in_order(connection: &mut Connection, plan: &Plan<'_>, wanted: &Wanted) -> Outcome<Page> {
    let queries = plan.queries(connection, wanted.after.as_deref())?;
    let mut page = Page::default();
    let mut bytes = 0;
    let mut has_more = false;
    let mut to_skip = if queries.len() > 1 { plan.skip } else { 0 };
    let mut results = connection.send(&queries)?;
    for _ in &queries {
        results.columns()?;
        while let Some(row) = results.row()? {
            if to_skip > 0 {
                to_skip -= 1;
                continue;
            }
            // The connection ends with the call: the remaining rows need not be read.
            if page.rows.len() == plan.limit || bytes > PAGE_BYTES {
                has_more = true;
                break;
            }
            let row = plan.reader.read(&row);
            bytes += row.json.len();
            page.rows.push(row);
        }
        if has_more {
            break;
        }
    }
    if has_more {
        // After the last row with a key, rows without a key are counted.
        let with_key = page.rows.iter().rposition(|row| row.key.is_some()).filter(|_| plan.way == Way::Key);
        page.next = Some(match with_key {
            Some(at) => Position {
                after: page.rows.get(at).and_then(|row| row.key.clone()),
                skip: (page.rows.len() - at - 1) as u64,
            },
            None => Position { after: wanted.after.clone(), skip: wanted.skip + page.rows.len() as u64 },
        });
    }
    if plan.way == Way::Count {
        add_notice(&mut page, COUNTED);
    }
    Ok(page)
}

fn start(table: &Table, after: Option<&str>) -> Outcome<(u64, u32)> {
    match after.map(|after| rows::parse(table, after)).transpose()? {
        None => Ok((0, 0)),
        Some(Key::Place(block, row)) => Ok((block, row)),
        Some(Key::Values(_)) => Err(Failure::Other(Error::invalid("\"after\" is no place: expected ctid=0,1"))),
    }
}

/// A page in the order of places: searches ranges of blocks, each larger than the one before.
fn by_place(connection: &mut Connection, plan: &Plan<'_>, blocks: u64, after: Option<&str>) -> Outcome<Page> {
    let mut place = start(plan.table, after)?;
    let mut page = Page::default();
    let mut bytes = 0;
    for round in 0..MAX_ROUNDS {
        let (query, end) = plan.range(blocks, place, round);
        let mut results = connection.send(&[query])?;
        results.columns()?;
        while let Some(row) = results.row()? {
            if page.rows.len() == plan.limit || bytes > PAGE_BYTES {
                let after = page.rows.last().and_then(|row| row.key.clone());
                page.next = Some(Position { after, skip: 0 });
                return Ok(page);
            }
            let row = plan.reader.read(&row);
            bytes += row.json.len();
            page.rows.push(row);
        }
        results.finish()?;
        place = (end, 0);
        if end >= blocks {
            return Ok(page);
        }
        // A short page of a table without a filter is not worth another round.
        if page.rows.len() >= plan.limit.min(MAX_ROWS) {
            break;
        }
    }
    page.next = Some(Position { after: Some(Key::write_place(&key::place(place.0, place.1))), skip: 0 });
    if page.rows.len() < plan.limit {
        page.notice = Some(SEARCHED.to_owned());
    }
    Ok(page)
}

/// The conditions of the rows after these values, in the order of `terms`, as one part or two: the rows of the second part
/// follow those of the first. NULL comes last, or first where the order descends.
fn after_values(filter: &Conditions, terms: &[Sort], values: &[Option<String>]) -> Vec<Conditions> {
    let ways = || terms.iter().map(|term| term.descending);
    let is_plain = terms.iter().zip(values).all(|(term, value)| term.not_null && value.is_some());
    let mut first = filter.clone();
    if is_plain && (ways().all(|descends| descends) || ways().all(|descends| !descends)) {
        let names: Vec<&str> = terms.iter().map(|term| term.sql.as_str()).collect();
        let sign = if ways().any(|descends| descends) { "<" } else { ">" };
        let places: Vec<String> = values.iter().flatten().map(|value| first.bind(value.as_str())).collect();
        first.add(format!("({}) {sign} ({})", names.join(", "), places.join(", ")));
        return vec![first];
    }
    let Some(((term, value), rest)) = terms.iter().zip(values).next().zip(terms.get(1..)) else { return vec![first] };
    let rest_values = values.get(1..).unwrap_or_default();
    let (name, mut parts) = (&term.sql, Vec::new());
    match value {
        Some(value) => {
            // This condition repeats what the next one implies, so that the server begins at the value in an index.
            let (sign, place) = (if term.descending { "<" } else { ">" }, first.bind(value.as_str()));
            first.add(format!("{name} {sign}= {place}"));
            let more = match strictly_after(&mut first, rest, rest_values) {
                Some(more) => format!("({name} {sign} {place} OR {more})"),
                None => format!("{name} {sign} {place}"),
            };
            first.add(more);
            parts.push(first);
            if !term.descending && !term.not_null {
                let mut nulls = filter.clone();
                nulls.add(format!("{name} IS NULL"));
                parts.push(nulls);
            }
        }
        None => {
            let more = strictly_after(&mut first, rest, rest_values).unwrap_or_else(|| "false".to_owned());
            first.add(format!("{name} IS NULL AND {more}"));
            parts.push(first);
            if term.descending {
                let mut others = filter.clone();
                others.add(format!("{name} IS NOT NULL"));
                parts.push(others);
            }
        }
    }
    parts
}

/// The condition that a row comes after these values. `None` without values: no row does.
fn strictly_after(conditions: &mut Conditions, terms: &[Sort], values: &[Option<String>]) -> Option<String> {
    let ((term, value), rest) = terms.iter().zip(values).next().zip(terms.get(1..))?;
    let more = strictly_after(conditions, rest, values.get(1..).unwrap_or_default());
    let name = &term.sql;
    Some(match value {
        Some(value) => {
            let place = conditions.bind(value.as_str());
            let mut any = vec![format!("{name} {} {place}", if term.descending { "<" } else { ">" })];
            if !term.descending && !term.not_null {
                any.push(format!("{name} IS NULL"));
            }
            any.extend(more.map(|more| format!("({name} = {place} AND {more})")));
            format!("({})", any.join(" OR "))
        }
        None => {
            let mut any: Vec<String> = more.map(|more| format!("({name} IS NULL AND {more})")).into_iter().collect();
            if term.descending {
                any.push(format!("{name} IS NOT NULL"));
            }
            if any.is_empty() { "false".to_owned() } else { format!("({})", any.join(" OR ")) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(sql: &str, descending: bool, not_null: bool) -> Sort {
        Sort { sql: sql.to_owned(), descending, not_null }
    }

    fn clauses(terms: &[Sort], values: &[Option<&str>]) -> Vec<String> {
        let values: Vec<_> = values.iter().map(|value| value.map(str::to_owned)).collect();
        after_values(&Conditions::default(), terms, &values).iter().map(Conditions::clause).collect()
    }

    #[test]
    fn the_rows_after_values_are_found_by_an_index() {
        let (a, b) = (sort("a", false, true), sort("b", false, true));
        assert_eq!(clauses(&[a.clone(), b.clone()], &[Some("1"), Some("2")]), [" WHERE (a, b) > ($1, $2)"]);
        let down = sort("d", true, true);
        assert_eq!(clauses(&[down, b.clone()], &[Some("1"), Some("2")]), [" WHERE d <= $1 AND (d < $1 OR (b > $2))"]);
        let nullable = sort("n", false, false);
        let expected = [" WHERE n >= $1 AND (n > $1 OR (b > $2))", " WHERE n IS NULL"];
        assert_eq!(clauses(&[nullable.clone(), b.clone()], &[Some("1"), Some("2")]), expected);
        assert_eq!(clauses(&[nullable, b.clone()], &[None, Some("2")]), [" WHERE n IS NULL AND (b > $1)"]);
        let down = sort("d", true, false);
        let expected = [" WHERE d IS NULL AND (b > $1)", " WHERE d IS NOT NULL"];
        assert_eq!(clauses(&[down, b], &[None, Some("2")]), expected);
    }
}
