//! Ranges as URIs write them.

use super::*;

fn span(unit: Unit, start: u64, end: impl Into<Option<u64>>) -> Range {
    Range { unit, positions: Positions::Span { start, end: end.into() } }
}

#[test]
fn a_range_is_taken_out_of_the_query() {
    let last = |unit, count| Range { unit, positions: Positions::Last(count) };
    for (given, rest, range) in [
        ("a.txt", "a.txt", None),
        ("a.txt?x=1", "a.txt?x=1", None),
        ("a.txt?bytes=0-65535", "a.txt", Some(span(Unit::Bytes, 0, 65536))),
        ("a.txt?x=1&bytes=7-7&y", "a.txt?x=1&y", Some(span(Unit::Bytes, 7, 8))),
        ("a.txt?lines=1-200", "a.txt", Some(span(Unit::Lines, 0, 200))),
        ("a.txt?lines=201-", "a.txt", Some(span(Unit::Lines, 200, None))),
        ("a.txt?lines=-20", "a.txt", Some(last(Unit::Lines, 20))),
        ("?bytes=-1", "", Some(last(Unit::Bytes, 1))),
        ("a?bytes=0-18446744073709551615", "a", Some(span(Unit::Bytes, 0, u64::MAX))),
        ("app.log?lines=200", "app.log?lines=200", None),
        ("a?bytes", "a?bytes", None),
        ("a?Bytes=1-2", "a?Bytes=1-2", None),
    ] {
        assert_eq!(Range::split(given), Ok((rest.into(), range)), "{given}");
        // What is written is read again.
        if let Some(range) = range {
            assert_eq!(Range::split(&range.of(rest)), Ok((rest.into(), Some(range))), "{given}");
        }
    }
}

#[test]
fn a_malformed_range_is_refused_in_words() {
    for query in
        ["bytes=a-b", "bytes=5-2", "lines=0-5", "bytes=-", "lines=1-2-3", "bytes=99999999999999999999-", "bytes=+1-2"]
    {
        let why = Range::split(&format!("a?{query}")).unwrap_err().to_string();
        assert!(why.contains(query) && why.contains("expected"), "{query}: {why}");
    }
    assert_eq!(Range::split("a?bytes=0-1&lines=1-2"), Err(RangeError::Several));
}

#[test]
fn the_next_part_continues_the_request() {
    let part = |end, more, requested| Part { unit: Unit::Bytes, start: 0, end, total: Some(100), more, requested };
    let next = |part: Part| part.next().map(|range| range.to_string());
    let asked = Some(span(Unit::Bytes, 0, 10));
    assert_eq!(next(part(10, true, asked)).as_deref(), Some("bytes=10-19"));
    assert_eq!(next(part(4, true, asked)).as_deref(), Some("bytes=4-9"), "the rest of the span comes first");
    assert_eq!(next(part(60, true, None)).as_deref(), Some("bytes=60-"));
    assert_eq!(next(part(100, false, None)), None);
    assert_eq!(part(10, true, None).to_string(), "bytes 0 to 9 of 100");
    assert_eq!(part(0, false, None).to_string(), "no bytes of 100");
}
