//! Tests of parts of values and of rows, and of the lists below a reference.

use belljar_guest::Extent;

use super::*;

fn part(fixture: &Fixture, reference: &str, range: Option<Range>, most: u64) -> PartialReading {
    fixture.sqlite.read_part(reference, range, most).unwrap_or_else(|error| panic!("{reference}: {error}"))
}

fn body(reading: &PartialReading) -> &[u8] {
    match &reading.contents[0].body {
        Body::Text(text) => text.as_bytes(),
        Body::Blob(bytes) => bytes,
    }
}

const VALUES: &str = "
    CREATE TABLE plain (id INTEGER PRIMARY KEY, x);
    CREATE TABLE keyed (id TEXT PRIMARY KEY, x) WITHOUT ROWID;
    CREATE VIEW seen AS SELECT * FROM plain;
    CREATE TABLE made (id INTEGER PRIMARY KEY, a, x GENERATED ALWAYS AS (a || 'ü') VIRTUAL);
    INSERT INTO plain VALUES (1, 'aüb€c😀d'), (2, CAST(x'61ff62' AS TEXT)), (3, x'00010203'), (4, 'one
two
three'), (5, ''), (6, zeroblob(20000000));
    INSERT INTO keyed SELECT id, x FROM plain WHERE id < 6; INSERT INTO keyed VALUES ('6', zeroblob(20000000));
    INSERT INTO made VALUES (1, 'xyz');";

#[test]
fn parts_of_a_value_join_to_the_value() {
    for encoding in ["UTF-8", "UTF-16le"] {
        let fixture = Fixture::named(&format!("PRAGMA encoding = '{encoding}'; {VALUES}"), "");
        for table in ["plain", "keyed"] {
            for (row, whole) in [(1, "aüb€c😀d".as_bytes()), (3, b"\0\x01\x02\x03"), (4, b"one\ntwo\nthree"), (5, b"")]
            {
                let reference = format!("tables/{table}/rows/{row}/x");
                assert_eq!(body(&part(&fixture, &reference, None, 100)), whole, "{reference}");
                for most in 4..9 {
                    let (mut at, mut joined) = (0, Vec::new());
                    loop {
                        let reading = part(&fixture, &reference, Some(Range::bytes(at, None)), most);
                        let extent = reading.extent.unwrap();
                        joined.extend_from_slice(body(&reading));
                        assert!(extent.start == at && (extent.end > at || !extent.more), "{reference}: {extent:?}");
                        at = extent.end;
                        if !extent.more {
                            break;
                        }
                    }
                    assert_eq!(joined, whole, "{encoding} {reference} {most}");
                }
            }
            let lines = part(&fixture, &format!("tables/{table}/rows/4/x"), Some(Range::lines(1, 2)), 100);
            assert_eq!(
                (body(&lines), lines.extent),
                (&b"two\n"[..], Some(Extent::new(belljar_guest::Unit::Lines, 1, 2, 3)))
            );
            let last = part(&fixture, &format!("tables/{table}/rows/3/x"), Some(Range::last_bytes(2)), 100);
            assert_eq!(body(&last), b"\x02\x03");
            let no_lines = fixture.sqlite.read_part(&format!("tables/{table}/rows/3/x"), Some(Range::lines(0, 1)), 100);
            assert!(matches!(&no_lines, Err(Error::Invalid(why)) if why.contains("?bytes=")), "{no_lines:?}");
        }
        assert_eq!(body(&part(&fixture, "tables/made/rows/1/x", Some(Range::bytes(3, None)), 100)), "ü".as_bytes());
    }
}

#[test]
fn a_large_value_gives_its_first_part() {
    let fixture = Fixture::named(VALUES, "");
    for table in ["plain", "keyed"] {
        let reference = format!("tables/{table}/rows/6/x");
        let first = part(&fixture, &reference, None, 1 << 20);
        assert_eq!(first.extent, Some(Extent::new(belljar_guest::Unit::Bytes, 0, 1 << 20, 20_000_000)));
        let last = part(&fixture, &reference, Some(Range::last_bytes(10)), 1 << 20);
        assert_eq!((body(&last).len(), last.extent.unwrap().start), (10, 19_999_990));
        assert_eq!(fixture.json(&format!("tables/{table}/rows/6"))["row"]["x"]["read"], json!(reference));
    }
    assert_eq!(body(&part(&fixture, "tables/plain/rows/2/x", None, 100)), b"a\xffb");
    assert_eq!(body(&part(&fixture, "tables/plain/rows/2/x", Some(Range::bytes(1, 2)), 100)), b"\xff");
}

#[test]
fn the_lines_of_a_page_are_its_rows() {
    let fixture = Fixture::named(KEYS, "all = SELECT id FROM numbered ORDER BY id");
    for reference in ["tables/numbered", "views/all"] {
        let reading = part(&fixture, reference, Some(Range::lines(1, 2)), 1 << 20);
        let page: Json = serde_json::from_slice(body(&reading)).unwrap();
        let row = &page["rows"][0];
        assert_eq!(if row["row"].is_object() { &row["row"]["id"] } else { &row["id"] }, 20, "{page}");
        let extent = reading.extent.unwrap();
        assert_eq!((extent.start, extent.end, extent.more), (1, 2, true));
        assert!(!part(&fixture, reference, Some(Range::lines(2, None)), 1 << 20).extent.unwrap().more);
        let last = fixture.sqlite.read_part(reference, Some(Range::last_lines(2)), 1 << 20);
        assert!(matches!(&last, Err(Error::Invalid(why)) if why.contains("sort=-id")), "{last:?}");
        let bytes = part(&fixture, reference, Some(Range::bytes(0, 10)), 1 << 20);
        assert_eq!(bytes.extent.unwrap().end, 10);
    }
    let cut = part(&fixture, "schema.sql", None, 100);
    assert!(cut.extent.unwrap().more && body(&cut).len() <= 100);
}

#[test]
fn directories_are_listed_below_a_reference() {
    let fixture = Fixture::named(KEYS, "all = SELECT 1");
    let below = |sqlite: &Sqlite, reference: &str| {
        let page = sqlite.list_below(reference, None).unwrap_or_else(|error| panic!("{reference}: {error}"));
        page.resources.into_iter().map(|resource| resource.reference).collect::<Vec<_>>()
    };
    assert_eq!(below(&fixture.sqlite, ""), ["", "schema", "schema.sql", "tables/", "views/"]);
    assert_eq!(below(&fixture.sqlite, "views/"), ["views/all"]);
    assert_eq!(below(&fixture.sqlite, "tables/").len(), 7);
    assert_eq!(fixture.sqlite.list_below("none/", None), Err(Error::NotFound));

    let dir = tempfile::tempdir().unwrap();
    for name in ["a.db", "b\nc.db", "a b-1.db"] {
        Connection::open(dir.path().join(name)).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    }
    let several = over(dir.path());
    assert_eq!(below(&several, ""), ["a%20b-1.db/", "a.db/", "t'620a632e6462'/"]);
    assert_eq!(below(&several, "t'620a632e6462'/tables/"), ["t'620a632e6462'/tables/t"]);
    assert!(several.read("t'620a632e6462'/tables/t").is_ok());
    assert_eq!(several.list_below("c.db/", None), Err(Error::NotFound));
    // The pages of the list are the list.
    let (mut cursor, mut all) = (None, Vec::new());
    loop {
        let page = several.list_resources(cursor.as_deref()).unwrap();
        all.extend(page.resources.into_iter().map(|resource| resource.reference));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(all.len(), 13, "{all:?}");
}
