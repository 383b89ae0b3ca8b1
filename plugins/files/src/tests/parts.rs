//! Tests of parts of files.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use belljar_guest::{Extent, Unit};

use super::*;

fn part(fixture: &Fixture, reference: &str, range: impl Into<Option<Range>>, most: u64) -> (Body, Option<Extent>) {
    let mut read = fixture.files.read_part(reference, range.into(), most).unwrap();
    assert_eq!(read.contents.len(), 1);
    (read.contents.remove(0).body, read.extent)
}

fn refused(fixture: &Fixture, reference: &str, range: Range, most: u64) -> String {
    match fixture.files.read_part(reference, Some(range), most) {
        Err(Error::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn text(body: Body) -> String {
    match body {
        Body::Text(text) => text,
        Body::Blob(bytes) => panic!("{bytes:?}"),
    }
}

#[test]
fn a_file_over_the_limit_gives_its_first_part_up_to_a_line_end() {
    let fixture = Fixture::new("");
    fixture.write("a.txt", "one\ntwo\nthree");
    let whole = part(&fixture, "a.txt", None, 13);
    assert_eq!(whole, (Body::Text("one\ntwo\nthree".to_owned()), None));
    let first = part(&fixture, "a.txt", None, 10);
    assert_eq!(first, (Body::Text("one\ntwo\n".to_owned()), Some(Extent::new(Unit::Bytes, 0, 8, 13))));
    fixture.write("line", "grün grün");
    assert_eq!(part(&fixture, "line", None, 3).1, Some(Extent::new(Unit::Bytes, 0, 2, 11)));
    fixture.write("blob", [0xff, b'\n', 0xfe, 0xfd]);
    assert_eq!(
        part(&fixture, "blob", None, 3),
        (Body::Blob(vec![0xff, b'\n', 0xfe]), Some(Extent::new(Unit::Bytes, 0, 3, 4)))
    );
}

/// Follows the parts of a file to its end.
fn joined(fixture: &Fixture, reference: &str, unit: fn(u64, Option<u64>) -> Range, most: u64) -> (Vec<u8>, usize) {
    let (mut all, mut start, mut parts) = (Vec::new(), 0, 0);
    loop {
        let (body, extent) = part(fixture, reference, unit(start, None), most);
        let extent = extent.unwrap();
        assert_eq!(extent.start, start);
        assert!(body.len() as u64 <= most.max(4));
        match body {
            Body::Text(text) => all.extend_from_slice(text.as_bytes()),
            Body::Blob(bytes) => all.extend_from_slice(&bytes),
        }
        parts += 1;
        if !extent.more {
            return (all, parts);
        }
        assert!(extent.end > start);
        start = extent.end;
    }
}

#[test]
fn the_parts_of_a_file_are_the_file() {
    let fixture = Fixture::new("");
    let mixed = "grün, 日本語, 😀\r\nand plain\n\n\nlast line without an end".repeat(20);
    fixture.write("text", &mixed);
    fixture.write("blob", (0..=255).cycle().take(1000).collect::<Vec<u8>>());
    fixture.write("empty", "");
    for most in [1, 2, 3, 5, 64, 1_000_000] {
        let bytes = |start, end: Option<u64>| Range::bytes(start, end);
        for name in ["text", "blob", "empty"] {
            let expected = fs::read(fixture.dir.path().join(name)).unwrap();
            assert_eq!(joined(&fixture, name, bytes, most).0, expected, "{name} by {most}");
        }
    }
    for most in [200, 1_000_000] {
        let lines = |start, end: Option<u64>| Range::lines(start, end);
        assert_eq!(joined(&fixture, "text", lines, most).0, mixed.as_bytes());
    }
}

#[test]
fn parts_of_text_end_between_characters() {
    let fixture = Fixture::new("");
    fixture.write("a", "a日b");
    for (start, end, expected) in [
        (0, 5, (0, 5, "a日b")),
        (0, 2, (0, 1, "a")),
        (0, 4, (0, 4, "a日")),
        (2, 5, (1, 5, "日b")),
        (3, 4, (1, 4, "日")),
        (2, 3, (1, 4, "日")),
        (4, 99, (4, 5, "b")),
        (9, 12, (5, 5, "")),
    ] {
        let (body, extent) = part(&fixture, "a", Range::bytes(start, end), 100);
        let (from, to, words) = expected;
        assert_eq!((text(body), extent.unwrap()), (words.to_owned(), Extent::new(Unit::Bytes, from, to, 5)));
    }
    assert_eq!(text(part(&fixture, "a", Range::last_bytes(1), 100).0), "b");
    // These bytes are no character, so the part is what was requested.
    fixture.write("odd", [b'a', 0x80, 0x80, 0x80, 0x80, b'b']);
    assert_eq!(
        part(&fixture, "odd", Range::bytes(2, 5), 100),
        (Body::Blob(vec![0x80; 3]), Some(Extent::new(Unit::Bytes, 2, 5, 6)))
    );
}

#[test]
fn lines_are_counted_from_both_ends() {
    let fixture = Fixture::new("");
    let all: Vec<String> = (1..=90_000).map(|n| format!("line {n}\n")).collect();
    fixture.write("a", all.concat());
    fixture.write("open", all.concat().trim_end());
    for name in ["a", "open"] {
        for (start, end) in [(0, 1), (5, 9), (29_999, 30_001), (89_990, 90_000)] {
            let (body, extent) = part(&fixture, name, Range::lines(start, end), 1 << 20);
            let (from, to) = (usize::try_from(start).unwrap(), usize::try_from(end).unwrap());
            assert_eq!(text(body).trim_end(), all[from..to].concat().trim_end());
            let extent = extent.unwrap();
            assert_eq!((extent.start, extent.end, extent.more), (start, end, end < 90_000), "{name}");
        }
        for count in [1, 7, 20_000, 100_000] {
            let (body, extent) = part(&fixture, name, Range::last_lines(count), 1 << 21);
            let first = 90_000_usize.saturating_sub(usize::try_from(count).unwrap());
            assert_eq!(text(body).trim_end(), all[first..].concat().trim_end());
            let extent = extent.unwrap();
            assert_eq!((extent.start, extent.end, extent.total), (first as u64, 90_000, Some(90_000)), "{name}");
        }
        let beyond = part(&fixture, name, Range::lines(100_000, None), 1 << 20);
        assert_eq!(beyond, (Body::Text(String::new()), Some(Extent::new(Unit::Lines, 90_000, 90_000, 90_000))));
    }
    assert_eq!(part(&fixture, "a", Range::last_lines(0), 100).0, Body::Text(String::new()));
    let cut = part(&fixture, "a", Range::lines(0, 5), 16);
    assert_eq!(cut, (Body::Text("line 1\nline 2\n".to_owned()), Some(Extent::open(Unit::Lines, 0, 2, true))));
}

#[test]
fn counting_lines_ends_after_a_time_with_the_way_out() {
    use std::os::unix::fs::FileExt as _;

    let fixture = Fixture::new("");
    let file = fs::File::create(fixture.dir.path().join("a")).unwrap();
    let at = 1 << 40;
    file.write_all_at(b"\nlast but one\nlast\n", at).unwrap();
    let why = refused(&fixture, "a", Range::last_lines(2), 1 << 20);
    let from = at + 1;
    assert!(why.ends_with(&format!("with ?bytes={from}-")), "{why}");
    assert_eq!(text(part(&fixture, "a", Range::bytes(from, None), 1 << 20).0), "last but one\nlast\n");
    assert!(refused(&fixture, "a", Range::lines(5, 6), 1 << 20).contains("read by bytes, with ?bytes="));
}

#[test]
fn lines_that_cannot_be_read_are_refused_with_the_way_out() {
    let fixture = Fixture::new("");
    fixture.write("long", format!("short\n{}\n", "x".repeat(100)));
    assert!(refused(&fixture, "long", Range::lines(1, 2), 50).ends_with("with ?bytes=6-55"));
    assert_eq!(text(part(&fixture, "long", Range::lines(0, 2), 50).0), "short\n");
    fixture.write("blob", [0xff, b'\n']);
    assert!(refused(&fixture, "blob", Range::lines(0, 1), 50).contains("?bytes=0-65535"));
    assert!(matches!(fixture.files.read_part("long?x=1", None, 50), Err(Error::Invalid(_))));
}

#[test]
fn a_directory_is_read_in_parts_too() {
    let fixture = Fixture::new("");
    for n in 0..20 {
        fixture.write(&format!("{n:02}"), "");
    }
    let whole = text(part(&fixture, "", None, 1 << 20).0);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let (body, extent) = part(&fixture, "", Range::lines(2, 5), 1 << 20);
    assert_eq!(text(body), lines[2..5].concat());
    assert_eq!(extent.unwrap().total, Some(lines.len() as u64));
    assert!(part(&fixture, "", None, 100).1.unwrap().more);
}

/// Tells a writing thread to end, also when the test fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_read_never_mixes_two_states_of_a_file_that_is_overwritten() {
    use std::os::unix::fs::FileExt as _;
    use std::time::Instant;

    /// A provider takes a file for finished if nobody has written to it for twice this time. The writer may measure such a
    /// pause as the end of one write and the beginning of the next, so one of them is at least this long.
    const PAUSE: Duration = Duration::from_millis(5);

    let fixture = Fixture::new("");
    let size = 600_000;
    fixture.write("a", vec![b'a'; size]);
    let path = fixture.dir.path().join("a");
    // The states that are written, and the pauses of the writer in them: on a busy machine, it may not run.
    let (done, written, paused) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let (mut whole, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::File::options().write(true).open(path).unwrap();
            let mut last = Instant::now();
            // The writer rests after some states only, so that reads meet states that follow at once too.
            for (state, letter) in (b'a'..=b'z').cycle().enumerate() {
                if done.load(Ordering::SeqCst) {
                    break;
                }
                let bytes = vec![letter; size];
                for (n, chunk) in bytes.chunks(50_000).enumerate() {
                    // Two reads fit into this time: a state is not finished because two reads gave the same.
                    if n == 6 {
                        std::thread::sleep(PAUSE / 2);
                    }
                    file.write_all_at(chunk, n as u64 * 50_000).unwrap();
                    let now = Instant::now();
                    if now - last > PAUSE {
                        paused.fetch_add(1, Ordering::SeqCst);
                    }
                    last = now;
                }
                written.fetch_add(1, Ordering::SeqCst);
                if state % 4 == 0 {
                    std::thread::sleep(PAUSE * 5);
                    last = Instant::now();
                }
            }
        });
        let _end = EndOnDrop(&done);
        for _ in 0..100 {
            let pauses = paused.load(Ordering::SeqCst);
            match fixture.files.read_part("a", None, 1 << 20) {
                Ok(read) => {
                    let Body::Text(text) = &read.contents[0].body else { panic!("a blob") };
                    if !text.bytes().all(|byte| byte == text.as_bytes()[0]) {
                        // Nobody can tell a writer that pauses from one that has finished.
                        let states = written.load(Ordering::SeqCst);
                        while written.load(Ordering::SeqCst) < states + 2 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        assert!(paused.load(Ordering::SeqCst) > pauses, "two states");
                        continue;
                    }
                    whole += 1;
                }
                Err(Error::Unavailable(why)) => {
                    assert!(why.contains("read it again"));
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert!(whole > 0, "{refused} reads were refused");
}

#[test]
fn a_file_that_only_grows_is_read() {
    let fixture = Fixture::new("");
    fixture.write("a", "x\n");
    let path = fixture.dir.path().join("a");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write as _;
            let mut file = fs::File::options().append(true).open(path).unwrap();
            while !done.load(Ordering::SeqCst) {
                file.write_all(b"x\n").unwrap();
            }
        });
        let _end = EndOnDrop(&done);
        for _ in 0..50 {
            assert!(fixture.files.read_part("a", None, 1 << 20).is_ok());
        }
    });
}
