//! The schema of a database: tables and views, their columns and keys, and their CREATE statements.

use std::collections::HashSet;

use belljar_guest::{Error, Result};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::{Value as Json, json};

use crate::modules;
use crate::name;
use crate::snapshot::{Snapshot, error};

/// The most columns served per table. `rows` selects two terms per column, and this build of SQLite allows 8000 terms in a
/// SELECT (`.cargo/config.toml`). SQLite itself allows 2000 columns, unless a program was built for more.
pub(crate) const MAX_COLUMNS: usize = 2500;

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
    pub(crate) not_null: bool,
    default: Option<String>,
    /// The position in the primary key, counted from 1; 0 for a column outside the key.
    key: i64,
    /// A generated column.
    pub(crate) generated: bool,
    /// A column that only queries can name, such as `rank` of a full-text index.
    hidden: bool,
}

/// The columns that identify a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keys {
    /// A rowid table. `alias` is a name for the rowid, and `column` is the INTEGER PRIMARY KEY, if the table has one.
    /// `others` are the columns of any other primary key.
    Rowid { alias: String, column: Option<String>, others: Vec<Column> },
    /// A WITHOUT ROWID table, stored in the order of these columns.
    Primary(Vec<Column>),
    /// No key: a view, a table whose columns hide all names of the rowid, or one whose key has an unknown collation.
    None,
}

/// What an entry of the schema is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A table.
    Table,
    /// A view of the database.
    View,
    /// A virtual table of this module.
    Virtual(String),
}

/// A table or a view of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// All tables and views, in the order of the schema.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    entries: Vec<Entry>,
    /// Tables and views whose statement is not UTF-8. SQLite's interface for Rust cannot read these.
    pub(crate) not_utf8: Vec<String>,
}

/// A table or a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) columns: Vec<Column>,
    pub(crate) keys: Keys,
    /// The number of columns that are not served: those over [`MAX_COLUMNS`].
    pub(crate) left_out: usize,
}

impl Kind {
    /// The word for this kind.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::View => "view",
            Kind::Virtual(_) => "virtual",
        }
    }

    /// The module of a virtual table.
    pub(crate) fn module(&self) -> Option<&str> {
        match self {
            Kind::Virtual(module) => Some(module),
            Kind::Table | Kind::View => None,
        }
    }
}

impl Catalog {
    /// Reads the names of all tables and views.
    pub(crate) fn of(connection: &Connection) -> Result<Catalog> {
        let sql = "SELECT name, type, rootpage, sql FROM sqlite_schema WHERE type IN ('table', 'view')";
        let mut statement = connection.prepare(sql).map_err(error)?;
        let mut found = statement.query([]).map_err(error)?;
        let mut catalog = Catalog::default();
        while let Some(row) = found.next().map_err(error)? {
            let bytes = |at| row.get_ref(at).ok().and_then(|value| value.as_bytes().ok()).unwrap_or_default();
            let (Ok(name), Ok(sql)) = (std::str::from_utf8(bytes(0)), std::str::from_utf8(bytes(3))) else {
                catalog.not_utf8.push(String::from_utf8_lossy(bytes(0)).into_owned());
                continue;
            };
            let is_stored = row.get::<_, i64>(2).is_ok_and(|page| page != 0);
            let kind = match bytes(1) {
                b"view" => Kind::View,
                _ if is_stored => Kind::Table,
                _ => Kind::Virtual(modules::module_of(sql).unwrap_or_default()),
            };
            catalog.entries.push(Entry { name: name.to_owned(), kind });
        }
        Ok(catalog)
    }

    /// The entries of the list, sorted by name. Leaves out SQLite's own tables and the shadow tables of virtual tables.
    pub(crate) fn listed(&self) -> Vec<&Entry> {
        let shadows: HashSet<String> = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry, entry.kind.module()?)))
            .flat_map(|(entry, module)| {
                modules::shadows(module).iter().map(|end| format!("{}_{end}", entry.name).to_ascii_lowercase())
            })
            .collect();
        let mut listed: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| !is_internal(&entry.name) && !shadows.contains(&entry.name.to_ascii_lowercase()))
            .collect();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        listed
    }

    /// The shadow tables of all R*Trees, in lower case.
    pub(crate) fn rtree_shadows(&self) -> HashSet<String> {
        let trees = self.entries.iter().filter(|entry| entry.kind.module().is_some_and(modules::is_rtree));
        trees
            .flat_map(|tree| modules::RTREE.iter().map(|end| format!("{}_{end}", tree.name).to_ascii_lowercase()))
            .collect()
    }

    /// The entry that a segment of a reference names; upper and lower case are equal.
    fn find(&self, segment: &str) -> Option<Entry> {
        let by = |is: &dyn Fn(&str) -> bool| self.entries.iter().find(|entry| is(&entry.name)).cloned();
        by(&|known| known.eq_ignore_ascii_case(segment)).or_else(|| by(&|known| name::is(known, segment))).or_else(
            || {
                ["sqlite_schema", "sqlite_master"]
                    .iter()
                    .find(|known| known.eq_ignore_ascii_case(segment))
                    .map(|known| Entry { name: (*known).to_owned(), kind: Kind::Table })
            },
        )
    }
}

/// True for the name of one of SQLite's own tables.
fn is_internal(name: &str) -> bool {
    name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"))
}

impl Table {
    /// Looks up the table or view that a segment of a reference names; upper and lower case are equal.
    pub(crate) fn find(snapshot: &Snapshot, segment: &str) -> Result<Table> {
        let catalog = &snapshot.catalog;
        let Some(Entry { name, kind }) = catalog.find(segment) else {
            return Err(match catalog.not_utf8.iter().any(|name| name == segment) {
                true => not_utf8(segment),
                false => Error::NotFound,
            });
        };
        // The columns of a view may come from such a table.
        if let (Kind::View, Some(odd)) = (&kind, catalog.not_utf8.first()) {
            return Err(not_utf8(odd));
        }
        let connection = &snapshot.connection;
        let quoted = quote(&name);
        let mut columns = rows(connection, &format!("PRAGMA table_xinfo({quoted})"), &[], Column::of)?;
        columns.retain(|column| !column.hidden);
        if columns.is_empty() {
            // SQLite could not read the CREATE statement.
            return Err(snapshot.damaged.clone().map_or(Error::NotFound, Error::Failed));
        }
        let mut primary: Vec<Column> = columns.iter().filter(|column| column.key > 0).cloned().collect();
        primary.sort_by_key(|column| column.key);
        let alias = ["rowid", "_rowid_", "oid"]
            .into_iter()
            .find(|alias| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(alias)))
            .map(str::to_owned);
        let keys = match (&kind, primary.as_slice(), alias) {
            (Kind::View, ..) => Keys::None,
            (_, [], Some(alias)) => Keys::Rowid { alias, column: None, others: primary },
            (_, [], None) => Keys::None,
            (Kind::Virtual(_), _, alias) => {
                alias.map_or(Keys::None, |alias| Keys::Rowid { alias, column: None, others: Vec::new() })
            }
            (Kind::Table, [first, rest @ ..], alias) => {
                let key_index = KeyIndex::of(connection, &quoted)?;
                match (key_index, alias) {
                    // An INTEGER PRIMARY KEY has no index of its own, because it is the rowid.
                    (KeyIndex::Rowid, _) if rest.is_empty() => {
                        Keys::Rowid { alias: first.name.clone(), column: Some(first.name.clone()), others: Vec::new() }
                    }
                    (KeyIndex::Clustered { known: true }, _) => Keys::Primary(primary),
                    (KeyIndex::Separate { known: true }, Some(alias)) => {
                        Keys::Rowid { alias, column: None, others: primary }
                    }
                    // The collation of the key is not known, so SQLite cannot search for a key.
                    (KeyIndex::Separate { .. } | KeyIndex::Rowid, Some(alias)) => {
                        Keys::Rowid { alias, column: None, others: Vec::new() }
                    }
                    _ => Keys::None,
                }
            }
        };
        let left_out = columns.len().saturating_sub(MAX_COLUMNS);
        columns.truncate(MAX_COLUMNS);
        Ok(Table { name, kind, columns, keys, left_out })
    }

    /// The column that a segment of a reference names.
    pub(crate) fn column(&self, segment: &str) -> Option<&Column> {
        let exact = self.columns.iter().find(|column| column.name == segment);
        exact.or_else(|| self.columns.iter().find(|column| name::is(&column.name, segment)))
    }

    /// True if a query of this table can be restricted to ranges of rowids.
    pub(crate) fn rowid(&self) -> Option<&str> {
        match (&self.keys, &self.kind) {
            (Keys::Rowid { alias, .. }, Kind::Table) => Some(alias),
            _ => None,
        }
    }

    /// The collation of the key that SQLite does not have, if any.
    pub(crate) fn unknown_collation(&self, connection: &Connection) -> Result<Option<String>> {
        let quoted = quote(&self.name);
        let indexes = rows(connection, &format!("PRAGMA index_list({quoted})"), &[], |row| {
            Ok((row.get::<_, String>(1)?, row.get::<_, String>(3)?))
        })?;
        let Some((index, _)) = indexes.iter().find(|(_, origin)| origin == "pk") else { return Ok(None) };
        let all = collations(connection, index)?;
        Ok(all.into_iter().find(|name| !is_known(name)))
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
            "name": self.name, "type": self.kind.word(), "columns": columns, "key": self.key_columns(),
            "indexes": indexes, "foreign_keys": foreign, "sql": made.flatten(),
        }))
    }
}

impl Column {
    fn of(row: &Row<'_>) -> rusqlite::Result<Column> {
        let kind: String = row.get::<_, Option<String>>(2)?.unwrap_or_default();
        Ok(Column {
            name: row.get(1)?,
            affinity: affinity(&kind),
            kind,
            not_null: row.get(3)?,
            default: row.get(4)?,
            key: row.get(5)?,
            hidden: row.get::<_, i64>(6)? == 1,
            generated: row.get::<_, i64>(6)? > 1,
        })
    }

    /// A column with this name and declared type.
    #[cfg(test)]
    pub(crate) fn for_test(name: &str, kind: &str) -> Column {
        let (name, kind, affinity) = (name.to_owned(), kind.to_owned(), affinity(kind));
        Column { name, kind, affinity, not_null: false, default: None, key: 0, generated: false, hidden: false }
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

/// The index of a primary key.
enum KeyIndex {
    /// None: the key is the rowid.
    Rowid,
    /// The table is stored in the order of its key. `known` says whether SQLite has the collations of the key.
    Clustered { known: bool },
    /// An index beside the table.
    Separate { known: bool },
}

impl KeyIndex {
    /// The index of the primary key of the table with this quoted name.
    fn of(connection: &Connection, quoted: &str) -> Result<KeyIndex> {
        let indexes = rows(connection, &format!("PRAGMA index_list({quoted})"), &[], |row| {
            Ok((row.get::<_, String>(1)?, row.get::<_, String>(3)?))
        })?;
        let Some((index, _)) = indexes.iter().find(|(_, origin)| origin == "pk") else { return Ok(KeyIndex::Rowid) };
        let known = collations(connection, index)?.iter().all(|name| is_known(name));
        // For a table WITHOUT ROWID, and for no other, the name of the table stands for the index of its key.
        let clustered = rows(connection, &format!("PRAGMA index_info({quoted})"), &[], |_| Ok(()))?;
        Ok(if clustered.is_empty() { KeyIndex::Separate { known } } else { KeyIndex::Clustered { known } })
    }
}

/// The collations of an index.
fn collations(connection: &Connection, index: &str) -> Result<Vec<String>> {
    let sql = format!("PRAGMA index_xinfo({})", quote(index));
    let all = rows(connection, &sql, &[], |row| {
        Ok((row.get::<_, bool>(5)?, row.get::<_, Option<String>>(4)?.unwrap_or_default()))
    })?;
    Ok(all.into_iter().filter_map(|(is_key, name)| is_key.then_some(name)).collect())
}

/// True for a collation of SQLite itself.
fn is_known(collation: &str) -> bool {
    ["BINARY", "NOCASE", "RTRIM"].iter().any(|known| known.eq_ignore_ascii_case(collation))
}

fn not_utf8(name: &str) -> Error {
    Error::failed(format_args!(
        "the CREATE statement of \"{name}\" has bytes that are not UTF-8: this provider cannot read it"
    ))
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
