//! Tests of the provider over temporary databases, which real SQLite connections write.

mod calls;
mod pages;
mod parts;
mod shapes;

use std::path::Path;

use belljar_guest::{Body, reference};
use rusqlite::Connection;
use serde_json::Value as Json;

use super::*;

/// A provider over a single granted directory.
struct Fixture {
    dir: tempfile::TempDir,
    sqlite: Sqlite,
}

impl Fixture {
    /// A provider over one database that the operator named.
    fn named(sql: &str, views: &str) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let sql = format!("PRAGMA synchronous = OFF; {sql}");
        Connection::open(dir.path().join("a.db")).unwrap().execute_batch(&sql).unwrap();
        let store = Store::new(vec![("/db".to_owned(), dir.path().to_owned())], Some("a.db".to_owned()));
        Fixture { sqlite: Sqlite::over(store, views, None).unwrap(), dir }
    }

    fn writer(&self) -> Connection {
        Connection::open(self.dir.path().join("a.db")).unwrap()
    }

    fn text(&self, reference: &str) -> String {
        match self.sqlite.read(reference).unwrap_or_else(|error| panic!("{reference}: {error}")).contents.remove(0).body
        {
            Body::Text(text) => text,
            Body::Blob(bytes) => panic!("{reference} is {} bytes", bytes.len()),
        }
    }

    fn json(&self, reference: &str) -> Json {
        serde_json::from_str(&self.text(reference)).unwrap()
    }

    fn fails(&self, reference: &str) -> Error {
        self.sqlite.read(reference).unwrap_err()
    }
}

fn over(dir: &Path) -> Sqlite {
    Sqlite::over(Store::new(vec![("/db".to_owned(), dir.to_owned())], None), "", None).unwrap()
}

const KEYS: &str = "
    CREATE TABLE plain (a, b);
    INSERT INTO plain VALUES (1, 'x'), (2, 'y'), (3, NULL);
    CREATE TABLE numbered (id INTEGER PRIMARY KEY, name TEXT);
    INSERT INTO numbered VALUES (10, 'ten'), (20, 'twenty'), (30, 'thirty');
    CREATE TABLE texts (code TEXT PRIMARY KEY, n INT);
    INSERT INTO texts VALUES ('b/1', 1), ('a,2', 2), (NULL, 3), ('', 4);
    CREATE TABLE pairs (x TEXT, y INT, z REAL, PRIMARY KEY (x, y)) WITHOUT ROWID;
    INSERT INTO pairs VALUES ('a', 1, 1.0), ('a', 2, 2.5), ('b', 1, -1), ('c,''d', 7, 0);
    CREATE TABLE hidden (rowid, oid, _rowid_); INSERT INTO hidden VALUES (1, 2, 3);
    CREATE TABLE \"odd \"\"name/\" (\"a \"\" b\" INTEGER PRIMARY KEY, \"select\");
    INSERT INTO \"odd \"\"name/\" VALUES (1, 2);
    CREATE VIEW seen AS SELECT b FROM plain;";

/// Reads a table page by page, and each row again by the key from its page.
fn all(fixture: &Fixture, table: &str, limit: usize) -> Vec<Json> {
    let mut found = Vec::new();
    let mut next = format!("tables/{table}?limit={limit}");
    loop {
        let page = fixture.json(&next);
        let rows = page["rows"].as_array().unwrap();
        assert!(rows.len() <= limit);
        for row in rows {
            let key = reference::encode_segment(row["key"].as_str().unwrap());
            let single = fixture.json(&format!("tables/{table}/rows/{key}"));
            assert_eq!(single["row"], row["row"]);
            assert_eq!(single["reference"], json!(format!("tables/{table}/rows/{key}")));
            found.push(row["row"].clone());
        }
        match page["next"].as_str() {
            Some(reference) => next = reference.to_owned(),
            None => return found,
        }
    }
}

/// The rows of a page and of all pages after it.
fn rows(fixture: &Fixture, reference: &str) -> Vec<Json> {
    let mut found = Vec::new();
    let mut next = Some(reference.to_owned());
    while let Some(reference) = next {
        let page = fixture.json(&reference);
        let rows = page["rows"].as_array().unwrap();
        found.extend(rows.iter().map(|row| if row["row"].is_object() { &row["row"] } else { row }).cloned());
        next = page["next"].as_str().map(str::to_owned);
        assert!(found.len() < 10_000, "{reference}");
    }
    found
}

#[test]
fn every_row_is_on_one_page_and_is_found_by_its_key() {
    let fixture = Fixture::named(KEYS, "");
    let tables = [("plain", 3), ("numbered", 3), ("texts", 4), ("pairs", 4), ("odd%20%22name%2F", 1)];
    for (table, count) in tables {
        for limit in [1, 2, 3, 100] {
            let rows = all(&fixture, table, limit);
            assert_eq!(rows.len(), count, "{table}");
            for (index, row) in rows.iter().enumerate() {
                assert!(!rows[..index].contains(row), "{table}: {row}");
            }
        }
    }
    assert_eq!(fixture.json("tables/pairs/rows/a%2C2")["row"], json!({ "x": "a", "y": 2, "z": 2.5 }));
    assert_eq!(fixture.json("tables/texts/rows/b%2F1")["row"]["n"], 1);
    assert_eq!(fixture.json("tables/texts/rows/''")["row"]["n"], 4);
    assert_eq!(fixture.json("tables/texts?after=b%2F1")["rows"].as_array().unwrap().len(), 3);
    // Rows without a rowid have no keys: their pages are counted.
    for (keyless, count) in [("hidden", 1), ("seen", 3)] {
        let page = fixture.json(&format!("tables/{keyless}?limit=1"));
        assert_eq!((page["rows"].as_array().unwrap().len(), &page["cut"]), (1, &json!(keyless == "seen")), "{keyless}");
        assert_eq!(rows(&fixture, &format!("tables/{keyless}?limit=1")).len(), count);
    }
}

#[test]
fn absent_tables_and_keys_are_not_found() {
    let fixture = Fixture::named(KEYS, "");
    for absent in
        ["tables/none", "tables/numbered/rows/11", "tables/numbered/rows/10/none", "schema/none", "views/none", "x"]
    {
        assert_eq!(fixture.fails(absent), Error::NotFound, "{absent}");
    }
    for invalid in ["tables/pairs/rows/a", "tables/seen/rows/1", "tables/pairs?after=a", "tables/plain?x=1"] {
        assert!(matches!(fixture.fails(invalid), Error::Invalid(_)), "{invalid}");
    }
}

#[test]
fn values_keep_their_types() {
    let fixture = Fixture::named(
        "CREATE TABLE v (id INTEGER PRIMARY KEY, x);
         INSERT INTO v VALUES (1, 9223372036854775807), (2, x'89504e470d0a1a0a0000000d49484452'), (3, '2026-11-22'),
            (4, zeroblob(9000000)), (5, hex(zeroblob(3000))), (6, 1.0), (7, NULL), (8, 9e999), (9, CAST(x'61ff' AS TEXT));",
        "",
    );
    let x = |id: u32| fixture.json(&format!("tables/v/rows/{id}"))["row"]["x"].clone();
    assert_eq!(x(1), json!({ "integer": "9223372036854775807" }));
    assert_eq!(x(3), "2026-11-22");
    assert_eq!(x(4), json!({ "blob": null, "size": 9_000_000, "read": "tables/v/rows/4/x" }));
    assert_eq!((x(6).to_string(), x(7)), ("1.0".to_owned(), Json::Null));
    assert_eq!(x(8), json!({ "real": "Infinity" }));
    assert_eq!(x(9)["bytes"], "Yf8=");
    let page = fixture.json("tables/v");
    assert_eq!(page["rows"][4]["row"]["x"], json!({ "text": null, "size": 6000, "read": "tables/v/rows/5/x" }));
    assert_eq!(fixture.text("tables/v/rows/5/x").len(), 6000);
    assert_eq!(fixture.text("tables/v/rows/5/x?offset=5998"), "00");

    let reading = fixture.sqlite.read("tables/v/rows/2/x").unwrap();
    assert_eq!(reading.contents[0].mime_type.as_deref(), Some("image/png"));
    assert!(matches!(&fixture.fails("tables/v/rows/4/x"), Error::Failed(why) if why.contains("?offset=")));
    let part = fixture.sqlite.read("tables/v/rows/4/x?offset=8999990&length=100").unwrap();
    assert_eq!(part.contents[0].body, Body::Blob(vec![0; 10]));
}

#[test]
fn every_listed_resource_can_be_read() {
    let fixture =
        Fixture::named(KEYS, "first = SELECT * FROM numbered ORDER BY id\nby = SELECT * FROM numbered WHERE id > :n");
    let listed = fixture.sqlite.list_resources(None).unwrap().resources;
    let references: Vec<&str> = listed.iter().map(|resource| resource.reference.as_str()).collect();
    let expected = [
        "",
        "schema",
        "schema.sql",
        "tables/hidden",
        "tables/numbered",
        "tables/odd%20%22name%2F",
        "tables/pairs",
        "tables/plain",
        "tables/seen",
        "tables/texts",
        "views/first",
    ];
    assert_eq!(references, expected);
    references.iter().for_each(|reference| drop(fixture.text(reference)));
    let templates = fixture.sqlite.list_templates().unwrap();
    let templates: Vec<&str> = templates.iter().map(|template| template.template.as_str()).collect();
    assert!(templates.contains(&"views/by{?n,skip,limit}"), "{templates:?}");
    assert_eq!(fixture.json("")["tables"][1]["rows"], 3);
    let schema = fixture.json("schema/pairs");
    assert_eq!((&schema["key"], &schema["columns"][2]["type"]), (&json!(["x", "y"]), &json!("REAL")));
    assert!(fixture.text("schema.sql").contains("CREATE VIEW seen"));
}

#[test]
fn views_take_parameters_and_only_read() {
    let fixture = Fixture::named(
        KEYS,
        "by = SELECT name, name FROM numbered WHERE id > :n ORDER BY id\nbad = WITH x AS (SELECT 1) DELETE FROM numbered\n\
         wrong = SELECT * FROM nowhere\nother = SELECT 1; DROP TABLE plain\n\
         endless = WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    );
    let given = fixture.json("views/by?n=10&limit=1");
    assert_eq!((&given["rows"], &given["cut"]), (&json!([{ "name": "twenty", "name:2": "twenty" }]), &json!(true)));
    assert!(matches!(fixture.fails("views/by"), Error::Invalid(why) if why.contains("needs \"n\"")));
    assert!(matches!(fixture.fails("views/by?n=1&m=2"), Error::Invalid(_)));
    for view in ["bad", "wrong", "other"] {
        let error = fixture.fails(&format!("views/{view}"));
        assert!(matches!(&error, Error::Denied(_) | Error::Failed(_)), "{view}: {error}");
    }
    assert!(matches!(fixture.fails("views/endless"), Error::Failed(why) if why.contains("stopped")));
    assert_eq!(all(&fixture, "numbered", 9).len(), 3);
}

#[test]
fn a_half_written_transaction_makes_reads_unavailable() {
    let fixture = Fixture::named(KEYS, "");
    let writer = fixture.writer();
    // The change is not in the file yet.
    writer.execute_batch("PRAGMA cache_size = 5; BEGIN; UPDATE numbered SET name = 'changed'").unwrap();
    assert!(fixture.dir.path().join("a.db-journal").exists());
    assert_eq!(fixture.json("tables/numbered/rows/10")["row"]["name"], "ten");
    // More pages than the writer's cache holds: some of them are in the file now.
    let more = "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
                INSERT INTO numbered SELECT i, hex(zeroblob(100)) FROM n";
    writer.execute_batch(more).unwrap();
    assert!(matches!(fixture.fails("tables/numbered"), Error::Unavailable(why) if why.contains("-journal")));
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(fixture.json("tables/numbered/rows/10")["row"]["name"], "changed");
}

#[test]
fn rows_in_the_write_ahead_log_are_read() {
    let fixture = Fixture::named("PRAGMA journal_mode = WAL; CREATE TABLE t (a)", "");
    let writer = fixture.writer();
    writer.execute_batch("PRAGMA wal_autocheckpoint = 0; INSERT INTO t VALUES (1), (2)").unwrap();
    let before = fixture.sqlite.resource_revision("tables/t").unwrap();
    assert_eq!(all(&fixture, "t", 10), [json!({ "a": 1 }), json!({ "a": 2 })]);
    // Rows that are not committed are not visible.
    writer.execute_batch("BEGIN; INSERT INTO t VALUES (3)").unwrap();
    assert_eq!(all(&fixture, "t", 10).len(), 2);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(all(&fixture, "t", 10).len(), 3);
    assert_ne!(fixture.sqlite.resource_revision("tables/t").unwrap(), before);
    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert_eq!(all(&fixture, "t", 10).len(), 3);
    drop(writer);
    assert!(!fixture.dir.path().join("a.db-wal").exists());
    assert_eq!(all(&fixture, "t", 10).len(), 3);
}

#[test]
fn nested_databases_are_found_and_a_broken_one_does_not_hide_others() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("deep/er")).unwrap();
    for name in ["b.db", "deep/er/a b.sqlite"] {
        Connection::open(dir.path().join(name)).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    }
    std::fs::write(dir.path().join("broken.db"), b"SQLite format 3\0 and then nothing that makes sense").unwrap();
    std::fs::write(dir.path().join("notes.txt"), "no database").unwrap();
    std::os::unix::fs::symlink("b.db", dir.path().join("link.db")).unwrap();
    let sqlite = over(dir.path());
    let listed = sqlite.list_resources(None).unwrap().resources;
    let of = |end: &str| -> Vec<&str> {
        listed.iter().filter_map(|resource| resource.reference.strip_suffix(end)).collect()
    };
    assert_eq!(of("/tables/t"), ["b.db", "deep%2Fer%2Fa%20b.sqlite"]);
    let broken = listed.iter().find(|resource| resource.reference == "broken.db").unwrap();
    assert!(broken.description.as_deref().unwrap().starts_with("Cannot be read"), "{broken:?}");
    assert_eq!(listed.iter().filter(|resource| resource.reference.contains("link")).count(), 0);
    assert!(sqlite.read("deep%2Fer%2Fa%20b.sqlite/tables/t").is_ok());
    for absent in ["notes.txt/schema", "link.db/schema", "none.db", "deep/schema", "..%2Fb.db/schema"] {
        assert_eq!(sqlite.read(absent), Err(Error::NotFound), "{absent}");
    }
    assert!(sqlite.read("").is_ok());
}

#[test]
fn names_and_keys_are_completed() {
    let fixture = Fixture::named(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, colour); CREATE TABLE w (name TEXT PRIMARY KEY) WITHOUT ROWID;
         INSERT INTO w VALUES ('ab'), ('abc'), ('b');
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) INSERT INTO t SELECT i, i FROM n",
        "",
    );
    let complete = |template: &str, name: &str, value: &str, resolved: &[(&str, &str)]| {
        let resolved: Vec<Argument> = resolved.iter().map(|(name, value)| Argument::new(*name, *value)).collect();
        fixture.sqlite.complete(template, &Argument::new(name, value), &resolved).unwrap().values
    };
    let row = "tables/{table}/rows/{key}";
    assert_eq!(complete(row, "table", "", &[]), ["t", "w"]);
    assert_eq!(complete(row, "key", "4", &[("table", "t")])[..4], ["4", "40", "41", "42"]);
    assert_eq!(complete(row, "key", "4", &[("table", "t")]).len(), 100);
    assert_eq!(complete(row, "key", "499", &[("table", "t")]), ["499"]);
    assert_eq!(complete(row, "key", "ab", &[("table", "w")]), ["ab", "abc"]);
    assert_eq!(complete(row, "key", "ab", &[("table", "none")]), [""; 0]);
    let value = "tables/{table}/rows/{key}/{column}{?bytes,lines}";
    assert_eq!(complete(value, "column", "c", &[("table", "t")]), ["colour"]);
}
