//! The schema of a database: tables and views, their columns and keys, and their CREATE statements.

use belljar_guest::{Error, Result};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::{Value as Json, json};

use crate::snapshot::error;

/// The most columns served per table. `rows` selects three terms per column, and SQLite allows 2000 terms in a SELECT.
pub(crate) const MAX_COLUMNS: usize = 600;

/// The type affinity of a column (<https://sqlite.org/datatype3.html#determination_of_column_affinity>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    Integer,
    Text,
    Blob,
    Real,
    Numeric,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The declared type; may be empty.
    pub(crate) kind: String,
    pub(crate) affinity: Affinity,
    not_null: bool,
    default: Option<String>,
    /// The position in the primary key, counted from 1; 0 for a column outside the key.
    key: i64,
    /// A generated column.
    generated: bool,
}

/// The columns that identify a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keys {
    /// A rowid table. `alias` is a name for the rowid, and `column` is the INTEGER PRIMARY KEY, if the table has one.
    /// `others` are the columns of any other primary key.
    Rowid { alias: String, column: Option<String>, others: Vec<Column> },
    /// A WITHOUT ROWID table, stored in the order of these columns.
    Primary(Vec<Column>),
    /// No key: a view, or a table whose columns hide all names of the rowid.
    None,
}

/// A table or a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// `table`, `view` or `virtual`.
    pub(crate) kind: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) keys: Keys,
}

/// Names and kinds of the listed tables and views, sorted by name. Leaves out SQLite's own tables and the shadow tables of
/// virtual tables.
pub(crate) fn names(connection: &Connection) -> Result<Vec<(String, String)>> {
    let sql = "SELECT name, CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual' ELSE type END FROM sqlite_schema \
               WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let all: Vec<(String, String)> = rows(connection, sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let shadows: Vec<String> = all
        .iter()
        .filter(|(_, kind)| kind == "virtual")
        .flat_map(|(name, _)| {
            ["data", "idx", "content", "docsize", "config", "segments", "segdir", "stat", "node", "rowid", "parent"]
                .map(|end| format!("{name}_{end}"))
        })
        .collect();
    Ok(all.into_iter().filter(|(name, _)| !shadows.contains(name)).collect())
}

impl Table {
    /// Looks up the table or view called `name`; upper and lower case are equal.
    pub(crate) fn find(connection: &Connection, name: &str) -> Result<Table> {
        let sql = "SELECT name, type, wr FROM pragma_table_list(?1) WHERE schema = 'main'";
        let found: Option<(String, String, bool)> = connection
            .query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
            .map_err(error)?;
        let (name, kind, without_rowid) = found.ok_or(Error::NotFound)?;
        let sql =
            "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1) WHERE hidden <> 1";
        let mut columns = rows(connection, sql, &[&name], Column::of)?;
        let mut primary: Vec<Column> = columns.iter().filter(|column| column.key > 0).cloned().collect();
        primary.sort_by_key(|column| column.key);
        let alias = ["rowid", "_rowid_", "oid"]
            .into_iter()
            .find(|alias| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(alias)));
        let keys = match (kind.as_str(), without_rowid) {
            ("view", _) => Keys::None,
            (_, true) if !primary.is_empty() => Keys::Primary(primary),
            _ => {
                // An INTEGER PRIMARY KEY has no index of its own, because it is the rowid.
                let sql = "SELECT count(*) FROM pragma_index_list(?1) WHERE origin = 'pk'";
                let indexed: i64 = connection.query_row(sql, [&name], |row| row.get(0)).map_err(error)?;
                match (primary.as_slice(), alias) {
                    ([only], _) if indexed == 0 && kind != "virtual" => {
                        Keys::Rowid { alias: only.name.clone(), column: Some(only.name.clone()), others: Vec::new() }
                    }
                    (_, Some(alias)) => Keys::Rowid { alias: alias.to_owned(), column: None, others: primary },
                    _ => Keys::None,
                }
            }
        };
        columns.truncate(MAX_COLUMNS);
        Ok(Table { name, kind, columns, keys })
    }

    /// The names of the key columns, for display.
    pub(crate) fn key_columns(&self) -> Vec<&str> {
        match &self.keys {
            Keys::Rowid { column: Some(column), .. } => vec![column],
            Keys::Rowid { others, .. } if others.is_empty() => vec!["rowid"],
            Keys::Rowid { others: columns, .. } | Keys::Primary(columns) => {
                columns.iter().map(|column| column.name.as_str()).collect()
            }
            Keys::None => Vec::new(),
        }
    }

    /// Columns, key, indexes, foreign keys and CREATE statement as JSON.
    pub(crate) fn describe(&self, connection: &Connection) -> Result<Json> {
        let columns: Vec<Json> = self.columns.iter().map(Column::describe).collect();
        let sql = "SELECT l.name, l.\"unique\", l.partial, \
                   (SELECT json_group_array(coalesce(x.name, '(expression)') || CASE x.desc WHEN 1 THEN ' DESC' ELSE '' END) \
                    FROM pragma_index_xinfo(l.name) AS x WHERE x.key = 1) FROM pragma_index_list(?1) AS l ORDER BY l.name";
        let indexes = rows(connection, sql, &[&self.name], |row| {
            let columns: Json = serde_json::from_str(&row.get::<_, String>(3)?).unwrap_or_default();
            let (name, unique, partial): (String, bool, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(json!({ "name": name, "unique": unique, "partial": partial, "columns": columns }))
        })?;
        let sql = "SELECT \"from\", \"table\", \"to\", on_delete FROM pragma_foreign_key_list(?1) ORDER BY id, seq";
        let foreign = rows(connection, sql, &[&self.name], |row| {
            let (from, table, to): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(json!({ "column": from, "table": table, "references": to, "on_delete": row.get::<_, String>(3)? }))
        })?;
        let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1 AND type IN ('table', 'view')";
        let made: Option<Option<String>> =
            connection.query_row(sql, [&self.name], |row| row.get(0)).optional().map_err(error)?;
        Ok(json!({
            "name": self.name, "type": self.kind, "columns": columns, "key": self.key_columns(),
            "indexes": indexes, "foreign_keys": foreign, "sql": made.flatten(),
        }))
    }
}

impl Column {
    fn of(row: &Row<'_>) -> rusqlite::Result<Column> {
        let kind: String = row.get(1)?;
        Ok(Column {
            name: row.get(0)?,
            affinity: affinity(&kind),
            kind,
            not_null: row.get(2)?,
            default: row.get(3)?,
            key: row.get(4)?,
            generated: row.get::<_, i64>(5)? != 0,
        })
    }

    fn describe(&self) -> Json {
        let mut about = json!({ "name": self.name, "type": self.kind });
        if let Some(about) = about.as_object_mut() {
            for (name, is) in
                [("not_null", self.not_null), ("primary_key", self.key > 0), ("generated", self.generated)]
            {
                if is {
                    about.insert(name.to_owned(), json!(true));
                }
            }
            if let Some(default) = &self.default {
                about.insert("default".to_owned(), json!(default));
            }
        }
        about
    }
}

fn affinity(kind: &str) -> Affinity {
    let kind = kind.to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| kind.contains(part));
    match () {
        () if has(&["INT"]) => Affinity::Integer,
        () if has(&["CHAR", "CLOB", "TEXT"]) => Affinity::Text,
        () if kind.is_empty() || has(&["BLOB"]) => Affinity::Blob,
        () if has(&["REAL", "FLOA", "DOUB"]) => Affinity::Real,
        () => Affinity::Numeric,
    }
}

/// The CREATE statements in their original order, without those of SQLite's own tables.
pub(crate) fn ddl(connection: &Connection) -> Result<String> {
    let sql =
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid";
    let statements: Vec<String> = rows(connection, sql, &[], |row| row.get(0))?;
    Ok(statements.iter().map(|statement| format!("{statement};\n")).collect())
}

/// The row count of a table: exact up to `most`. Above, the estimate of `ANALYZE`, or else "more than `most`".
pub(crate) fn count(connection: &Connection, table: &str, most: usize) -> Result<Json> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {})", quote(table), most + 1);
    let counted: i64 = connection.query_row(&sql, [], |row| row.get(0)).map_err(error)?;
    if usize::try_from(counted).is_ok_and(|counted| counted <= most) {
        return Ok(json!(counted));
    }
    // The estimate that ANALYZE stored, if it was ever run.
    let sql = "SELECT CAST(stat AS INTEGER) FROM sqlite_stat1 WHERE tbl = ?1 LIMIT 1";
    let estimate: Option<i64> = connection.query_row(sql, [table], |row| row.get(0)).ok();
    Ok(match estimate.filter(|estimate| *estimate > counted) {
        Some(estimate) => json!({ "about": estimate }),
        None => json!({ "more_than": most }),
    })
}

/// A name as a quoted SQL identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: &[&str],
    of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare(sql).map_err(error)?;
    let parameters = rusqlite::params_from_iter(parameters);
    let all = statement.query_map(parameters, of).map_err(error)?.collect::<rusqlite::Result<Vec<T>>>();
    all.map_err(error)
}
