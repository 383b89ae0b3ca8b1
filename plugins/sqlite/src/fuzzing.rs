//! Entry points for a fuzzer: this crate's own parsers of what a stranger writes. None may panic or hang.

use std::sync::OnceLock;

use belljar_guest::Result;
use rusqlite::Connection;

use crate::address::Address;
use crate::key::Key;
use crate::schema::{Affinity, Table};
use crate::snapshot;
use crate::state::State;
use crate::store::Database;
use crate::{filter, modules, name, views};

/// References, with and without the name of a database.
pub fn address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for named in [false, true] {
        let _ = Address::parse(text, named);
    }
}

/// Keys of rows, for several kinds of key columns.
pub fn key(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for columns in [&[Affinity::Text][..], &[Affinity::Blob], &[Affinity::Integer, Affinity::Text], &[]] {
        let _ = Key::parse(text, columns);
    }
    let _ = name::unescape(text);
    let _ = name::is(text, &name::escape(text));
}

/// The setting `VIEWS`.
pub fn views(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = views::parse(text);
    }
}

/// Statements of virtual tables.
pub fn module(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = modules::module_of(text);
        let _ = modules::explain(text);
    }
}

/// Filters and orders, as far as SQLite, which must accept the SQL that they become.
pub fn filter(bytes: &[u8]) {
    static TABLE: OnceLock<Option<Table>> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(table) = TABLE.get_or_init(|| table().ok()) else { return };
    let Ok(connection) = Connection::open_in_memory() else { return };
    if connection.execute_batch(SQL).is_err() {
        return;
    }
    if let Ok(condition) = filter::condition(&connection, table, &[text.to_owned()]) {
        let sql = format!("SELECT 1 FROM t{}", condition.clause());
        let prepared = connection.prepare(&sql).map(|statement| statement.parameter_count());
        assert_eq!(prepared, Ok(condition.values.len()), "{text:?} became {sql}");
    }
    if let Ok(order) = filter::order(table, text) {
        assert!(!order.is_empty(), "{text:?} has no order");
    }
}

/// The header of a database and of its journals, and the whole file as SQLite reads it.
pub fn database(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("belljar-sqlite-fuzz-{}.db", std::process::id()));
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    if let Ok(state) = State::of(&path) {
        let _ = (state.obstacle(), state.mode(), state.revision(), state.is_same_snapshot(&state));
        let database = Database { name: String::new(), path: path.clone() };
        let _ = snapshot::with(&database, |snapshot| {
            for entry in snapshot.catalog.listed() {
                let _ = Table::find(snapshot, &name::escape(&entry.name));
            }
            Ok(())
        });
    }
    let _ = std::fs::remove_file(&path);
}

const SQL: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, \"a b\", \"a=b\" REAL, \"and\" BLOB)";

/// The table of [`filter`].
fn table() -> Result<Table> {
    let path = std::env::temp_dir().join(format!("belljar-sqlite-fuzz-table-{}.db", std::process::id()));
    let made = Connection::open(&path).and_then(|connection| connection.execute_batch(SQL));
    made.map_err(snapshot::error)?;
    let database = Database { name: String::new(), path: path.clone() };
    let table = snapshot::with(&database, |snapshot| Table::find(snapshot, "t"));
    let _ = std::fs::remove_file(&path);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings of the characters that the parsers know.
    #[test]
    fn the_parsers_take_anything() {
        const PARTS: &[&str] = &[
            "a",
            "id",
            "a b",
            "\"",
            "'",
            "x'",
            "t'",
            "=",
            "!=",
            "<",
            ">=",
            "~",
            "!~",
            " and ",
            " is empty",
            ",",
            "-",
            "%",
            "%2F",
            "?",
            "&",
            "/",
            "..",
            "rowid=",
            "9e999",
            "00",
            "\n",
            "SELECT",
            ";",
            "ü",
            "[",
            "]",
            "`",
            "CREATE VIRTUAL TABLE ",
            " USING ",
            "--",
            "/*",
            "tables/",
            "where=",
            "limit=",
            "views/",
            "\0",
        ];
        let mut state = 7_u64;
        for _ in 0..3000 {
            let mut text = String::new();
            for _ in 0..=state % 9 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += PARTS[(state >> 33) as usize % PARTS.len()];
            }
            for target in [address, key, views, module, filter] {
                target(text.as_bytes());
            }
        }
        for bytes in [&b""[..], b"SQLite format 3\0", &[0xff; 200]] {
            database(bytes);
        }
    }
}
