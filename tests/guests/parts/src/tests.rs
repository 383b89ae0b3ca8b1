//! The parts of each resource joined give the whole, and lists have the promised entries.

use belljar_guest::{Body, Error, Page, PartialReading, Parts, Provider, Range, Unit};

use crate::PartsGuest;

fn read(reference: &str, range: impl Into<Option<Range>>, most: u64) -> PartialReading {
    PartsGuest.read_part(reference, range.into(), most).unwrap()
}

fn bytes(reading: &PartialReading) -> Vec<u8> {
    match &reading.contents[0].body {
        Body::Text(text) => text.clone().into_bytes(),
        Body::Blob(bytes) => bytes.clone(),
    }
}

#[test]
fn parts_joined_are_the_whole() {
    for reference in ["small.txt", "empty.txt", "lines/100", "stream/100", "blob/5000"] {
        let whole = bytes(&read(reference, None, 1 << 20));
        for most in [7, 64, 1000] {
            let (mut at, mut joined) = (0, Vec::new());
            loop {
                let part = read(reference, Range::bytes(at, None), most);
                assert!(bytes(&part).len() as u64 <= most, "{reference} {most}");
                joined.extend(bytes(&part));
                let extent = part.extent.unwrap();
                assert_eq!((extent.unit, extent.start), (Unit::Bytes, at));
                at = extent.end;
                if !extent.more {
                    break;
                }
            }
            assert_eq!(joined, whole, "{reference} {most}");
        }
    }
}

#[test]
fn a_part_of_4_gib_is_computed_alone() {
    let last = read("lines/67108864", Range::last_lines(1), 1 << 20);
    assert_eq!(bytes(&last), format!("line 067108863 {}\n", ".".repeat(48)).into_bytes());
    let first = read("lines/67108864", None, 1000);
    assert_eq!(bytes(&first).len(), 960);
    assert!(first.extent.unwrap().more);
    let stream = read("stream/67108864", Range::lines(5, 6), 1000);
    assert!(stream.extent.unwrap().total.is_none() && bytes(&stream).starts_with(b"line 000000005 "));
}

#[test]
fn units_that_a_resource_does_not_have_are_refused() {
    for (reference, range) in [("blob/9", Range::lines(0, 1)), ("rows/9", Range::bytes(0, 1))] {
        let refused = PartsGuest.read_part(reference, Some(range), 100);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let rows = read("rows/9", Range::lines(8, None), 100);
    assert_eq!(bytes(&rows), br#"[{"row": 0000000000000000000008}]"#);
    assert_eq!(rows.extent.unwrap().total, Some(9));
}

#[test]
fn each_file_of_the_list_is_there_with_its_size() {
    for file in PartsGuest.list_resources(None).unwrap().resources {
        let part = read(&file.reference, None, 1 << 20);
        let total = part.extent.and_then(|extent| extent.total);
        match file.size {
            Some(size) => assert_eq!(total.unwrap_or(bytes(&part).len() as u64), size, "{}", file.reference),
            None => assert!(part.extent.unwrap().more),
        }
    }
}

#[test]
fn directories_are_listed_by_pages() {
    let all = |reference: &str| {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let Page { resources, next_cursor, .. } = PartsGuest.list_below(reference, cursor.as_deref()).unwrap();
            assert!(resources.len() <= 1000);
            all.extend(resources.into_iter().map(|one| one.reference));
            cursor = next_cursor;
            if cursor.is_none() {
                return all;
            }
        }
    };
    let dir = all("dir/");
    assert_eq!((dir.len(), dir[0].as_str(), dir[2].as_str()), (2502, "dir/deep/", "dir/0000000.txt"));
    assert_eq!(all("crowd").last().unwrap(), "crowd/0999999.txt");
    assert_eq!(all("")[..2], ["blob/9437184", "crowd/"]);
    assert_eq!(all("dir/empty/"), [""; 0]);
    assert_eq!(PartsGuest.list_below("none/", None), Err(Error::NotFound));
}
