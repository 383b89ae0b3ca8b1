//! Tests of the selection of entries by time, level, text and day.

use super::*;

/// A log with entries of several lines in two files; the older one is compressed.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let older = [
        entry(0, "INFO start"),
        entry(60, "ERROR first"),
        "java.lang.Exception: broken\n\tat a.B(C.java:1)\n\tat a.D(E.java:2)\nCaused by: Disk full\n".to_owned(),
        entry(120, "WARN slow"),
    ];
    let newer = [
        "  a continuation across files\n".to_owned(),
        entry(180, "DEBUG detail"),
        entry(240, "FATAL gone"),
        "  end\n".to_owned(),
    ];
    fixture.write_packed("app.log.1.gz", older.concat());
    fixture.write("app.log", newer.concat());
    fixture
}

#[test]
fn entries_of_a_level_and_worse_have_all_their_lines() {
    let fixture = fixture();
    let expected = [
        "2026-11-21T10:01:00Z ERROR first",
        "java.lang.Exception: broken",
        "\tat a.B(C.java:1)",
        "\tat a.D(E.java:2)",
        "Caused by: Disk full",
        "2026-11-21T10:04:00Z FATAL gone",
        "  end",
    ];
    assert_eq!(fixture.lines("app.log?level=error"), expected);
    assert_eq!(fixture.lines("app.log?level=ERROR"), expected);
    assert_eq!(fixture.lines("app.log?level=fatal"), expected[5..]);
    // An entry that begins in one file and ends in the next.
    let warn = fixture.lines("app.log?level=warn");
    assert_eq!(warn[5..7], ["2026-11-21T10:02:00Z WARN slow", "  a continuation across files"]);
    assert_eq!(fixture.lines("app.log?level=trace").len(), 11);
}

#[test]
fn entries_are_returned_whole() {
    let fixture = fixture();
    assert_eq!(fixture.lines("app.log?level=error&lines=6").len(), 2);
    assert_eq!(fixture.lines("app.log?level=error&lines=7").len(), 7);
    // Only the newest entry may be cut.
    assert_eq!(
        fixture.lines("app.log?text=disk%20full&lines=2"),
        ["2026-11-21T10:01:00Z ERROR first", "java.lang.Exception: broken"]
    );
}

#[test]
fn text_is_found_in_any_line_of_an_entry_and_case_is_ignored() {
    let fixture = fixture();
    assert_eq!(fixture.lines("app.log?text=DISK").len(), 5);
    assert_eq!(fixture.lines("app.log?text=across&level=warn").len(), 2);
    assert_eq!(fixture.lines("app.log?text=across&level=error"), [""; 0]);
    fixture.write("other.log", "GR\u{dc}N one\nplain\n");
    assert_eq!(fixture.lines("other.log?text=gr%C3%BCn"), ["GR\u{dc}N one"]);
}

#[test]
fn since_takes_a_time_or_a_duration_before_now() {
    let fixture = fixture();
    assert_eq!(fixture.lines("app.log?since=2026-11-21T10:03:00Z").len(), 3);
    assert_eq!(fixture.lines("app.log?since=2026-11-21T11:03:00%2B01:00").len(), 3);
    assert_eq!(fixture.lines("app.log?since=2026-11-21T10:00:00Z&until=2026-11-21T10:01:00Z").len(), 1);
    // The clock of the fixture shows noon.
    assert_eq!(fixture.lines("app.log?since=117m").len(), 3);
    assert_eq!(fixture.lines("app.log?since=1h"), [""; 0]);
    assert_eq!(fixture.lines("app.log?since=1d").len(), 11);
    assert_eq!(fixture.lines("app.log?since=1d&level=fatal").len(), 2);
    assert_eq!(fixture.files("app.log?since=118m"), ["app.log", "app.log.1.gz"]);
}

#[test]
fn entries_that_are_a_little_out_of_order_are_found() {
    let fixture = Fixture::new();
    fixture.write("app.log", [entry(60, "a"), entry(61, "b"), entry(59, "late"), entry(62, "c")].concat());
    assert_eq!(fixture.lines("app.log?since=2026-11-21T10:01:00Z").len(), 3);
}

#[test]
fn since_fails_in_a_log_without_times() {
    let fixture = Fixture::new();
    fixture.write("app.log", numbered(0, 10));
    for reference in ["app.log?since=1h", "by-date/2026-11-21/app.log"] {
        let Err(Error::Invalid(why)) = fixture.logs.read(reference) else { panic!("{reference}") };
        assert!(why.contains("has a time in a known format") && why.contains("?lines="), "{why}");
    }
    fixture.write("empty.log", "");
    assert_eq!(fixture.text("empty.log?since=1h"), "");
}

/// Six days in three files of 20,000 entries; one file has four days. Each day is found whole, without reading the other
/// files.
#[test]
fn a_day_is_found_across_files() {
    let fixture = Fixture::with("", None, Some("+02:00"));
    let start: Timestamp = "2026-11-16T00:00:00+02:00".parse().unwrap();
    let lines = |first: u64, count: u64| -> String {
        (first..first + count).map(|n| format!("{} INFO entry {n}\n", start + Duration::from_secs(n * 60))).collect()
    };
    // 1440 a day.
    fixture.write_packed("app.log.2.gz", lines(0, 1000));
    fixture.write("app.log.1", lines(1000, 6000));
    fixture.write("app.log", lines(7000, 1640));
    for (day, first) in [("2026-11-16", 0), ("2026-11-17", 1440), ("2026-11-18", 2880), ("2026-11-20", 5760)] {
        let found = fixture.lines(&format!("by-date/{day}/app.log"));
        let numbers: Vec<u64> = found.iter().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(numbers, (first..first + 1440).collect::<Vec<_>>(), "{day}");
    }
    assert_eq!(fixture.files("by-date/2026-11-16/app.log"), ["app.log.1", "app.log.2.gz"]);
    assert_eq!(fixture.files("by-date/2026-11-18/app.log"), ["app.log.1"]);
    assert_eq!(fixture.lines("by-date/2026-11-18/app.log?lines=3").len(), 3);
    assert_eq!(fixture.lines("by-date/2026-11-30/app.log"), [""; 0]);
    let complete = |value, path: &str| {
        let resolved = [Argument::new("path", path)];
        fixture.logs.complete(DAY, &Argument::new("date", value), &resolved).unwrap().values
    };
    for (name, time) in
        [("app.log.2.gz", "2026-11-16T16:39:00Z"), ("app.log.1", "2026-11-20T16:39:00Z"), ("app.log", NOON)]
    {
        fixture.touch(name, time);
    }
    let days = ["2026-11-21", "2026-11-20", "2026-11-19", "2026-11-18", "2026-11-17", "2026-11-16"];
    assert_eq!(complete("", "app.log"), days);
    assert_eq!(complete("2026-11-2", ""), days[..2]);
    assert_eq!(complete("", "none.log"), [""; 0]);
}

#[test]
fn entries_in_other_forms_are_selected() {
    let fixture = Fixture::new();
    fixture.write(
        "json.log",
        "{\"level\":30,\"time\":1795255200000,\"msg\":\"a\"}\n{\"level\":50,\"time\":1795255260000,\"msg\":\"b\"}\n",
    );
    assert!(fixture.text("json.log?level=warn").contains("\"b\"") && fixture.lines("json.log?level=warn").len() == 1);
    assert_eq!(fixture.lines("json.log?since=2026-11-21T10:00:30Z").len(), 1);
    fixture.write("syslog", "<14>Nov 20 10:00:00 h a: x\n<11>Nov 21 10:00:00 h a: y\n");
    assert_eq!(fixture.lines("syslog?since=1d"), ["<11>Nov 21 10:00:00 h a: y"]);
    assert_eq!(fixture.lines("syslog?level=error").len(), 1);
    fixture.write(
        "access.log",
        "10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n10.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"GET \
         /x HTTP/1.1\" 200 1\n",
    );
    assert_eq!(fixture.lines("by-date/2026-11-20/access.log").len(), 1);
    fixture.write("plain.log", "ERROR: x\nTraceback:\n  File y\nINFO: z\n");
    assert_eq!(fixture.lines("plain.log?level=error"), ["ERROR: x", "Traceback:", "  File y"]);
}
