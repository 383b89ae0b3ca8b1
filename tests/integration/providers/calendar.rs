//! `plugins/calendar`, written in TypeScript, in the real server: thousands of events and of files within the default limits,
//! old rules, repeated events across the end of daylight saving time, and broken files beside correct ones.

use std::fmt::Write as _;

use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::Value;

use crate::providers::support::{fuel, lacks_build_tools, over_data, shared};
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
    site.share(shared("calendar"));
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
fn ten_thousand_events_of_one_file_are_read_within_the_limits() {
    let Some(site) = site() else { return };
    let mut text = String::new();
    for n in 0..10_000 {
        let (year, month, day) = (2018 + n / 1200, n / 100 % 12 + 1, n % 28 + 1);
        let start = format!("DTSTART:{year}{month:02}{day:02}T100000Z");
        let rule = if n % 10 == 0 {
            format!("RRULE:FREQ=WEEKLY;UNTIL={}1231T000000Z", year + 1)
        } else {
            "CLASS:PUBLIC".to_owned()
        };
        let summary = format!("SUMMARY:Number {n}");
        let about = "DESCRIPTION:Something that is said of it\\, and goes on\\, until the line is folded\r\n  over several lines\\, as programs do; with umlauts \u{e4}\u{f6}\u{fc}";
        let dates = "CREATED:20180101T000000Z\r\nLAST-MODIFIED:20180101T000000Z\r\nDTSTAMP:20180101T000000Z\r\nSEQUENCE:0\r\nSTATUS:CONFIRMED";
        let lines = [start.as_str(), "DURATION:PT1H", rule.as_str(), about, dates, summary.as_str()];
        write!(text, "{}", event(&format!("n{n}@example.org"), &lines)).unwrap();
    }
    assert!(text.len() > 3_800_000, "{}", text.len());
    site.write("calendars/many.ics", calendar(&text));
    let mut client = site.stdio(Era::Stateless);
    let overview = client.text("belljar://calendar/");
    assert!(overview.contains("[many.ics](calendars/many.ics) |  | 10000 |"), "{overview}");
    let one = client.text("belljar://calendar/events/many.ics/n4321%40example.org");
    assert!(one.starts_with("# Number 4321\n\n- ") && one.contains(" 2021, 1"), "{one}");
    assert!(starts(&mut client, "days/2021-08-10").len() > 3);
    assert!(starts(&mut client, "months/2021-08").len() > 100);
    let found = client.text("belljar://calendar/search?q=number%20of%204321");
    assert!(found.starts_with("# Events with ") && found.contains("**Number 4321**"), "{found}");
    client.close();
}

#[test]
fn two_thousand_files_with_one_event_each_are_read_in_one_call() {
    let Some(site) = site() else { return };
    for n in 0..2000 {
        let start = format!("DTSTART:{}{:02}{:02}T100000Z", 2020 + n / 1200, n / 100 % 12 + 1, n % 28 + 1);
        site.write(
            format!("calendars/team/{n:04}.ics"),
            calendar(&event(&format!("n{n}"), &[&start, "SUMMARY:One of many"])),
        );
    }
    let mut client = site.stdio(Era::Stateless);
    let day = client.text("belljar://calendar/days/2020-01-15");
    assert!(day.contains("events/team/0014.ics/n14\n") && day.contains("events/team/0098.ics/n98\n"), "{day}");
    assert!(!day.contains("Not understood"), "{day}");
    let found = client.text("belljar://calendar/search?q=many&calendar=team%2F1999.ics");
    assert!(found.contains("events/team/1999.ics/n1999\n"), "{found}");
    client.close();
}

#[test]
fn the_age_of_a_rule_and_the_length_of_a_zone_cost_nothing() {
    if lacks_build_tools() {
        return;
    }
    let site = over_data("calendar", "env = { ZONE = \"Europe/Berlin\" }");
    let mut zone = "BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\n".to_owned();
    for year in 1950..2037 {
        let change = format!("DTSTART:{year}0401T020000\r\nRDATE:{year}0401T020000\r\n");
        write!(zone, "BEGIN:DAYLIGHT\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n{change}END:DAYLIGHT\r\n").unwrap();
    }
    zone.push_str("END:VTIMEZONE\r\n");
    let rules = [
        ("daily", "DTSTART;VALUE=DATE:19190304", "RRULE:FREQ=DAILY"),
        ("weekly", "DTSTART;VALUE=DATE:19190304", "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU"),
        ("count", "DTSTART;VALUE=DATE:19190304", "RRULE:FREQ=DAILY;COUNT=100000"),
        ("timed", "DTSTART;TZID=Europe/Berlin:19190304T090000", "RRULE:FREQ=MONTHLY;BYDAY=-1MO,2TU"),
        ("hourly", "DTSTART:19190304T090000Z", "RRULE:FREQ=HOURLY;INTERVAL=5"),
    ];
    for (name, start, rule) in rules {
        site.write(format!("data/{name}.ics"), calendar(&(zone.clone() + &event(name, &[start, rule]))));
    }
    let mut client = site.stdio(Era::Stateless);
    for (name, ..) in rules {
        let reference = format!("months/2026-11?calendar={name}.ics");
        let month = client.text(&format!("belljar://calendar/{reference}"));
        assert!(month.contains(&format!("/{name}.ics/{name}\n")), "{month}");
        let fuel = fuel(&site, &reference);
        assert!(fuel < 100_000_000, "{name} took {fuel} units");
    }
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
