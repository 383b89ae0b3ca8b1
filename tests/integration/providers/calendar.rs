//! `plugins/calendar`, written in TypeScript, in the real server: thousands of events within the default limits, repeated
//! events across the end of daylight saving time, and broken files beside correct ones.

use std::fmt::Write as _;

use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::Value;

use crate::providers::support::{lacks_build_tools, shared};
use crate::support::patient;

/// A site whose calendars are in the directory `calendars`, with the time zone of Berlin. The time limit is long, for busy
/// machines. Fuel and memory have their default limits. `None` if this machine lacks the tools that build the provider.
fn site() -> Option<Site> {
    if lacks_build_tools() {
        return None;
    }
    let mut site = Site::new();
    site.mount("calendar");
    std::fs::create_dir_all(site.path("calendars")).unwrap();
    site.config(&patient(
        "[mounts.calendar]\nfs = { \"/calendars\" = \"calendars\" }\nenv = { ZONE = \"Europe/Berlin\" }\n\
         [mounts.bare]\ncomponent = \"calendar.wasm\"\n",
    ));
    site.share(&shared("calendar"));
    Some(site)
}

fn calendar(events: &str) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//Example//EN\r\n{events}END:VCALENDAR\r\n")
}

fn event(uid: &str, lines: &[&str]) -> String {
    format!("BEGIN:VEVENT\r\nUID:{uid}\r\n{}\r\nEND:VEVENT\r\n", lines.join("\r\n"))
}

/// The events of a reference, as JSON.
fn events(client: &mut Client<Stdio>, reference: &str) -> Vec<Value> {
    let text = client.text(&format!("belljar://calendar/{reference}?format=json"));
    serde_json::from_str::<Value>(&text).unwrap()["events"].as_array().unwrap().clone()
}

/// The start times of the events of a reference.
fn starts(client: &mut Client<Stdio>, reference: &str) -> Vec<String> {
    events(client, reference).iter().map(|event| event["start"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn five_thousand_events_are_read_within_the_limits() {
    let Some(site) = site() else { return };
    let mut text = String::new();
    for n in 0..5000 {
        let (year, month, day) = (2018 + n / 600, n / 50 % 12 + 1, n % 28 + 1);
        let start = format!("DTSTART:{year}{month:02}{day:02}T100000Z");
        let lines = [&start, "DURATION:PT1H", "DESCRIPTION:Something that is said of it\\, and goes on"];
        let lines: Vec<&str> = lines
            .iter()
            .map(|line| if n % 2 == 0 && line.starts_with("DUR") { "CLASS:PUBLIC" } else { *line })
            .collect();
        write!(text, "{}", event(&format!("n{n}@example.org"), &lines)).unwrap();
    }
    site.write("calendars/many.ics", calendar(&text));
    let mut client = site.stdio(Era::Stateless);
    let overview = client.text("belljar://calendar/");
    assert!(overview.contains("[many.ics](calendars/many.ics) |  | 5000 |"), "{overview}");
    let uri = "belljar://calendar/events/many.ics/n4321%40example.org";
    let one = client.text(uri);
    assert!(one.starts_with("# (no title)\n\n- ") && one.contains(" 2025, 1"), "{one}");
    client.close();
}

#[test]
fn repeated_events_keep_their_hour_and_their_exceptions() {
    let Some(site) = site() else { return };
    let series = event(
        "standup@example.org",
        &[
            "DTSTART;TZID=Europe/Berlin:20160104T093000",
            "DTEND;TZID=Europe/Berlin:20160104T094500",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE",
            "EXDATE;TZID=Europe/Berlin:20261019T093000",
            "SUMMARY:Standup",
        ],
    );
    let moved = event(
        "standup@example.org",
        &[
            "RECURRENCE-ID;TZID=Europe/Berlin:20261028T093000",
            "DTSTART;TZID=Europe/Berlin:20261029T140000",
            "SUMMARY:Standup\\, later",
        ],
    );
    let holiday =
        event("off@example.org", &["DTSTART;VALUE=DATE:20261024", "DTEND;VALUE=DATE:20261026", "SUMMARY:Off"]);
    site.write("calendars/team/work.ics", calendar(&(series + &moved + &holiday)));
    let mut client = site.stdio(Era::Stateless);
    // Daylight saving time ends on 25 October 2026.
    assert_eq!(starts(&mut client, "weeks/2026-W43"), ["2026-10-21T09:30:00+02:00", "2026-10-24"]);
    assert_eq!(starts(&mut client, "weeks/2026-W44"), ["2026-10-26T09:30:00+01:00", "2026-10-29T14:00:00+01:00"]);
    assert_eq!(starts(&mut client, "days/2026-10-25"), ["2026-10-24"]);
    let day = client.text("belljar://calendar/days/2026-10-29");
    assert!(
        day.contains("\n- 14:00 **Standup, later** · team/work.ics · events/team/work.ics/standup%40example.org\n"),
        "{day}"
    );
    let uris = client.uris();
    assert!(uris.iter().any(|uri| uri == "belljar://calendar/events/team/work.ics/standup%40example.org"), "{uris:?}");
    for uri in uris.iter().filter(|uri| uri.starts_with("belljar://calendar/")) {
        client.text(uri);
    }
    client.close();
}

#[test]
fn broken_files_are_reported_and_other_files_are_read() {
    let Some(site) = site() else { return };
    site.write("calendars/broken.ics", "nothing of a calendar");
    site.write("calendars/empty.ics", "");
    let bad = event("bad", &["DTSTART:tomorrow", "SUMMARY:Bad"]);
    let good = event("good", &["DTSTART:20261123T080000Z", "SUMMARY:Good"]);
    site.write("calendars/half.ics", calendar(&(bad + "BEGIN:VEVENT\r\nUID:never ends\r\n" + &good)));
    let mut client = site.stdio(Era::Stateless);
    let day = client.text("belljar://calendar/days/2026-11-23");
    assert!(day.contains("**Good**"), "{day}");
    for notice in
        ["\"broken.ics\": it is not an iCalendar file", "\"empty.ics\": it is not", "\"half.ics\": the event \"Bad\": "]
    {
        assert!(day.contains(notice), "no {notice} in {day}");
    }
    client.close();
}

#[test]
fn errors_have_the_right_kind() {
    let Some(site) = site() else { return };
    site.write("calendars/a.ics", calendar(""));
    let mut client = site.stdio(Era::Stateless);
    for (uri, kind, words) in [
        ("calendar/nothing", "not-found", ""),
        ("calendar/events/a.ics/nope", "not-found", ""),
        ("calendar/days/2026-02-30", "invalid", "expected a date such as 2026-11-20"),
        ("bare/next", "denied", "a directory of .ics files"),
    ] {
        let error = client.read(&format!("belljar://{uri}")).expect_err(uri);
        assert_eq!(error.data["kind"], kind, "{uri}: {error}");
        assert!(error.message.contains(words), "{uri}: {error}");
    }
    client.close();
}
