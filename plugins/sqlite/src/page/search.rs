//! Goes on where one query cannot: searches a large table in ranges of rowids, and finds the first row after damage.

use belljar_guest::{Error, Result};
use rusqlite::types::Value;
use rusqlite::{ErrorCode, OptionalExtension as _, params_from_iter};

use super::{Page, Position, Query, Stop, TOOK_LONG, after_rowid, excluded, position_of};
use crate::filter::Condition;
use crate::rows::select;
use crate::schema::quote;
use crate::snapshot::error;
use crate::value::IN_PAGE;

/// The rowids of the first range.
const FIRST_RANGE: i64 = 50_000;

impl Query<'_> {
    /// Searches ranges of rowids until the page is full or the time is over. `next` is the end of the last range.
    pub(super) fn search(&self, alias: &str, after: Option<&str>) -> Result<Page> {
        let start = excluded(self.snapshot, self.table, alias, after)?;
        let mut page = Page::default();
        let mut range = FIRST_RANGE;
        let Some(mut from) = self.rowid_after(alias, start)? else { return Ok(page) };
        self.snapshot.renew_budget();
        loop {
            let to = from.saturating_add(range);
            let name = quote(alias);
            let within = Condition::new(
                format!("{name} > ? AND {name} <= ?"),
                vec![Value::Integer(from).into(), Value::Integer(to).into()],
            );
            let found = self.run(&within, self.limit - page.rows.len(), 0)?;
            let last = found.positions.last().cloned().flatten();
            let is_empty = found.rows.is_empty();
            page.rows.extend(found.rows);
            let here = Position { after: last.or_else(|| Some(position_of(self.table, from))), skip: 0 };
            match found.stop {
                Stop::End => {}
                Stop::Full => {
                    page.next = Some(here);
                    return Ok(page);
                }
                Stop::Interrupted(cause) | Stop::Damaged(cause) if is_empty && start == Some(from) => {
                    return Err(cause);
                }
                Stop::Interrupted(_) | Stop::Damaged(_) => {
                    page.next = Some(here);
                    page.notice = Some(TOOK_LONG.to_owned());
                    return Ok(page);
                }
            }
            match self.rowid_after(alias, Some(to))? {
                None => return Ok(page),
                Some(next) => from = next,
            }
            if self.snapshot.is_half_spent() || page.rows.len() >= self.limit {
                let after = Some(position_of(self.table, from));
                page.next = Some(Position { after, skip: 0 });
                page.notice = Some(TOOK_LONG.to_owned());
                return Ok(page);
            }
            range = range.saturating_mul(2);
        }
    }

    /// One before the smallest rowid after `from`.
    fn rowid_after(&self, alias: &str, from: Option<i64>) -> Result<Option<i64>> {
        let condition = from.map(|from| after_rowid(alias, from)).unwrap_or_default();
        let sql = format!("SELECT min({}) FROM {}{}", quote(alias), quote(&self.table.name), condition.clause());
        let found: Option<i64> = self
            .snapshot
            .connection
            .query_row(&sql, params_from_iter(&condition.values), |row| row.get(0))
            .map_err(error)?;
        Ok(found.map(|rowid| rowid.saturating_sub(1)))
    }

    /// The key after which rows can be read again, behind the row `from`. `None`: no such row.
    pub(super) fn after_damage(&self, alias: &str, from: Option<&str>) -> Result<Option<String>> {
        let start = excluded(self.snapshot, self.table, alias, from)?.unwrap_or(0);
        // Doubles the distance until a row can be read, and then halves the last step.
        let mut distance: i64 = 1;
        let mut damaged = 0;
        let mut readable = loop {
            match self.is_readable(alias, start.saturating_add(distance))? {
                Some(true) => break distance,
                Some(false) => return Ok(None),
                None => damaged = distance,
            }
            match distance.checked_mul(2) {
                Some(further) if start.checked_add(further).is_some() => distance = further,
                _ => return Ok(None),
            }
        };
        while readable - damaged > 1 {
            let middle = damaged + (readable - damaged) / 2;
            match self.is_readable(alias, start.saturating_add(middle))? {
                Some(true) => readable = middle,
                Some(false) => return Ok(None),
                None => damaged = middle,
            }
        }
        Ok(Some(position_of(self.table, start.saturating_add(readable))))
    }

    /// True if the first row after this rowid can be read, false if there is none, `None` if it is damaged.
    fn is_readable(&self, alias: &str, rowid: i64) -> Result<Option<bool>> {
        let after = after_rowid(alias, rowid);
        let sql = format!("{}{} ORDER BY {} LIMIT 1", select(self.table, IN_PAGE), after.clause(), quote(alias));
        let first = self.snapshot.connection.query_row(&sql, params_from_iter(&after.values), |_| Ok(())).optional();
        match first {
            Ok(found) => Ok(Some(found.is_some())),
            Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(None),
            Err(cause) => Err::<Option<bool>, Error>(error(cause)),
        }
    }
}
