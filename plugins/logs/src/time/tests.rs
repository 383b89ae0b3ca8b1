//! Tests of the forms of times, in lines and in queries.

use super::*;

fn calendar() -> Calendar {
    Calendar { zone: zone("Europe/Berlin").unwrap(), now: "2026-11-21T12:00:00Z".parse().unwrap() }
}

fn time(line: &str) -> Option<String> {
    let calendar = calendar();
    find(line)?.time(&calendar, calendar.now).map(|time| time.to_string())
}

#[test]
fn the_usual_forms_of_times_are_parsed() {
    for (line, expected) in [
        ("2026-11-21T10:00:00Z x", "2026-11-21T10:00:00Z"),
        ("2026-11-21T10:00:00.123456789Z stdout F x", "2026-11-21T10:00:00.123456789Z"),
        ("2026-11-21T10:00:00+01:00 x", "2026-11-21T09:00:00Z"),
        ("2026-11-21T10:00:00.5-0330 x", "2026-11-21T13:30:00.5Z"),
        ("2026-11-21 10:00:00,123 INFO x", "2026-11-21T09:00:00.123Z"),
        ("2026-07-21 10:00:00 in summer", "2026-07-21T08:00:00Z"),
        ("2026-11-21 10:00:00,123 - name - INFO - x", "2026-11-21T09:00:00.123Z"),
        ("2026-11-21 10:00:00 +0000: x", "2026-11-21T10:00:00Z"),
        ("2026-11-21 10:00:00.123 UTC [12] LOG:  x", "2026-11-21T10:00:00.123Z"),
        ("2026.11.21 10:00:00.1234567891234 x", "2026-11-21T09:00:00.123456789Z"),
        ("2026-11-21T10:00:00.1234567891234Z x", "2026-11-21T10:00:00.123456789Z"),
        ("2026-11-21 10:00 x", "2026-11-21T09:00:00Z"),
        ("2026/11/21 10:00:00 [error] x", "2026-11-21T09:00:00Z"),
        ("[2026-11-21 10:00:00] local.ERROR: x", "2026-11-21T09:00:00Z"),
        ("[ERROR] 2026-11-21 10:00:00 x", "2026-11-21T09:00:00Z"),
        ("E, [2026-11-21T10:00:00.123456 #1] ERROR -- : x", "2026-11-21T09:00:00.123456Z"),
        ("time=\"2026-11-21T10:00:00Z\" level=info", "2026-11-21T10:00:00Z"),
        ("web_1  | 2026-11-21T10:00:00Z x", "2026-11-21T10:00:00Z"),
        ("<165>1 2026-11-21T10:00:00.003Z host app - - - x", "2026-11-21T10:00:00.003Z"),
        ("Nov 21 10:00:00 host app[1]: x", "2026-11-21T09:00:00Z"),
        ("<11>Nov  1 10:00:00 host app[1]: x", "2026-11-01T09:00:00Z"),
        // This day of the current year is in the future, so the entry is from last year.
        ("Dec 31 10:00:00 host app[1]: x", "2025-12-31T09:00:00Z"),
        ("[Sat Nov 21 10:00:00.123456 2026] [core:error] x", "2026-11-21T09:00:00Z"),
        ("10.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"GET /\"", "2026-11-21T10:00:00Z"),
        ("21-Nov-2026 10:00:00.123 INFO x", "2026-11-21T09:00:00Z"),
        ("20261121 10:00:00 x", "2026-11-21T09:00:00Z"),
        ("20261121T100000Z x", "2026-11-21T10:00:00Z"),
        ("E1121 10:00:00.123456   1 a.go:1] x", "2026-11-21T09:00:00Z"),
        ("1795255200.123 x", "2026-11-21T10:00:00.123Z"),
        ("11-21 10:00:00.811  1702  2395 D WindowManager: x", "2026-11-21T09:00:00Z"),
        ("[11.21 10:00:06] chrome.exe - x", "2026-11-21T09:00:06Z"),
        ("- 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50.363779 x", "2005-06-03T22:42:50Z"),
        ("APPREAD 1117869872 2005.06.04 R04 x", "2005-06-04T07:24:32Z"),
        ("134681 node-246 unix.hw state_change.unavailable 1077804742 1 x", "2004-02-26T14:12:22Z"),
        ("081109 203615 148 INFO dfs.DataNode: x", "2008-11-09T19:36:15Z"),
        ("201121 10:00:00 [Note] x", "2020-11-21T09:00:00Z"),
        ("20171223-22:15:29:606|Step_LSC|30002312|x", "2017-12-23T21:15:29.606Z"),
        ("20171224-0:5:7:12|Step_LSC|30002312|x", "2017-12-23T23:05:07.012Z"),
        ("17/06/09 20:10:40 INFO executor.Backend: x", "2017-06-09T18:10:40Z"),
        ("nova-compute.log.1.2017-05-16_13:55:31 2017-05-16 00:00:04.500 2931 INFO x", "2017-05-15T22:00:04.5Z"),
        ("2016-09-28 04:30:30, Info                  CBS    x", "2016-09-28T02:30:30Z"),
        ("[Sun Dec 04 04:47:44 2005] [notice] x", "2005-12-04T03:47:44Z"),
        ("Sun Dec  4 04:47:44 2005 x", "2005-12-04T03:47:44Z"),
        ("Sun Dec  4 04:47:44 UTC 2005: x", "2005-12-04T04:47:44Z"),
        ("Nov 1, 2026 1:02:03 PM org.x.Y run", "2026-11-01T12:02:03Z"),
        ("11/21/2026 10:00:00 AM x", "2026-11-21T09:00:00Z"),
        ("[1/2/2026, 1:02:03 PM] x", "2026-01-02T12:02:03Z"),
        ("12345:M 21 Nov 2026 10:00:00.123 * Ready", "2026-11-21T09:00:00Z"),
        ("CEF:0|V|P|1|100|N|5|src=1.2.3.4 rt=1795255200000 x=y", "2026-11-21T10:00:00Z"),
        ("E20261121 10:00:00.123456   1 a.go:1] x", "2026-11-21T09:00:00Z"),
        ("*Nov 21 10:00:00.123: %SYS-5-CONFIG_I: x", "2026-11-21T09:00:00Z"),
    ] {
        assert_eq!(time(line).as_deref(), Some(expected), "{line}");
    }
}

#[test]
fn other_texts_give_no_time() {
    for line in [
        // One slash, and words in the places of a time and a half of a day.
        "2/ [ A",
        "11/21 1:00 AM",
        "11/21/2026/7 1:00:00 AM",
        "",
        "x",
        "192.168.10.10 12345678",
        "2026-11-21",
        "2026-13-41 10:00:00 x",
        "99/Nov/2026:10:00:00",
        "May 99 10:00:00 x",
        "see the report of the accident that happened here long ago: 2026-11-21 10:00:00",
        "1234567 x",
        "99-99 10:00:00 x",
        "x 1117838570 host",
        "17/06/09 x",
        "5/6/2026 10:00:00 x",
        "20171223-x",
    ] {
        assert_eq!(time(line), None, "{line}");
    }
    assert!(find("10:00:00.123 INFO x").is_some() && time("10:00:00.123 INFO x").is_none());
}

#[test]
fn the_magnitude_of_a_number_decides_its_unit() {
    for number in [1_795_255_200.0, 1_795_255_200e3, 1_795_255_200e6, 1_795_255_200e9] {
        assert_eq!(of_number(number).map(|time| time.to_string()).as_deref(), Some("2026-11-21T10:00:00Z"));
    }
    for number in [0.0, -1.0, 12.5, 1e30, f64::NAN, f64::INFINITY] {
        assert_eq!(of_number(number), None, "{number}");
    }
}

#[test]
fn a_query_may_give_a_duration_before_now() {
    let calendar = calendar();
    let moment = |text| calendar.moment(text).map(|time| time.to_string());
    for (text, expected) in [
        ("15m", "2026-11-21T11:45:00Z"),
        ("2h", "2026-11-21T10:00:00Z"),
        ("1d", "2026-11-20T12:00:00Z"),
        ("1h30m", "2026-11-21T10:30:00Z"),
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ("2026-11-21T10:00:00+01:00", "2026-11-21T09:00:00Z"),
        ("2026-11-21T10:00", "2026-11-21T09:00:00Z"),
        ("2026-11-21", "2026-11-20T23:00:00Z"),
    ] {
        assert_eq!(moment(text).as_deref(), Some(expected), "{text}");
    }
    for text in ["", "yesterday", "-15m", "15", "m", "10:00", "15m ago", "99999999999y"] {
        assert_eq!(moment(text), None, "{text}");
    }
}

#[test]
fn zones_have_names_or_offsets() {
    assert!(zone("UTC").is_some() && zone("America/New_York").is_some() && zone("+05:30").is_some());
    assert!(zone("Mars/Olympus").is_none() && zone("Z").is_none() && zone("").is_none());
}
