//! Tests of the tool and the prompt.

use belljar_guest::{Arguments, BlockBody, Context, Prompts as _, Tools as _};

use super::*;

/// The text and the structured result of `query`.
fn query(fixture: &Fixture, arguments: &Json) -> Result<(String, Json)> {
    let result = Sqlite::tools().call(&fixture.sqlite, "query", &arguments.to_string(), &Context::default())?;
    let result = result.done().unwrap();
    let [block] = result.content.as_slice() else { panic!("{result:?}") };
    let BlockBody::Text(text) = &block.body else { panic!("{block:?}") };
    Ok((text.clone(), serde_json::from_str(&result.structured.unwrap()).unwrap()))
}

fn invalid(fixture: &Fixture, arguments: &Json) -> String {
    match query(fixture, arguments) {
        Err(Error::Invalid(why)) => why,
        other => panic!("{arguments}: {other:?}"),
    }
}

#[test]
fn a_query_gives_a_table_twice() {
    let fixture = Fixture::named(KEYS, "");
    let sql = "SELECT id, name, NULL AS gap, name FROM numbered WHERE id > ? ORDER BY id";
    let (text, found) = query(&fixture, &json!({ "sql": sql, "parameters": [10] })).unwrap();
    let rows = json!([[20, "twenty", null, "twenty"], [30, "thirty", null, "thirty"]]);
    let columns = json!(["id", "name", "gap", "name:2"]);
    assert_eq!(found, json!({ "columns": columns, "rows": rows, "truncated": false }));
    assert_eq!(
        text,
        "| id | name | gap | name:2 |\n| --- | --- | --- | --- |\n| 20 | twenty | NULL | twenty |\n\
         | 30 | thirty | NULL | thirty |\n\n2 rows\n"
    );
    let (text, found) = query(&fixture, &json!({ "sql": sql, "parameters": [0], "limit": 1 })).unwrap();
    assert_eq!((found["rows"].as_array().unwrap().len(), &found["truncated"]), (1, &json!(true)));
    assert!(text.ends_with("the first 1 rows; there are more\n"), "{text}");
}

#[test]
fn parameters_keep_their_types() {
    let fixture = Fixture::named(KEYS, "");
    let types = "SELECT typeof(:a), typeof(@b), typeof($c), typeof(:d), :a";
    let given = json!({ "a": 1, "b": 1.5, "c": "1", "d": null });
    let (_, found) = query(&fixture, &json!({ "sql": types, "parameters": given })).unwrap();
    assert_eq!(found["rows"], json!([["integer", "real", "text", "null", 1]]));
    // A value is never a part of the statement.
    let name = json!({ "name": "ten'; DROP TABLE numbered; --" });
    let sql = "SELECT count(*) FROM numbered WHERE name = :name";
    let (_, found) = query(&fixture, &json!({ "sql": sql, "parameters": name })).unwrap();
    assert_eq!(found["rows"], json!([[0]]));
    for (parameters, expected) in [
        (json!(null), "expected values of name"),
        (json!([]), "has 0 values: expected 1"),
        (json!([1, 2]), "has 2 values: expected 1"),
        (json!({}), "has no \"name\""),
        (json!({ "name": 1, "other": 2 }), "no parameter \"other\": expected \"name\""),
        (json!({ "name": [1] }), "the parameter \"name\" is an array"),
        (json!("ten"), "neither an array nor an object"),
    ] {
        let why = invalid(&fixture, &json!({ "sql": sql, "parameters": parameters }));
        assert!(why.contains(expected), "{parameters}: {why}");
    }
    let why = invalid(&fixture, &json!({ "sql": "SELECT ?", "parameters": { "1": 2 } }));
    assert!(why.contains("expected \"parameters\" to be an array"), "{why}");
}

#[test]
fn a_query_only_reads() {
    let fixture = Fixture::named(KEYS, "");
    let before = std::fs::read(fixture.dir.path().join("a.db")).unwrap();
    for sql in [
        "DELETE FROM numbered",
        "DELETE FROM numbered RETURNING *",
        "WITH x AS (SELECT 1) UPDATE numbered SET name = 'x' RETURNING name",
        "INSERT INTO numbered VALUES (40, 'forty')",
        "CREATE TABLE made (a)",
        "CREATE TEMP TABLE made (a)",
        "DROP TABLE numbered",
        "ATTACH '/db/b.db' AS b",
        "VACUUM INTO '/db/b.db'",
        "PRAGMA query_only = OFF",
        "PRAGMA user_version = 7",
        "PRAGMA hard_heap_limit = 0",
        "SELECT * FROM pragma_hard_heap_limit(0)",
        "BEGIN EXCLUSIVE",
        "REINDEX",
        "SELECT load_extension('x')",
        "SELECT 1; DROP TABLE numbered",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
    ] {
        let why = invalid(&fixture, &json!({ "sql": sql }));
        assert!(why.contains("expected one SELECT"), "{sql}: {why}");
    }
    assert_eq!(std::fs::read(fixture.dir.path().join("a.db")).unwrap(), before);
    assert_eq!(std::fs::read_dir(fixture.dir.path()).unwrap().count(), 1);
    let why = invalid(&fixture, &json!({ "sql": "SELECT * FROM nowhere" }));
    assert!(why.contains("expected one of") && why.contains("\"numbered\""), "{why}");
    for limit in [0, 1001] {
        let why = invalid(&fixture, &json!({ "sql": "SELECT 1", "limit": limit }));
        assert!(why.contains("from 1 to 1000"), "{why}");
    }
}

#[test]
fn a_query_stops_at_its_bounds() {
    let fixture = Fixture::named(KEYS, "");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    assert!(matches!(query(&fixture, &json!({ "sql": endless })), Err(Error::Failed(why)) if why.contains("stopped")));
    let wide =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) SELECT hex(zeroblob(1500)) FROM n";
    let (_, found) = query(&fixture, &json!({ "sql": wide, "limit": 1000 })).unwrap();
    let rows = found["rows"].as_array().unwrap();
    assert!(found["truncated"] == true && (10..900).contains(&rows.len()), "{}", rows.len());
}

#[test]
fn one_of_several_databases_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let make =
        |name: &str| Connection::open(dir.path().join(name)).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    make("one.db");
    let fixture = Fixture { sqlite: over(dir.path()), dir };
    let sql = json!({ "sql": "SELECT * FROM t" });
    assert!(query(&fixture, &sql).is_ok());
    Connection::open(fixture.dir.path().join("two.db")).unwrap().execute_batch("CREATE TABLE u (a)").unwrap();
    let why = invalid(&fixture, &sql);
    assert_eq!(why, "\"database\" is missing: expected one of \"one.db\", \"two.db\"");
    assert!(query(&fixture, &json!({ "sql": "SELECT * FROM u", "database": "two.db" })).is_ok());
    let why = invalid(&fixture, &json!({ "sql": "SELECT 1", "database": "../two.db" }));
    assert!(why.contains("there is no database \"../two.db\""), "{why}");
    let table = Argument::new("table", "");
    let complete = |resolved: &[Argument]| fixture.sqlite.complete_prompt("explore", &table, resolved).unwrap().values;
    assert_eq!(complete(&[]), [""; 0]);
    assert_eq!(complete(&[Argument::new("database", "two.db")]), ["u"]);
    let named = Fixture::named(KEYS, "");
    assert!(query(&named, &json!({ "sql": "SELECT 1", "database": "a.db" })).is_ok());
    assert!(invalid(&named, &json!({ "sql": "SELECT 1", "database": "b.db" })).contains("expected \"a.db\""));
}

#[test]
fn explore_attaches_the_schema() {
    let fixture = Fixture::named(KEYS, "");
    let explore = |arguments: &Arguments| {
        let result = Sqlite::prompts().get(&fixture.sqlite, "explore", arguments, &Context::default())?;
        let messages = result.done().unwrap().messages;
        let attached = messages.into_iter().skip(1).map(|message| match message.block.body {
            BlockBody::Embedded(contents) => contents,
            other => panic!("{other:?}"),
        });
        Ok(attached.collect::<Vec<_>>())
    };
    let attached = explore(&Arguments::default()).unwrap();
    let references: Vec<&str> = attached.iter().map(|contents| contents.reference.as_str()).collect();
    assert_eq!(references, ["", "schema.sql"]);
    let attached = explore(&Arguments::from([("table", "numbered")])).unwrap();
    let Body::Text(rows) = &attached[1].body else { panic!("{attached:?}") };
    assert!(attached[0].reference == "schema/numbered" && rows.contains("twenty"), "{attached:?}");
    let unknown = explore(&Arguments::from([("table", "none")]));
    assert!(matches!(&unknown, Err(Error::Invalid(why)) if why.contains("\"numbered\"")), "{unknown:?}");
    let table = fixture.sqlite.complete_prompt("explore", &Argument::new("table", "P"), &[]).unwrap();
    assert_eq!(table.values, ["pairs", "plain"]);
}

#[test]
fn the_definition_is_short() {
    let tools = Sqlite::tools().list();
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    let input = tool.input.as_deref().unwrap();
    assert!(input.contains(r#""type":["array","object"]"#), "{input}");
    let length = tool.description.len() + input.len() + tool.output.as_ref().map_or(0, String::len);
    // About 180 tokens.
    assert!(length < 800, "{length}: {tool:?}");
}
