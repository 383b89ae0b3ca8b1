// Unit tests of the provider as plain TypeScript, over real files.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { Denied, Failed, Invalid, NotFound } from "@belljar/guest";
import { grant, revokeAll } from "@belljar/guest/testing";

import { Calendars } from "../src/provider.js";
import { BERLIN, calendar, event } from "./calendars.js";

// A Sunday.
const provider = new Calendars(() => Date.parse("2026-11-22T10:00:00Z"));
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "calendars-"));
  grant("/calendars", directory);
  process.env["ZONE"] = "Europe/Berlin";
});

afterEach(() => {
  revokeAll();
  delete process.env["ZONE"];
  rmSync(directory, { recursive: true });
});

function write(name: string, text: string | Uint8Array): void {
  mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
  writeFileSync(path.join(directory, name), text);
}

function read(reference: string): string {
  return provider.read(reference).contents[0].text ?? "";
}

interface Row {
  summary: string;
  start: string;
  end: string;
  allDay: boolean;
  calendar: string;
}

function rows(reference: string): Row[] {
  return JSON.parse(read(`${reference}?format=json`)).events;
}

function starts(reference: string): string[] {
  return rows(reference).map(({ start }) => start);
}

test("a day in Markdown and JSON", () => {
  write("work.ics", calendar(event("a", "DTSTART:20261123T080000Z", "DTEND:20261123T090000Z", "SUMMARY:Talk\\, long", "LOCATION:Hall")));
  const expected = [
    "# Monday, 23 November 2026 (Europe/Berlin)",
    "",
    "## Monday, 23 November 2026",
    "",
    "- 09:00–10:00 **Talk, long**, Hall · work.ics · events/work.ics/a",
    "",
  ];
  assert.equal(read("days/2026-11-23"), expected.join("\n"));
  assert.equal(read("days/tomorrow"), expected.join("\n"));
  assert.deepEqual(rows("days/2026-11-23"), [
    {
      reference: "events/work.ics/a",
      summary: "Talk, long",
      start: "2026-11-23T09:00:00+01:00",
      end: "2026-11-23T10:00:00+01:00",
      allDay: false,
      location: "Hall",
      repeats: false,
      calendar: "work.ics",
    },
  ]);
  assert.match(read("days/2026-11-24"), /\n\nNothing\.\n|\nNothing\.\n/);
});

test("a recurring event with a moved, a cancelled and a summer-time occurrence", () => {
  write(
    "work.ics",
    calendar(
      BERLIN,
      event(
        "s",
        "DTSTART;TZID=Europe/Berlin:20160104T093000",
        "DTEND;TZID=Europe/Berlin:20160104T094500",
        "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE",
        "EXDATE;TZID=Europe/Berlin:20261124T093000",
      ),
      event("s", "RECURRENCE-ID;TZID=Europe/Berlin:20261125T093000", "DTSTART;TZID=Europe/Berlin:20261127T140000", "DURATION:PT15M"),
    ),
  );
  assert.deepEqual(starts("weeks/2026-W48"), ["2026-11-23T09:30:00+01:00", "2026-11-27T14:00:00+01:00"]);
  assert.deepEqual(starts("days/2026-07-01"), ["2026-07-01T09:30:00+02:00"]);
  assert.match(read("events/work.ics/s"), /- Monday, 23 November 2026, 09:30 to 09:45\n- Friday, 27 November/);
});

test("a zone that only the file defines", () => {
  const own = BERLIN.replaceAll("Europe/Berlin", "Somewhere").replaceAll("+0200", "+0700").replaceAll("+0100", "+0600");
  write("a.ics", calendar(own, event("a", "DTSTART;TZID=Somewhere:20261123T090000")));
  assert.deepEqual(starts("days/2026-11-23"), ["2026-11-23T04:00:00+01:00"]);
});

test("a zone that the file names and does not define", () => {
  write("a.ics", calendar(event("a", "DTSTART;TZID=America/New_York:20261123T090000")));
  assert.deepEqual(starts("days/2026-11-23"), ["2026-11-23T15:00:00+01:00"]);
});

test("all-day events are on the same day in every zone", () => {
  write("a.ics", calendar(event("a", "DTSTART;VALUE=DATE:20261123", "DTEND;VALUE=DATE:20261125", "SUMMARY:Off")));
  for (const zone of ["Europe/Berlin", "America/Los_Angeles", "Pacific/Auckland"]) {
    process.env["ZONE"] = zone;
    assert.equal(rows("days/2026-11-22").length, 0, zone);
    assert.deepEqual([rows("days/2026-11-24")[0]?.start, rows("days/2026-11-24")[0]?.end], ["2026-11-23", "2026-11-25"], zone);
    assert.equal(rows("days/2026-11-25").length, 0, zone);
    assert.match(read("days/2026-11-24"), /- all day \*\*Off\*\*/);
  }
});

test("broken files and events do not affect the others", () => {
  write("broken.ics", "this is no calendar");
  write("large.ics", `BEGIN:VCALENDAR\r\nX-LONG:${"x".repeat(9 << 20)}`);
  write("work.ics", calendar("BEGIN:VEVENT\r\nUID:never\r\nDTSTART:20261123T08\r\n", event("bad", "DTSTART:tomorrow", "SUMMARY:Bad"), event("good", "DTSTART:20261123T080000Z")));
  assert.equal(rows("days/2026-11-23").length, 1);
  const text = read("days/2026-11-23");
  assert.match(text, /- "broken\.ics": it is not an iCalendar file\n/);
  assert.match(text, /- "large\.ics": it is larger than 7 MiB: divide it/);
  assert.match(text, /- "work\.ics": the event "Bad": /);
  assert.match(read(""), /- "broken\.ics": it is not an iCalendar file\n/);
  assert.match(read("calendars/broken.ics"), /it is not an iCalendar file/);
});

test("text that is not UTF-8 is read as Latin-1", () => {
  write("a.ics", Buffer.from(calendar(event("a", "DTSTART:20261123T080000Z", "SUMMARY:Caf\u00e9")), "latin1"));
  assert.equal(rows("days/2026-11-23")[0]?.summary, "Café");
});

test("the list has each upcoming event once, and every listed resource can be read", () => {
  write("team/a b.ics", calendar(event("x/y", "DTSTART:20261101T080000Z", "RRULE:FREQ=DAILY"), event("old", "DTSTART:20200101T080000Z")));
  const references = provider.listResources().resources.map(({ reference }) => reference);
  assert.deepEqual(references, ["next", "days/today", "weeks/this", "calendars/team/a%20b.ics", "events/team/a%20b.ics/x%2Fy"]);
  for (const reference of references) assert.notEqual(read(reference), "", reference);
  assert.match(read("events/team/a%20b.ics/old"), /1 January 2020/);
});

test("a search finds all words in all texts, upcoming events first", () => {
  write(
    "a.ics",
    calendar(
      event("past", "DTSTART:20200101T080000Z", "SUMMARY:Zahnarzt", "LOCATION:K\u00f6ln"),
      event("soon", "DTSTART:20261201T080000Z", "SUMMARY:ZAHNARZT", "DESCRIPTION:in k\r\n \u00f6ln"),
      event("weekly", "DTSTART:20200106T080000Z", "RRULE:FREQ=WEEKLY", "SUMMARY:Teeth", "ATTENDEE;CN=Zahnarzt K\u00f6ln:mailto:a@example.org"),
      event("other", "DTSTART:20261201T080000Z", "SUMMARY:Zahnarzt, Berlin"),
    ),
  );
  const found = JSON.parse(read("search?q=zahnarzt%20K%C3%B6ln&format=json"));
  assert.equal(found.total, 3);
  assert.deepEqual(found.events.map(({ start }: Row) => start), ["2026-11-23T09:00:00+01:00", "2026-12-01T09:00:00+01:00", "2020-01-01T09:00:00+01:00"]);
  assert.match(read("search?q=zahnarzt"), /last: Wednesday, 1 January 2020, 09:00 \*\*Zahnarzt\*\*|last: Wednesday, 1 January 2020/);
  assert.match(read("search?q=nobody"), /Nothing/);
  assert.throws(() => read("search?q="), Invalid);
});

test("a file whose name is not UTF-8 is named", () => {
  write("a.ics", calendar(event("a", "DTSTART:20261123T080000Z")));
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), Buffer.of(0xe9), Buffer.from(".ics")]), calendar());
  assert.match(read("days/2026-11-23"), /1 names are not UTF-8, and cannot be read: rename these files/);
  assert.equal(rows("days/2026-11-23").length, 1);
});

test("a month", () => {
  write("a.ics", calendar(event("a", "DTSTART;VALUE=DATE:20261031", "RRULE:FREQ=MONTHLY;BYMONTHDAY=-1")));
  assert.deepEqual(starts("months/2026-11"), ["2026-11-30"]);
  assert.deepEqual(starts("months/this"), ["2026-11-30"]);
  assert.deepEqual(starts("months/next"), ["2026-12-31"]);
  for (const month of ["2026-13", "2026", "x"]) assert.throws(() => read(`months/${month}`), Invalid);
});

test("an event without a UID can be read", () => {
  write("a.ics", calendar("BEGIN:VEVENT\r\nDTSTART:20261123T080000Z\r\nSUMMARY:Nameless\r\nEND:VEVENT\r\n"));
  const [reference] = JSON.parse(read("days/2026-11-23?format=json")).events.map((one: { reference: string }) => one.reference);
  assert.match(read(reference), /^# Nameless\n/);
});

test("a second event with the same UID is named", () => {
  write("a.ics", calendar(event("a", "DTSTART:20261123T080000Z", "SUMMARY:First"), event("a", "DTSTART:20261124T080000Z", "SUMMARY:Second")));
  assert.deepEqual(starts("days/2026-11-24"), []);
  assert.match(read("days/2026-11-24"), /the event "Second": its UID "a" is also the UID of another event/);
});

test("what an answer does not read is named, with the way on", () => {
  const large = `${event("a", "DTSTART:20261123T080000Z", `DESCRIPTION:${"x".repeat(700_000)}`)}`;
  for (const name of ["a", "b", "c"]) write(`${name}.ics`, calendar(large));
  process.env["READ_MIB"] = "1";
  try {
    assert.match(read("days/2026-11-23"), /1 calendars from "c\.ics" on are not read: the others have 1 MiB\. Ask for one, with calendar=/);
    assert.equal(rows("days/2026-11-23").length, 2);
    assert.equal(JSON.parse(read("days/2026-11-23?calendar=c.ics&format=json")).problems.length, 0);
    process.env["READ_MIB"] = "x";
    assert.throws(() => read("days/2026-11-23"), (error) => error instanceof Failed && error.message.includes('READ_MIB is "x"'));
  } finally {
    delete process.env["READ_MIB"];
  }
  write("many.ics", calendar(event("m", "DTSTART:20261123T080000Z", "RRULE:FREQ=MINUTELY")));
  assert.match(read("weeks/2026-W48?calendar=many.ics"), /it repeats more than 5000 times in this span, and the rest is left out: ask for a shorter span/);
});

test("errors are reported", () => {
  write("a.ics", calendar());
  for (const reference of ["nothing", "days", "days/", "calendars/b.ics", "events/a.ics/nope", "events/a.ics"]) {
    assert.throws(() => provider.read(reference), NotFound, reference);
  }
  for (const reference of ["days/x", "days/2026-02-30", "weeks/2026-W54", "weeks/x", "next?days=0", "next?days=x", "next?format=xml"]) {
    assert.throws(() => provider.read(reference), Invalid, reference);
  }
  process.env["ZONE"] = "Nowhere/Else";
  assert.throws(() => provider.read("next"), (error) => error instanceof Failed && error.message.includes('ZONE is "Nowhere/Else"'));
  revokeAll();
  assert.throws(() => provider.listResources(), Denied);
  assert.throws(() => provider.read("next"), Denied);
});

test("revisions change when a file changes", () => {
  write("a.ics", calendar());
  const before = [provider.catalogRevision(), provider.resourceRevision("calendars/a.ics")];
  assert.deepEqual([provider.catalogRevision(), provider.resourceRevision("calendars/a.ics")], before);
  write("a.ics", calendar(event("a", "DTSTART:20261123T080000Z")));
  assert.notEqual(provider.catalogRevision(), before[0]);
  assert.notEqual(provider.resourceRevision("calendars/a.ics"), before[1]);
});

test("completes", () => {
  write("a.ics", calendar());
  assert.deepEqual(provider.complete("calendars/{+calendar}", { name: "calendar", value: "" }), ["a.ics"]);
  assert.deepEqual(provider.complete("days/{date}", { name: "date", value: "2026-11-2" }).slice(0, 2), ["2026-11-22", "2026-11-23"]);
});
