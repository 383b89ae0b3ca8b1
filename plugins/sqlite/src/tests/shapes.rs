//! Tests of the shapes that databases of other programs have: virtual tables, odd names and values, and damage.

use super::*;

const VIRTUAL: &str = "
    CREATE VIRTUAL TABLE five USING fts5(title, body, tokenize = 'porter unicode61');
    INSERT INTO five VALUES ('Walking', 'the dogs run'), ('Cooking', 'a red soup'), ('Running', 'walk the line');
    CREATE VIRTUAL TABLE outside USING fts5(b, content = 'plain', content_rowid = 'rowid');
    CREATE TABLE plain (a, b); INSERT INTO plain VALUES (1, 'xylophone'), (2, 'yes'); INSERT INTO outside (outside) VALUES ('rebuild');
    CREATE VIRTUAL TABLE words USING fts5vocab(five, 'row');
    CREATE VIRTUAL TABLE four USING fts4(subject, text); INSERT INTO four VALUES ('one', 'first words'), ('two', 'second words');
    CREATE VIRTUAL TABLE three USING fts3(t); INSERT INTO three VALUES ('three');
    CREATE VIRTUAL TABLE terms USING fts4aux(four);
    CREATE VIRTUAL TABLE tree USING rtree(id, minx, maxx, miny, maxy, +label);
    INSERT INTO tree VALUES (1, 0, 1, 0, 1, 'a'), (2, 5, 6, 5, 6, 'b'), (7, 10, 11, 10, 11, NULL);
    CREATE VIRTUAL TABLE whole USING rtree_i32(id, low, high); INSERT INTO whole VALUES (3, 1, 2);
    CREATE VIRTUAL TABLE shapes USING geopoly(name);
    INSERT INTO shapes (_shape, name) VALUES ('[[0,0],[1,0],[0,1],[0,0]]', 'triangle');
    CREATE VIRTUAL TABLE pages USING dbstat;
    CREATE VIEW found AS SELECT title FROM five WHERE five MATCH 'walk' ORDER BY title;
    CREATE VIEW boxes AS SELECT id, label FROM tree WHERE minx >= 5;
    CREATE VIEW parts AS SELECT value FROM json_each('[1,2]');
    CREATE VIEW columns AS SELECT name FROM pragma_table_info('plain');";

#[test]
fn virtual_tables_are_read_in_tables_views_and_queries() {
    let fixture = Fixture::named(
        VIRTUAL,
        "near = SELECT id FROM tree WHERE maxx < :x ORDER BY id\nhits = SELECT snippet(five, 1, '[', ']', '', 5) AS s FROM five WHERE five MATCH :q ORDER BY rank",
    );
    let listed: Vec<String> = fixture.json("")["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| {
            assert_eq!(table["error"], Json::Null, "{table}");
            table["name"].as_str().unwrap().to_owned()
        })
        .collect();
    let expected = [
        "boxes", "columns", "five", "found", "four", "outside", "pages", "parts", "plain", "shapes", "terms", "three",
        "tree", "whole", "words",
    ];
    assert_eq!(listed, expected);
    for (table, count) in [
        ("five", 3),
        ("outside", 2),
        ("four", 2),
        ("three", 1),
        ("tree", 3),
        ("whole", 1),
        ("shapes", 1),
        ("found", 2),
        ("boxes", 2),
        ("parts", 2),
        ("columns", 2),
        ("words", 9),
        ("terms", 10),
    ] {
        let found = rows(&fixture, &format!("tables/{table}?limit=1"));
        assert_eq!(found.len(), count, "{table}: {found:?}");
    }
    for table in ["five", "four", "three", "tree", "whole", "shapes", "outside"] {
        assert!(!all(&fixture, table, 2).is_empty(), "{table}");
    }
    assert!(!rows(&fixture, "tables/pages").is_empty());
    assert_eq!(rows(&fixture, "tables/five?match=walk").len(), 2);
    assert_eq!(rows(&fixture, "tables/four?match=second")[0]["subject"], "two");
    assert_eq!(rows(&fixture, "tables/tree?where=minx%3E%3D5&sort=-id")[0]["id"], 7);
    assert_eq!(rows(&fixture, "views/near?x=7").len(), 2);
    assert_eq!(rows(&fixture, "views/hits?q=soup"), [json!({ "s": "a red [soup]" })]);
    let syntax = fixture.fails("tables/five?match=%22");
    assert!(matches!(&syntax, Error::Invalid(why) if why.contains("\"match\" is")), "{syntax}");
    assert!(matches!(fixture.fails("tables/tree?match=x"), Error::Invalid(why) if why.contains("where=")));
    assert_eq!(fixture.json("schema/five")["type"], "virtual");
}

#[test]
fn virtual_tables_stay_unchanged() {
    let fixture = Fixture::named(VIRTUAL, "");
    let before = std::fs::read(fixture.dir.path().join("a.db")).unwrap();
    let refused = |sql: &str| {
        snapshot::with(&fixture.sqlite.store.find("").unwrap(), |snapshot| {
            // Opens the R*Tree, whose own statements write.
            statement::prepare(snapshot, "SELECT * FROM tree").unwrap();
            let refused = match statement::prepare(snapshot, sql) {
                Err(wrong) => format!("{wrong:?}"),
                Ok(mut ready) => match statement::rows(&mut ready, 0, 10, 10_000) {
                    Ok(rows) => panic!("{sql}: {rows:?}"),
                    Err(error) => error.to_string(),
                },
            };
            Ok(refused)
        })
        .unwrap()
    };
    for sql in [
        "INSERT INTO tree VALUES (9, 0, 1, 0, 1, 'x')",
        "DELETE FROM tree_node",
        "INSERT INTO tree_rowid VALUES (1, 2, 3) RETURNING *",
        "UPDATE tree_parent SET parentnode = 1 RETURNING 1",
        "DELETE FROM five",
        "INSERT INTO five (five) VALUES ('optimize')",
        "DELETE FROM five_data RETURNING *",
        "UPDATE four_content SET c0subject = 'x'",
        "SELECT optimize(four) FROM four",
        "SELECT fts3_tokenizer('simple')",
        "SELECT fts3_tokenizer('simple', x'00')",
        "CREATE VIRTUAL TABLE made USING fts5(x)",
        "CREATE VIRTUAL TABLE temp.made USING dbstat",
        "DROP TABLE tree",
        "PRAGMA page_size = 512",
        "PRAGMA journal_mode",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_writable_schema",
        "SELECT * FROM pragma_user_version(7)",
        "PRAGMA wal_checkpoint",
        "PRAGMA optimize",
        "SELECT writefile('x', 'y')",
        "SELECT readfile('/etc/passwd')",
        "SELECT edit('x')",
        "SELECT load_extension('x')",
        "ATTACH 'file:x?mode=memory' AS x",
    ] {
        let why = refused(sql);
        assert!(!why.contains("not-found"), "{sql}: {why}");
    }
    assert_eq!(std::fs::read(fixture.dir.path().join("a.db")).unwrap(), before);
    // What reads is allowed.
    snapshot::with(&fixture.sqlite.store.find("").unwrap(), |snapshot| {
        for sql in [
            "SELECT * FROM pragma_index_list('plain')",
            "PRAGMA table_list",
            "SELECT * FROM pragma_page_count",
            "PRAGMA integrity_check",
            "SELECT name FROM pragma_module_list",
            "SELECT sum(pgsize) FROM dbstat",
            "SELECT rtreecheck('tree')",
            "SELECT sqrt(2), median(a), soundex('x'), json_extract('[1]', '$[0]') FROM plain",
            "SELECT geopoly_area(_shape) FROM shapes",
            "SELECT * FROM json_tree('{\"a\":[1]}')",
            "SELECT highlight(five, 0, '<', '>') FROM five('walk')",
        ] {
            let mut ready = statement::prepare(snapshot, sql).unwrap_or_else(|wrong| panic!("{sql}: {wrong:?}"));
            statement::rows(&mut ready, 0, 10, 10_000).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        Ok(())
    })
    .unwrap();
}

/// Writes an entry of the schema that SQLite itself would not write.
fn insert_schema(fixture: &Fixture, values: &str) {
    fixture
        .writer()
        .execute_batch(&format!("PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ({values})"))
        .unwrap();
}

#[test]
fn what_this_build_lacks_is_named_and_the_rest_is_read() {
    let fixture = Fixture::named(KEYS, "series = SELECT * FROM generate_series(1, 3)");
    insert_schema(&fixture, "'table', 'place', 'place', 0, 'CREATE VIRTUAL TABLE place USING VirtualSpatialIndex()'");
    insert_schema(&fixture, "'table', 'vectors', 'vectors', 0, 'CREATE VIRTUAL TABLE vectors USING vec0(a float[3])'");
    fixture
        .writer()
        .execute_batch(
            "CREATE VIRTUAL TABLE chinese USING fts5(a, tokenize = porter); INSERT INTO chinese VALUES ('text');
             PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'porter', 'simple') WHERE name = 'chinese'",
        )
        .unwrap();
    insert_schema(&fixture, "'table', 'bare', 'bare', 0, 'CREATE VIRTUAL TABLE bare USING fts5(a)'");
    insert_schema(&fixture, "'view', 'own', 'own', 0, 'CREATE VIEW own AS SELECT my_function(b) AS x FROM plain'");
    for (table, words) in [
        ("place", "SpatiaLite"),
        ("vectors", "sqlite-vec"),
        ("bare", "missing or damaged"),
        ("own", "no such function: my_function"),
    ] {
        for reference in [format!("tables/{table}"), format!("schema/{table}")] {
            match fixture.sqlite.read(&reference) {
                Err(error) => assert!(error.to_string().contains(words), "{reference}: {error}"),
                Ok(_) => assert_eq!(reference, "schema/own"),
            }
        }
    }
    // Only a search needs the tokenizer.
    assert_eq!(rows(&fixture, "tables/chinese"), [json!({ "a": "text" })]);
    let search = fixture.fails("tables/chinese?match=text").to_string();
    assert!(search.contains("\"simple\""), "{search}");
    assert!(fixture.fails("views/series").to_string().contains("the program sqlite3"));
    assert_eq!(fixture.json("tables/numbered")["rows"].as_array().unwrap().len(), 3);
    let overview = fixture.json("");
    let place = overview["tables"].as_array().unwrap().iter().find(|table| table["name"] == "place").unwrap();
    assert!(place["error"].as_str().unwrap().contains("SpatiaLite"), "{place}");
    assert!(fixture.json("schema")["tables"].as_array().unwrap().len() > 8);
}

#[test]
fn unknown_collations_and_functions_leave_rows_readable() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Connection::open(dir.path().join("a.db")).unwrap();
    writer.create_collation("GERMAN", |one: &str, other: &str| other.cmp(one)).unwrap();
    let flags =
        rusqlite::functions::FunctionFlags::SQLITE_DETERMINISTIC | rusqlite::functions::FunctionFlags::SQLITE_UTF8;
    writer.create_scalar_function("twice", 1, flags, |context| Ok(context.get::<i64>(0)? * 2)).unwrap();
    writer
        .execute_batch(
            "CREATE TABLE names (name TEXT COLLATE GERMAN PRIMARY KEY, n INT); INSERT INTO names VALUES ('a', 1), ('b', 2), ('c', 3);
             CREATE TABLE tight (name TEXT COLLATE GERMAN PRIMARY KEY, n INT) WITHOUT ROWID; INSERT INTO tight SELECT * FROM names;
             CREATE TABLE made (n INT, m GENERATED ALWAYS AS (twice(n)) VIRTUAL); INSERT INTO made (n) VALUES (1), (2);
             CREATE INDEX by_twice ON names (twice(n));",
        )
        .unwrap();
    drop(writer);
    let store = Store::new(vec![("/db".to_owned(), dir.path().to_owned())], Some("a.db".to_owned()));
    let fixture = Fixture { sqlite: Sqlite::over(store, "", None).unwrap(), dir };
    assert_eq!(all(&fixture, "names", 2).len(), 3);
    let tight = fixture.fails("tables/tight");
    assert!(matches!(&tight, Error::Failed(why) if why.contains("\"GERMAN\"")), "{tight}");
    assert_eq!(rows(&fixture, "tables/names?where=n%3D2").len(), 1);
    let sorted = fixture.fails("tables/names?sort=name");
    assert!(matches!(&sorted, Error::Failed(why) if why.contains("\"GERMAN\"")), "{sorted}");
    let page = fixture.json("tables/made");
    assert_eq!((page["rows"].as_array().unwrap().len(), &page["rows"][1]["row"]), (2, &json!({ "n": 2 })));
    assert!(page["notice"].as_str().unwrap().contains("twice"), "{page}");
}

#[test]
fn every_key_that_is_given_is_taken() {
    let keys = "1, 2.5, 9e999, -9e999, -0.0, 1e300, 9007199254740993, -9223372036854775808, '', '1', '1.5', 'inf', 'NaN', '9e999',
        '007', 'a,b', 'it''s', 'x''00''', 't''61''', 'rowid=5', '.', '..', 'a/../b', 'a/b?c#d%2e&e=f', 'ü😀', '\"',
        ' a ', 'tab	line
', CAST(x'6100' AS TEXT), CAST(x'61ff' AS TEXT), x'', x'00ff', 'a\\b', 'NULL', '+', '%', '::', 'a b'";
    let one: Vec<String> = keys
        .split(", ")
        .flat_map(|line| line.split(",\n"))
        .map(|key| format!("({})", key.trim_start_matches(' ')))
        .collect();
    let values = one.join(", ");
    for kind in ["", "TEXT", "BLOB", "NUMERIC", "REAL", "INT", "TEXT COLLATE NOCASE", "VARCHAR(10)", "ANY"] {
        let fixture = Fixture::named(
            &format!(
                "CREATE TABLE source (k); INSERT INTO source VALUES {values};
                 CREATE TABLE a (k {kind} PRIMARY KEY, n); INSERT OR IGNORE INTO a SELECT k, rowid FROM source;
                 CREATE TABLE b (k {kind} PRIMARY KEY, n) WITHOUT ROWID; INSERT OR IGNORE INTO b SELECT k, rowid FROM source;
                 CREATE TABLE c (k {kind}, j {kind}, n, PRIMARY KEY (k, j)) WITHOUT ROWID;
                 INSERT OR IGNORE INTO c SELECT k, k, rowid FROM source; INSERT OR IGNORE INTO c SELECT k, 'a,b', rowid FROM source;"
            ),
            "",
        );
        for table in ["a", "b", "c"] {
            let found = all(&fixture, table, 3);
            assert!(found.len() > 20, "{kind} {table}: {}", found.len());
            let page = fixture.json(&format!("tables/{table}?limit=1000"));
            for row in page["rows"].as_array().unwrap() {
                let key = row["key"].as_str().unwrap();
                assert!(!key.starts_with("rowid=") && !name::is_refused(key), "{key}");
            }
        }
    }
}

#[test]
fn long_keys_do_not_end_the_pages() {
    let fixture = Fixture::named(
        "CREATE TABLE t (k TEXT PRIMARY KEY) WITHOUT ROWID;
         INSERT INTO t VALUES ('a'), ('b' || hex(zeroblob(1000))), ('c' || hex(zeroblob(1000))), ('d')",
        "",
    );
    for limit in 1..5 {
        assert_eq!(rows(&fixture, &format!("tables/t?limit={limit}")).len(), 4, "{limit}");
    }
}

#[test]
fn odd_names_are_listed_and_read() {
    let names =
        ["a\nb", "..", "a/../b", "", "select", "ü😀", "a%2Fb", "a?b#c", "it's", "tab\tx", "[x]", "`y`", "t'61'"];
    let sql: Vec<String> = names
        .iter()
        .map(|name| {
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            format!(
                "CREATE TABLE {quoted} ({quoted} TEXT); INSERT INTO {quoted} VALUES ('{}');",
                name.replace('\'', "''")
            )
        })
        .collect();
    let fixture = Fixture::named(&sql.concat(), "");
    let listed = fixture.sqlite.list_resources(None).unwrap().resources;
    let tables: Vec<_> = listed.iter().filter(|resource| resource.reference.starts_with("tables/")).collect();
    assert_eq!(tables.len(), names.len());
    for resource in tables {
        let page = fixture.json(&resource.reference);
        let name = page["table"].as_str().unwrap();
        assert!(names.contains(&name), "{name:?}");
        assert_eq!(page["rows"][0]["row"][name], name);
        let column = name::segment(name);
        assert_eq!(fixture.text(&format!("tables/{column}/rows/rowid=1/{column}")), name);
        assert_eq!(fixture.json(&format!("schema/{column}"))["name"], name);
    }
    assert_eq!(fixture.json("")["tables"].as_array().unwrap().len(), names.len());
}

#[test]
fn wide_tables_and_many_tables_are_read() {
    let columns: Vec<String> = (0..2000).map(|at| format!("c{at}")).collect();
    let values: Vec<String> = (0..2000).map(|at| format!("hex(zeroblob({}))", at % 900)).collect();
    let mut sql = format!("CREATE TABLE wide ({}); INSERT INTO wide VALUES ({});", columns.join(","), values.join(","));
    for at in 0..1000 {
        sql += &format!(
            "CREATE TABLE t{at:04} (a INTEGER PRIMARY KEY, b); CREATE VIEW v{at:04} AS SELECT b FROM t{at:04};"
        );
    }
    let fixture = Fixture::named(&sql, "");
    for reference in ["tables/wide", "tables/wide/rows/rowid=1"] {
        let text = fixture.text(reference);
        assert!(text.contains("\"c1999\"") && text.len() < 4 << 20, "{}", text.len());
    }
    assert_eq!(fixture.json("")["tables"].as_array().unwrap().len(), 2001);
    let first = fixture.sqlite.list_resources(None).unwrap();
    let second = fixture.sqlite.list_resources(first.next_cursor.as_deref()).unwrap();
    assert_eq!((first.resources.len(), second.resources.len()), (1000, 1000));
}

#[test]
fn files_that_are_no_databases_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    write("empty.db", b"");
    write("secret.db", &(0..4096_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    write("old.dat", b"** This file contains an SQLite 2.1 database **\0and more");
    write("other.txt", b"nothing");
    let sqlite = over(dir.path());
    let fixture = Fixture { sqlite, dir };
    let listed = fixture.sqlite.list_resources(None).unwrap().resources;
    let about = |name: &str| {
        let found = listed.iter().find(|resource| resource.reference == name).unwrap();
        found.description.clone().unwrap()
    };
    assert!(about("secret.db").contains("SQLCipher"), "{}", about("secret.db"));
    assert!(about("old.dat").contains("SQLite 2"), "{}", about("old.dat"));
    assert!(fixture.fails("secret.db/tables/x").to_string().contains("SQLCipher"));
    assert_eq!(fixture.json("empty.db/")["tables"], json!([]));
    assert_eq!(fixture.fails("other.txt/schema"), Error::NotFound);
}

#[test]
fn a_damaged_page_is_left_out() {
    let fixture = Fixture::named(
        "PRAGMA page_size = 1024; CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE TABLE good (a); INSERT INTO good VALUES (1);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) INSERT INTO t SELECT i, hex(zeroblob(100)) FROM n",
        "",
    );
    let page: i64 = fixture
        .writer()
        .query_row(
            "SELECT pageno FROM dbstat WHERE name = 't' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 20",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let path = fixture.dir.path().join("a.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = usize::try_from((page - 1) * 1024).unwrap();
    bytes[at..at + 1024].fill(0xab);
    std::fs::write(&path, bytes).unwrap();
    let (mut next, mut found, mut notices) = ("tables/t?limit=100".to_owned(), Vec::new(), Vec::new());
    loop {
        let page = fixture.json(&next);
        found.extend(page["rows"].as_array().unwrap().iter().map(|row| row["row"]["id"].as_i64().unwrap()));
        notices.extend(page["notice"].as_str().map(str::to_owned));
        match page["next"].as_str() {
            Some(reference) => next = reference.to_owned(),
            None => break,
        }
    }
    // A leaf of 1024 bytes holds four of these rows.
    assert!((490..500).contains(&found.len()) && found.contains(&500) && found.is_sorted(), "{}", found.len());
    assert!(
        notices.len() == 1 && notices[0].contains("cannot be read") && notices[0].contains("damaged"),
        "{notices:?}"
    );
    assert_eq!(rows(&fixture, "tables/good").len(), 1);
}

#[test]
fn a_damaged_schema_leaves_the_other_tables() {
    let fixture = Fixture::named(KEYS, "");
    insert_schema(&fixture, "'table', 'broken', 'broken', 2, 'CREATE TABLE broken (a, a b c d, UNKNOWN'");
    assert_eq!(fixture.json("tables/numbered")["rows"].as_array().unwrap().len(), 3);
    assert!(fixture.json("")["notice"].as_str().unwrap().contains("broken"), "{}", fixture.json(""));
    assert!(fixture.fails("tables/broken").to_string().contains("malformed database schema"));
    // The lenient mode does not let a caller write.
    snapshot::with(&fixture.sqlite.store.find("").unwrap(), |snapshot| {
        assert!(statement::prepare(snapshot, "DELETE FROM sqlite_schema").is_err());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_statement_that_is_not_utf8_is_named() {
    let fixture = Fixture::named(KEYS, "all = SELECT * FROM numbered");
    insert_schema(
        &fixture,
        "'table', 'odd', 'odd', 2, CAST(x'435245415445205441424c45206f646420286120ff2c20622920' AS TEXT)",
    );
    assert!(fixture.fails("tables/odd").to_string().contains("not UTF-8"));
    assert!(fixture.fails("views/all").to_string().contains("not UTF-8"));
    assert_eq!(fixture.json("tables/numbered")["rows"].as_array().unwrap().len(), 3);
    assert!(fixture.json("")["notice"].as_str().unwrap().contains("\"odd\""));
}

#[test]
fn page_sizes_encodings_and_kinds_of_tables_are_read() {
    for (size, encoding, vacuum) in [
        (512, "UTF-8", "NONE"),
        (65536, "UTF-16le", "FULL"),
        (8192, "UTF-16be", "INCREMENTAL"),
        (1024, "UTF-8", "FULL"),
    ] {
        let fixture = Fixture::named(
            &format!(
                "PRAGMA page_size = {size}; PRAGMA encoding = '{encoding}'; PRAGMA auto_vacuum = {vacuum}; {KEYS}
                 CREATE TABLE strict (a INTEGER PRIMARY KEY, b ANY, c TEXT) STRICT; INSERT INTO strict VALUES (1, '7', 'ü'), (2, 7, '€');
                 CREATE TABLE made (a INT, b TEXT AS (a || 'ü') STORED, c AS (a * 2)); INSERT INTO made (a) VALUES (1), (2);
                 CREATE VIEW quoted AS SELECT \"a text\" AS t FROM plain"
            ),
            "",
        );
        assert_eq!(all(&fixture, "strict", 1).len(), 2);
        assert_eq!(all(&fixture, "made", 1)[1], json!({ "a": 2, "b": "2ü", "c": 4 }));
        assert_eq!(all(&fixture, "texts", 1).len(), 4);
        assert_eq!(rows(&fixture, "tables/strict?where=c%3D%C3%BC").len(), 1);
        assert_eq!(rows(&fixture, "tables/strict?where=c~%E2%82%AC").len(), 1);
        assert_eq!(rows(&fixture, "tables/quoted")[0]["t"], "a text");
    }
}
