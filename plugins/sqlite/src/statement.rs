//! SQL statements that only read: prepares one, and collects its rows. Does not know where a statement comes from.

use belljar_guest::{Error, Result};
use belljar_sql::unique_names;
use rusqlite::Statement;
use rusqlite::config::DbConfig;

use crate::rows;
use crate::snapshot::{Snapshot, error};
use crate::value::{self, IN_PAGE, Row};

/// The reason why a text is not a statement that only reads.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// SQLite does not accept it; SQLite's words.
    Statement(String),
    /// It does more than read.
    Writes,
    /// The fault is not in the statement.
    Other(Error),
}

/// The rows of a statement.
#[derive(Debug, PartialEq)]
pub(crate) struct Rows {
    /// The names of the columns, each once.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// True if there are more rows.
    pub(crate) cut: bool,
}

/// Prepares a statement that only reads. Three checks refuse any other one: the authorizer of the connection, SQLite's
/// `sqlite3_stmt_readonly`, and the number of columns.
pub(crate) fn prepare<'a>(snapshot: &'a Snapshot, sql: &str) -> Result<Statement<'a>, Wrong> {
    snapshot.check_names().map_err(Wrong::Other)?;
    let connection = &snapshot.connection;
    // A misspelled name in double quotes is an error, and not a text. Views of the database may have such texts.
    let has_texts = !sql.contains('"');
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, has_texts)
        .map_err(|cause| Wrong::Other(error(cause)))?;
    let statement = connection.prepare(sql).map_err(|cause| match error(cause) {
        Error::Failed(why) => Wrong::Statement(why),
        Error::Denied(_) => Wrong::Writes,
        other => Wrong::Other(other),
    })?;
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(Wrong::Writes);
    }
    Ok(statement)
}

/// Rows of a statement whose parameters are bound, after the first `skip`: at most `limit`, of about `max_bytes` together.
pub(crate) fn rows(statement: &mut Statement<'_>, skip: u64, limit: usize, max_bytes: usize) -> Result<Rows> {
    let columns = unique_names(statement.column_names());
    let mut found = statement.raw_query();
    let mut given = Rows { columns, rows: Vec::new(), cut: false };
    let mut bytes = 0;
    let mut full = false;
    for _ in 0..skip {
        if found.next().map_err(error)?.is_none() {
            return Ok(given);
        }
    }
    while let Some(row) = found.next().map_err(error)? {
        if given.rows.len() == limit || full {
            given.cut = true;
            break;
        }
        let mut fields = Vec::with_capacity(given.columns.len());
        for (index, column) in given.columns.iter().enumerate() {
            fields.push((column.clone(), value::json(row.get_ref(index).map_err(error)?, IN_PAGE)));
        }
        let row = Row(fields);
        full = rows::is_full(&row, &mut bytes, max_bytes);
        given.rows.push(row);
    }
    Ok(given)
}
