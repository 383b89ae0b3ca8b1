//! Tests of parts: rows as lines, the last rows, directories, and the sheets of a workbook.

use belljar_guest::{Extent, PartialReading, Parts as _, Range, Unit};

use super::*;

fn part(fixture: &Fixture, reference: &str, range: Option<Range>) -> (String, Option<Extent>) {
    let PartialReading { contents, extent, .. } = fixture.tables.read_part(reference, range, 8 << 20).unwrap();
    let [contents] = contents.as_slice() else { panic!("{contents:?}") };
    let Body::Text(text) = &contents.body else { panic!("{contents:?}") };
    (text.clone(), extent)
}

#[test]
fn lines_are_rows() {
    let fixture = Fixture::new();
    let rows: String = (1..=250).map(|n| format!("{n},\"name {n}\"\n")).collect();
    fixture.write("a.csv", format!("id,name\n{rows}"));
    let (text, extent) = part(&fixture, "a.csv", Some(Range::lines(9, 12)));
    assert!(text.contains("| 10 | 10 |") && text.contains("| 12 | 12 |") && !text.contains("| 13 |"), "{text}");
    assert_eq!(extent, Some(Extent::new(Unit::Lines, 9, 12, 250)));
    let (text, extent) = part(&fixture, "a.csv", Some(Range::last_lines(3)));
    assert!(text.contains("| 248 | 248 |") && text.contains("| 250 | 250 |"), "{text}");
    assert_eq!(extent, Some(Extent::new(Unit::Lines, 247, 250, 250)));
    // Without a range, the first rows; a whole table has no extent.
    assert_eq!(part(&fixture, "a.csv", None).1, Some(Extent::new(Unit::Lines, 0, 100, 250)));
    assert_eq!(part(&fixture, "a.csv?rows=1-5", None).1, None);
    assert_eq!(part(&fixture, "orders.xlsx/Orders", None).1, None);
    let (text, _) = part(&fixture, "measures.parquet?columns=id", Some(Range::last_lines(2)));
    assert!(text.contains("| 999 | 998 |\n| 1000 | 999 |"), "{text}");
    let (text, _) = part(&fixture, "orders.xlsx/Orders", Some(Range::last_lines(1)));
    assert!(text.contains("| 3 | 3 | third<br>line |") && !text.contains("| 2 | 2 |"), "{text}");
    for (reference, range, why) in [
        ("a.csv", Range::bytes(0, 10), "?lines=1-100"),
        ("a.csv?rows=1", Range::lines(0, 1), "leave out"),
        ("a.csv?where=id=1", Range::last_lines(1), "matching rows"),
    ] {
        let Err(Error::Invalid(found)) = fixture.tables.read_part(reference, Some(range), 1 << 20) else { panic!() };
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn a_page_that_does_not_fit_has_fewer_rows() {
    let fixture = Fixture::new();
    let rows: String = (1..=100).map(|n| format!("{n},{}\n", "x".repeat(500))).collect();
    fixture.write("a.csv", format!("id,text\n{rows}"));
    let reading = fixture.tables.read_part("a.csv", None, 20_000).unwrap();
    let extent = reading.extent.unwrap();
    assert!(reading.contents[0].body.len() <= 20_000 && extent.end >= 10 && extent.more, "{extent:?}");
}

#[test]
fn directories_and_workbooks_list_what_is_below() {
    let fixture = Fixture::new();
    fixture.write("sub/a.csv", SALES);
    fixture.write("sub/deep/b.csv", SALES);
    fixture.write("sub/notes.txt", "no table");
    let names = |reference: &str| -> Vec<String> {
        let page = fixture.tables.list_below(reference, None).unwrap();
        page.resources.into_iter().map(|resource| resource.reference).collect()
    };
    assert!(names("").contains(&"sub/".to_owned()) && names("").contains(&"orders.xlsx".to_owned()));
    assert_eq!(names("sub/"), ["sub/a.csv", "sub/deep/"]);
    assert!(names("orders.xlsx").contains(&"orders.xlsx/Orders".to_owned()));
    assert_eq!(fixture.tables.list_below("sub/a.csv", None).map(|_| ()), Err(Error::NotFound));
    assert_eq!(fixture.tables.list_below("none/", None).map(|_| ()), Err(Error::NotFound));
}

#[test]
fn a_directory_is_walked_by_pages() {
    let fixture = Fixture::new();
    for n in 0..1005 {
        fixture.write(&format!("many/{n:04}.csv"), "a\n1\n");
    }
    let first = fixture.tables.list_below("many/", None).unwrap();
    let rest = fixture.tables.list_below("many/", first.next_cursor.as_deref()).unwrap();
    assert_eq!((first.resources.len(), rest.resources.len(), &rest.next_cursor), (1000, 5, &None));
    assert_eq!(rest.resources[0].reference, "many/1000.csv");
}
