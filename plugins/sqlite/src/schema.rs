//! What a database says of itself: its tables and views, their columns and keys, and the statements that made them.

use belljar_guest::{Error, Result};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::{Value as Json, json};

use crate::snapshot::error;

/// How many columns of a table are served. A row of more could not be asked for in one statement.
pub(crate) const MOST_COLUMNS: usize = 600;

/// How a column likes its values (<https://sqlite.org/datatype3.html#determination_of_column_affinity>).
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
    /// As declared; may be empty.
    pub(crate) kind: String,
    pub(crate) affinity: Affinity,
    not_null: bool,
    default: Option<String>,
    /// Its place in the primary key, from 1 on; 0 when it is not in it.
    key: i64,
    /// Computed from others.
    generated: bool,
}

/// What tells the rows of a table apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keys {
    /// The number that each row has; `column` is the one that shows it, if one does. `others` are the columns of another
    /// primary key.
    Rowid { alias: String, column: Option<String>, others: Vec<Column> },
    /// The table is kept in the order of these.
    Primary(Vec<Column>),
    /// A view's rows have nothing of the kind.
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

/// The names of tables and views that are worth being listed, in the order of their names: none of those that SQLite or a
/// virtual table keeps for itself.
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
    /// Looks up the table or view called `name`, in whatever case.
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
                // An INTEGER PRIMARY KEY has no index of its own: it is the number of the row.
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
        columns.truncate(MOST_COLUMNS);
        Ok(Table { name, kind, columns, keys })
    }

    /// What a key of it consists of, for people.
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

    /// All that is known of it, as JSON.
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

/// The statements that made everything that is not SQLite's own, in the order in which they were run.
pub(crate) fn ddl(connection: &Connection) -> Result<String> {
    let sql =
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid";
    let statements: Vec<String> = rows(connection, sql, &[], |row| row.get(0))?;
    Ok(statements.iter().map(|statement| format!("{statement};\n")).collect())
}

/// How many rows of a table are known without counting them all: exactly when there are at most `most`.
pub(crate) fn count(connection: &Connection, table: &str, most: usize) -> Result<Json> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {})", quote(table), most + 1);
    let counted: i64 = connection.query_row(&sql, [], |row| row.get(0)).map_err(error)?;
    if usize::try_from(counted).is_ok_and(|counted| counted <= most) {
        return Ok(json!(counted));
    }
    // What ANALYZE has left, if anybody ever ran it.
    let sql = "SELECT CAST(stat AS INTEGER) FROM sqlite_stat1 WHERE tbl = ?1 LIMIT 1";
    let estimate: Option<i64> = connection.query_row(sql, [table], |row| row.get(0)).ok();
    Ok(match estimate.filter(|estimate| *estimate > counted) {
        Some(estimate) => json!({ "about": estimate }),
        None => json!({ "more_than": most }),
    })
}

/// A name as SQL writes it.
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
