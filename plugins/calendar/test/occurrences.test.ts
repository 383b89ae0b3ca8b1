// The occurrences in any span of time must equal those that ical.js computes from the start of the rule.
import assert from "node:assert/strict";
import { test } from "node:test";

import ICAL from "ical.js";

import { parseEvents } from "../src/agenda.js";
import { occurrencesBetween } from "../src/occurrences.js";
import { splitCalendar } from "../src/source.js";
import { zoneFromSetting } from "../src/zones.js";
import { calendar, event } from "./calendars.js";

const DAY = 86_400_000;
const UTC = zoneFromSetting(undefined);

for (const [start, rule] of [
  ["20160104T093000Z", "FREQ=DAILY"],
  ["20160104T093000Z", "FREQ=DAILY;INTERVAL=3"],
  ["20160104T093000Z", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH"],
  ["20160104T093000Z", "FREQ=WEEKLY;BYDAY=SA,SU;WKST=SU"],
  ["20160112T093000Z", "FREQ=MONTHLY;BYDAY=2TU"],
  ["20160129T093000Z", "FREQ=MONTHLY;BYDAY=-1FR"],
  ["20160115T093000Z", "FREQ=MONTHLY;INTERVAL=5"],
  ["20160131T093000Z", "FREQ=MONTHLY;BYMONTHDAY=31"],
  ["20160128T093000Z", "FREQ=MONTHLY;BYMONTHDAY=-1"],
  ["20160104T093000Z", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"],
  ["20160310T093000Z", "FREQ=YEARLY;INTERVAL=2"],
  ["20160327T093000Z", "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU"],
  ["20160104T093000Z", "FREQ=DAILY;COUNT=400"],
  ["20160104T093000Z", "FREQ=WEEKLY;UNTIL=20201231T000000Z"],
  ["20240104T093000Z", "FREQ=HOURLY;INTERVAL=36"],
  ["20160104T093000Z", "FREQ=DAILY;COUNT=3000;BYDAY=MO,TU,WE,TH,FR"],
  ["20160128T093000Z", "FREQ=MONTHLY;COUNT=90;BYDAY=2TU,4TU"],
  ["20160131T093000Z", "FREQ=MONTHLY;COUNT=60"],
  ["20160104T093000Z", "FREQ=WEEKLY;COUNT=700;INTERVAL=2;BYDAY=MO,FR;WKST=SU"],
  ["20240104T093000Z", "FREQ=MINUTELY;INTERVAL=600;COUNT=900"],
] as const) {
  test(`${rule} from ${start}`, () => {
    const parts = splitCalendar(calendar(event("a", `DTSTART:${start}`, "DTEND:" + start.replace("T09", "T10"), `RRULE:${rule}`)));
    const { series, problems } = parseEvents({ path: "a.ics", file: "" }, parts, UTC);
    assert.deepEqual(problems, []);
    const base = series.get("a")?.base;
    assert.ok(base);
    const all: number[] = [base.start.local];
    const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromDateTimeString(start.replace(/(....)(..)(..)T(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6Z")));
    const end = Date.UTC(2028, 0, 1);
    for (let time = iterator.next(); time && time.toUnixTime() * 1000 < end; time = iterator.next()) {
      all.push(time.toUnixTime() * 1000);
    }
    const expected = [...new Set(all)];
    for (let from = Date.UTC(2016, 0, 1); from < end - 40 * DAY; from += 97 * DAY) {
      const found = occurrencesBetween(series.get("a")!, from, from + 40 * DAY).found.map(({ start }) => start);
      const wanted: number[] = expected.filter((time) => time < from + 40 * DAY && time + 3_600_000 > from);
      assert.deepEqual(found.sort((a, b) => a - b), wanted, new Date(from).toISOString());
    }
  });
}
