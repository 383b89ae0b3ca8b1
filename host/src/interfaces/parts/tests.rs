//! The position of a part, and secrets that lie across its ends.

use std::sync::Arc;

use super::*;
use crate::grants::secrets::Secret;
use crate::model::{Body, Contents};

const TEXT: &str = "first line\nthe password is hunter2-hunter2, they say\nlast line\n";
const SECRET: &str = "hunter2-hunter2";

/// A provider that answers a call for `query` honestly, on a mount with a secret.
fn read(query: &str) -> (String, Part) {
    let secret = Secret::new("word", SECRET.to_owned().into()).unwrap();
    let redactor = Redactor::new([&Arc::new(secret)]).unwrap();
    let mut call = ReadPart::new(&format!("a.txt?{query}")).unwrap();
    call.prepare(ReplyLimits { result: 1 << 20, longest_secret: redactor.longest() });
    let asked = window::widened(call.range.unwrap(), call.margin);
    let total = match asked.unit {
        Unit::Bytes => TEXT.len(),
        Unit::Lines => TEXT.lines().count(),
    } as u64;
    let (start, end) = match asked.positions {
        Positions::Span { start, end } => (start.min(total), end.unwrap_or(total).min(total)),
        Positions::Last(count) => (total.saturating_sub(count), total),
    };
    let text = match asked.unit {
        Unit::Bytes => TEXT[start as usize..end as usize].to_owned(),
        Unit::Lines => TEXT.split_inclusive('\n').skip(start as usize).take((end - start) as usize).collect(),
    };
    let extent = Part { unit: asked.unit, start, end, total: Some(total), more: end < total, requested: call.range };
    let contents =
        Contents { reference: "a.txt".to_owned(), mime_type: None, body: Body::Text(text), meta: Vec::new() };
    let reading = Reading { contents: vec![contents], ..Reading::default() };
    let mut reply = PartReply { reading, extent: Some(extent), margin: call.margin };
    ReadPart::redact(&mut reply, Some(&redactor));
    let Body::Text(text) = reply.reading.contents.remove(0).body else { panic!("a blob") };
    (text, reply.extent.unwrap())
}

#[test]
fn no_range_shows_a_piece_of_a_secret() {
    let at = TEXT.find(SECRET).unwrap();
    for start in 0..TEXT.len() {
        for length in [1, 5, 20] {
            let end = (start + length).min(TEXT.len());
            let (text, part) = read(&format!("bytes={start}-{}", end - 1));
            let expected: String = TEXT
                .char_indices()
                .filter(|(place, _)| (start..end).contains(place))
                .map(|(place, c)| if (at..at + SECRET.len()).contains(&place) { '*' } else { c })
                .collect();
            assert_eq!(text, expected, "{start} {length}");
            assert_eq!((part.start, part.end, part.more), (start as u64, end as u64, end < TEXT.len()));
        }
    }
}

#[test]
fn lines_and_last_positions_are_cut_to_the_request() {
    assert_eq!(read("lines=1-1").0, "first line\n");
    assert_eq!(read("lines=2-2").0, format!("the password is {}, they say\n", "*".repeat(SECRET.len())));
    let (text, part) = read("lines=-1");
    assert_eq!((text.as_str(), part.start, part.end, part.more), ("last line\n", 2, 3, false));
    assert_eq!(read("bytes=-5").0, "line\n");
}

#[test]
fn an_extent_must_be_possible() {
    let part = |start, end, total, more| Part { unit: Unit::Bytes, start, end, total, more, requested: None };
    assert!(check_extent(&part(0, 5, Some(9), true), None).is_ok());
    for bad in [part(5, 0, None, false), part(0, 9, Some(5), false), part(0, 5, Some(5), true)] {
        assert!(matches!(check_extent(&bad, None), Err(ReadError::BadOutput(_))), "{bad:?}");
    }
    let lines = Range { unit: Unit::Lines, positions: Positions::Last(1) };
    assert!(matches!(check_extent(&part(0, 5, None, false), Some(lines)), Err(ReadError::BadOutput(_))));
}
