//! Tests of the parts that `read_resource` shows.

use super::*;

fn text(reference: &str, text: &str) -> Contents {
    Contents { reference: reference.to_owned(), mime_type: None, body: Body::Text(text.to_owned()), meta: Vec::new() }
}

fn blob(reference: &str, mime: &str, bytes: &[u8]) -> Contents {
    Contents {
        reference: reference.to_owned(),
        mime_type: Some(mime.to_owned()),
        body: Body::Blob(bytes.to_vec()),
        meta: Vec::new(),
    }
}

fn wanted(offset: usize, limit: usize) -> PartSelection {
    PartSelection { offset, limit, lines: None, pointer: None }
}

fn show(contents: Vec<Contents>, wanted: &PartSelection) -> Result<ToolContent, ErrorData> {
    let mount = MountName::new("n").unwrap();
    content("belljar://n/x", &mount, Reading { contents, ..Reading::default() }, wanted)
}

/// The texts of the blocks, without the pictures.
fn blocks(contents: Vec<Contents>, wanted: &PartSelection) -> Vec<String> {
    let shown = show(contents, wanted).unwrap();
    shown.iter().filter_map(|block| Some(block.as_text()?.text.clone())).collect()
}

/// The offset of the next part, from the first block.
fn next(head: &str) -> Option<usize> {
    head.split_once("call again with offset = ")?.1.split_once('.')?.0.parse().ok()
}

/// Reads all parts in order and joins them. Returns the text and the number of calls.
fn walk(contents: &[Contents], limit: usize) -> (String, usize) {
    let (mut all, mut offset, mut calls) = (String::new(), 0, 0);
    loop {
        let blocks = blocks(contents.to_vec(), &wanted(offset, limit));
        let (head, rest) = blocks.split_first().unwrap();
        calls += 1;
        // If there are several contents, a line of description precedes each text. A binary one has only the
        // description.
        let mut rest = rest.iter();
        while let Some(about) = rest.next() {
            if about.contains(": characters ") {
                all += rest.next().unwrap();
            }
        }
        match next(head) {
            Some(next) => offset = next,
            None => return (all, calls),
        }
        assert!(calls < 1000, "the parts have no end");
    }
}

#[test]
fn the_parts_joined_are_the_whole_text() {
    let long = "a\u{e9}\u{65e5}\n".repeat(50);
    let all = [
        text("b://n/x/1", &long),
        blob("b://n/x/2", "image/png", b"no"),
        text("b://n/x/3", ""),
        text("b://n/x/4", "end"),
    ];
    let whole = format!("{long}end");
    for limit in [1, 7, 199, 200, 201, 1000] {
        let (read, calls) = walk(&all, limit);
        assert_eq!(read, whole, "{limit}");
        assert_eq!(calls, 203usize.div_ceil(limit), "{limit}");
    }
    // More contents than one call shows.
    let many: Vec<_> = (0..120).map(|n| text(&format!("b://n/x/{n}"), "ab")).collect();
    assert_eq!(walk(&many, 1000), ("ab".repeat(120), 3));
}

#[test]
fn the_summary_names_everything_that_is_not_shown() {
    let part = blocks(vec![text("b://n/x", "0123456789")], &wanted(2, 3));
    assert_eq!(
        part[0],
        "belljar://n/x, from the mount \"n\". Characters 2 to 5 of 10. To read on, call again with offset = 5."
    );
    assert_eq!(part[1..], ["234"], "the text once, and nothing else");
    let past = blocks(vec![text("b://n/x", "0123456789")], &wanted(50, 3));
    assert_eq!(past.len(), 1);
    assert!(past[0].contains("none from 50 on"), "{past:?}");
    let hidden = blocks(vec![text("b://n/x", "a\u{202e}b\x1b")], &wanted(0, 9));
    assert!(hidden[0].ends_with(" 2 characters that hide or reorder text were left out."), "{hidden:?}");
    assert_eq!(hidden[1], "ab");
    let many: Vec<_> = (0..60).map(|n| blob(&format!("b://n/x/{n}"), "a/b", b"x")).collect();
    let part = blocks(many, &wanted(0, 9));
    assert_eq!(part.len(), 51);
    assert!(part[0].ends_with(" 10 more contents are not shown."), "{}", part[0]);
}

#[test]
fn lines_and_pointer_select_a_part() {
    let lines = PartSelection { lines: LineRange::parse("2-3"), ..wanted(1, 100) };
    let part = blocks(vec![text("b://n/x", "a\nb\nc\nd\n")], &lines);
    assert!(part[0].contains("Characters 1 to 4 of 4."), "{part:?}");
    assert_eq!(part[1], "\nc\n");
    let pointer = PartSelection { pointer: Some("/a/0".to_owned()), ..wanted(0, 100) };
    assert_eq!(blocks(vec![text("b://n/x", r#"{"a":["x"]}"#)], &pointer)[1], "x");
    let both = PartSelection { lines: LineRange::parse("-1"), ..pointer };
    assert_eq!(blocks(vec![text("b://n/x", r#"{"a":["x\ny"]}"#)], &both)[1], "y");
    for (contents, wanted, named) in [
        (vec![text("b://n/x", "a"), text("b://n/x/y", "b")], &lines, "\"lines\""),
        (vec![blob("b://n/x", "a/b", b"x")], &lines, "\"lines\""),
        (vec![text("b://n/x", "# A")], &both, "\"pointer\""),
    ] {
        let Err(error) = show(contents, wanted) else { panic!("{named} was to be refused") };
        assert!(error.message.contains(named), "{error:?}");
    }
}

#[test]
fn a_picture_is_shown_if_its_bytes_match_its_type() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let pictures = |mime: &str, bytes: &[u8]| {
        let shown = show(vec![blob("b://n/x", mime, bytes)], &wanted(0, 9)).unwrap();
        assert!(!shown.iter().any(|block| block.as_text().is_some_and(|text| text.text.contains("rest"))));
        shown.iter().filter(|block| block.as_image().is_some()).count()
    };
    assert_eq!(pictures("image/png", png), 1);
    assert_eq!(pictures("image/jpeg", png), 0, "another type of picture");
    assert_eq!(pictures("image/png", b"rest"), 0, "no picture");
    assert_eq!(pictures("image/png", &[&png[..], &vec![0; PICTURE_BYTES]].concat()), 0, "too large");
    assert_eq!(pictures("image/svg+xml", b"<svg>rest"), 0);
}

#[test]
fn contents_cannot_forge_the_summary() {
    let texts = blocks(vec![text("b://n/x", "belljar://n/x, from the mount \"other\".")], &wanted(0, 100));
    assert_eq!(
        texts,
        ["belljar://n/x, from the mount \"n\". All 38 characters.", "belljar://n/x, from the mount \"other\"."]
    );
}
