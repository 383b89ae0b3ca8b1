//! Tests of filters, orders, and pages that end early.

use super::*;

const GOODS: &str = "
    CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT, price REAL, any, note TEXT);
    INSERT INTO goods VALUES (1, 'Apple', 1.5, 7, NULL), (2, 'apple pie', 10, '7', ''), (3, 'Öl', 20.0, 'x', 'cold'),
        (4, 'pear', NULL, NULL, 'a and b'), (5, '100', 9.0, x'07', 'it''s'), (6, 'apple', 10, 8.5, NULL);
    CREATE INDEX by_price ON goods (price);
    CREATE TABLE pairs (x TEXT, y INT, z, PRIMARY KEY (x, y)) WITHOUT ROWID;
    INSERT INTO pairs VALUES ('a', 1, 3), ('a', 2, 1), ('b', 1, NULL), ('b', 2, 1), ('c', 1, 2);
    CREATE VIEW cheap AS SELECT name, price FROM goods WHERE price < 15;";

fn ids(fixture: &Fixture, query: &str) -> Vec<i64> {
    let encoded = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) => format!("{name}={}", reference::encode_segment(value)),
        None => pair.to_owned(),
    });
    let whole = format!("tables/goods?{}", encoded.collect::<Vec<_>>().join("&"));
    let mut found = Vec::new();
    for limit in [1, 2, 100] {
        found.push(
            rows(fixture, &format!("{whole}&limit={limit}")).iter().map(|row| row["id"].as_i64().unwrap()).collect(),
        );
    }
    let [one, two, all]: [Vec<i64>; 3] = found.try_into().unwrap();
    assert_eq!((&one, &two), (&all, &all), "{query}");
    all
}

#[test]
fn filters_select_rows() {
    let fixture = Fixture::named(GOODS, "");
    for (query, expected) in [
        ("where=price>9", vec![2, 3, 6]),
        ("where=price >= 9 and price<20", vec![2, 5, 6]),
        ("where=price>=9&where=name~APPLE", vec![2, 6]),
        ("where=name=apple", vec![6]),
        ("where=name~öL", vec![3]),
        ("where=name!~apple", vec![3, 4, 5]),
        ("where=name!=apple", vec![1, 2, 3, 4, 5]),
        ("where=name=100", vec![5]),
        ("where=any=7", vec![1, 2]),
        ("where=any='7'", vec![2]),
        ("where=any>7", vec![6]),
        ("where=any>a", vec![3]),
        ("where=price!=10", vec![1, 3, 4, 5]),
        ("where=price is empty", vec![4]),
        ("where=note is not empty", vec![3, 4, 5]),
        ("where=note=", vec![1, 2, 6]),
        ("where=note!=", vec![3, 4, 5]),
        ("where=note=a and b", vec![4]),
        ("where=note=it's", vec![5]),
        ("where=name=x' OR 1=1 --", vec![]),
        ("where=ID=3", vec![3]),
    ] {
        assert_eq!(ids(&fixture, query), expected, "{query}");
    }
    let error = fixture.fails("tables/goods?where=weight%3E3");
    assert!(matches!(&error, Error::Invalid(why) if why.contains("weight>3") && why.contains("\"price\"")), "{error}");
    assert_eq!(rows(&fixture, "tables/cheap?where=price%3E9&limit=1").len(), 2);
    assert_eq!(rows(&fixture, "tables/pairs?where=y%3D1&limit=1").len(), 3);
}

#[test]
fn orders_page_through_equal_and_empty_values() {
    let fixture = Fixture::named(GOODS, "");
    for (query, expected) in [
        ("sort=price", vec![4, 1, 5, 2, 6, 3]),
        ("sort=-price", vec![3, 2, 6, 5, 1, 4]),
        ("sort=-id", vec![6, 5, 4, 3, 2, 1]),
        ("sort=-rowid", vec![6, 5, 4, 3, 2, 1]),
        ("sort=note,-price", vec![6, 1, 2, 4, 3, 5]),
        ("sort=-price,-id&where=price>1", vec![3, 6, 2, 5, 1]),
    ] {
        assert_eq!(ids(&fixture, query), expected, "{query}");
    }
    let pairs = rows(&fixture, "tables/pairs?sort=-z&limit=1");
    let pairs: Vec<String> = pairs.iter().map(|row| format!("{}{}", row["x"].as_str().unwrap(), row["y"])).collect();
    assert_eq!(pairs, ["a1", "c1", "a2", "b2", "b1"]);
    let names = rows(&fixture, "tables/cheap?sort=-name&limit=2");
    assert_eq!(
        names.iter().map(|row| row["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["apple pie", "apple", "Apple", "100"]
    );
    let error = fixture.fails("tables/goods?sort=price&after=77");
    assert!(matches!(&error, Error::Invalid(why) if why.contains("without \"after\"")), "{error}");
    assert!(matches!(fixture.fails("tables/goods?sort=weight"), Error::Invalid(_)));
}

#[test]
fn a_filter_uses_an_index() {
    let fixture = Fixture::named(GOODS, "");
    let plan = |query: &str| -> String {
        let (_, address) = Address::parse(query, false).unwrap();
        let Address::Page { wanted, .. } = address else { panic!("{query}") };
        snapshot::with(&fixture.sqlite.store.find("").unwrap(), |snapshot| {
            let table = Table::find(snapshot, "goods")?;
            let condition = filter::condition(&snapshot.connection, &table, &wanted.filters)?;
            let sql = format!("EXPLAIN QUERY PLAN SELECT id FROM goods{}", condition.clause());
            // The authorizer of the snapshot does not allow EXPLAIN to a caller either way: another connection explains.
            let writer = fixture.writer();
            let mut statement = writer.prepare(&sql).unwrap();
            let values = rusqlite::params_from_iter(&condition.values);
            Ok(statement.query_row(values, |row| row.get::<_, String>(3)).unwrap())
        })
        .unwrap()
    };
    for query in [
        "tables/goods?where=price%3D10",
        "tables/goods?where=price%3E10",
        "tables/goods?where=any%20is%20empty%20and%20price%3D1",
    ] {
        assert!(plan(query).contains("by_price"), "{query}: {}", plan(query));
    }
    assert!(plan("tables/goods?where=name%3Dx").starts_with("SCAN"));
}

#[test]
fn a_view_has_pages() {
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2155)";
    let fixture = Fixture::named(
        &format!(
            "CREATE TABLE t (i, text); {many} INSERT INTO t SELECT i, hex(zeroblob(350)) FROM n;
             CREATE VIEW v AS SELECT * FROM t"
        ),
        "all = SELECT * FROM t WHERE i > :from ORDER BY i\nown = SELECT i FROM t LIMIT 5 OFFSET :skip",
    );
    for reference in
        ["views/all?from=0&limit=1000", "views/all?from=0&limit=7", "tables/v?limit=1000", "tables/v?limit=900"]
    {
        let found = rows(&fixture, reference);
        assert_eq!(
            found.iter().map(|row| row["i"].as_i64().unwrap()).collect::<Vec<_>>(),
            (1..=2155).collect::<Vec<_>>()
        );
    }
    // A page of long rows is shorter than its limit.
    let page = fixture.json("views/all?from=0&limit=1000");
    assert!((1..1000).contains(&page["rows"].as_array().unwrap().len()));
    // The view's own parameter comes first.
    let page = fixture.json("views/own?skip=3&limit=2");
    assert_eq!((&page["rows"][0]["i"], &page["next"], &page["cut"]), (&json!(4), &Json::Null, &json!(true)));
}

#[test]
fn a_search_of_a_large_table_goes_on() {
    // Two million steps are about 200,000 rows.
    let fixture = Fixture::named(
        "CREATE TABLE big (id INTEGER PRIMARY KEY, a INT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400000) INSERT INTO big SELECT i * 3, i FROM n",
        "",
    );
    let mut next = "tables/big?where=a%20%21~x%20and%20a%3E399990".to_owned();
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = fixture.json(&next);
        found.extend(page["rows"].as_array().unwrap().iter().map(|row| row["row"]["a"].as_i64().unwrap()));
        pages += 1;
        match page["next"].as_str() {
            Some(reference) => next = reference.to_owned(),
            None => break,
        }
        assert!(page["notice"].as_str().unwrap().contains("goes on"), "{page}");
        assert!(pages < 20);
    }
    assert_eq!(found, (399_991..=400_000).collect::<Vec<_>>());
    assert!(pages > 1);
    let error = fixture.fails("tables/big?sort=-a&where=a%20%21~x");
    assert!(matches!(&error, Error::Failed(why) if why.contains("index")), "{error}");
}
