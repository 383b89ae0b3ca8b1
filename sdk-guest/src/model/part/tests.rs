//! Cutting: the parts of a text joined give the text, in every unit and at every size.

use super::*;

fn cut(text: &str, range: impl Into<Option<Range>>, most: u64) -> (String, Option<Extent>) {
    let mut reading = PartialReading::cut(Contents::text("a", text), range.into(), most).unwrap();
    match reading.contents.remove(0).body {
        Body::Text(text) => (text, reading.extent),
        Body::Blob(_) => panic!("bytes"),
    }
}

#[test]
fn what_fits_is_whole_and_what_does_not_ends_at_a_line() {
    assert_eq!(cut("one\ntwo\n", None, 8), ("one\ntwo\n".to_owned(), None));
    let first = Extent { unit: Unit::Bytes, start: 0, end: 4, total: Some(8), more: true };
    assert_eq!(cut("one\ntwo\n", None, 7), ("one\n".to_owned(), Some(first)));
}

#[test]
fn parts_in_bytes_join_to_the_text_whatever_their_size() {
    let text = "aé\u{20ac}\u{1f514}\nb";
    for most in 1..12 {
        let (mut at, mut joined) = (0, String::new());
        loop {
            let (part, extent) = cut(text, Range::bytes(at, None), most);
            let extent = extent.unwrap();
            joined.push_str(&part);
            if !extent.more {
                break;
            }
            assert!(extent.end > at, "{extent:?}");
            at = extent.end;
        }
        assert_eq!(joined, text, "{most}");
    }
}

#[test]
fn lines_are_counted_from_both_ends() {
    let text = "1\n2\n3\n4";
    assert_eq!(cut(text, Range::lines(1, 3), 100).0, "2\n3\n");
    assert_eq!(cut(text, Range::last_lines(2), 100), ("3\n4".to_owned(), Some(Extent::new(Unit::Lines, 2, 4, 4))));
    assert_eq!(cut(text, Range::lines(9, None), 100), (String::new(), Some(Extent::new(Unit::Lines, 4, 4, 4))));
    assert_eq!(cut(text, Range::lines(0, None), 4), ("1\n2\n".to_owned(), Some(Extent::new(Unit::Lines, 0, 2, 4))));
    assert_eq!(cut(text, Range::last_bytes(3), 100).0, "3\n4");
}

#[test]
fn lines_that_cannot_be_given_are_refused_in_words() {
    let long = PartialReading::cut(Contents::text("a", "12345"), Some(Range::lines(0, None)), 4);
    let Err(Error::Invalid(why)) = long else { panic!("{long:?}") };
    assert!(why.contains("line 1 has 5 bytes") && why.contains("?bytes="), "{why}");
    let blob = PartialReading::cut(Contents::blob("a", [0, 159]), Some(Range::lines(0, None)), 4);
    assert!(matches!(blob, Err(Error::Invalid(_))), "{blob:?}");
}
