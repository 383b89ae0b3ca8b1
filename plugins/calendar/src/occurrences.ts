// Computes the occurrences of events: single and recurring ones, with exceptions and moved occurrences.
import ICAL from "ical.js";

import { type Event, type Series, timeOf } from "./event.js";
import type { Zone } from "./zones.js";

/** One occurrence of an event, in milliseconds since 1970. */
export interface Occurrence {
  event: Event;
  start: number;
  end: number;
  repeats: boolean;
}

/** The most steps of a recurrence rule. */
const STEPS = 1500;

const DAY = 86_400_000;
const PERIODS: Record<string, number> = { HOURLY: DAY / 24, DAILY: DAY, WEEKLY: 7 * DAY };

/** The occurrences of a series between two times, in no particular order. */
export function occurrencesBetween(series: Series, from: number, to: number, zone: Zone): Occurrence[] {
  const found: Occurrence[] = [];
  const moved = new Set<number>();
  const add = (event: Event, start: number, repeats: boolean): void => {
    const end = start + event.duration;
    // An event without duration occurs at its start.
    if (start < to && (end > from || (event.duration === 0 && start >= from))) found.push({ event, start, end, repeats });
  };
  for (const event of series.exceptions) {
    moved.add(event.instead ?? 0);
    add(event, timeOf(event.start, event.component, "dtstart", zone), true);
  }
  const { base } = series;
  if (base) {
    const { component } = base;
    const repeats = component.hasProperty("rrule") || component.hasProperty("rdate");
    const off = dates(component, "exdate", zone);
    for (const start of starts(base, from - base.duration, to, zone)) {
      if (!moved.has(start) && !off.has(start)) add(base, start, repeats);
    }
  }
  return found;
}

/** True if the text of an event shows that it is outside of a span of days. Days have the form `20261120`. */
export function surelyOutside(text: string, from: string, to: string): boolean {
  let start: string | undefined;
  let end: string | undefined;
  for (const line of text.split("\n")) {
    // Events with a recurrence, a duration or a RECURRENCE-ID must be parsed first.
    if (line.startsWith("D")) {
      if (line.startsWith("DTSTART")) start = /:(\d{8})/.exec(line)?.[1] ?? "?";
      else if (line.startsWith("DTEND")) end = /:(\d{8})/.exec(line)?.[1] ?? "?";
      else if (line.startsWith("DURATION")) return false;
    } else if (line.startsWith("R") && /^(?:RRULE|RDATE|RECURRENCE-ID)/.test(line)) return false;
  }
  end ??= start;
  if (start === undefined || end === undefined || start === "?" || end === "?") return false;
  return start > to || end < from;
}

function starts(event: Event, from: number, to: number, zone: Zone): Set<number> {
  const { component, start } = event;
  const at = (time: ICAL.Time): number => timeOf(time, component, "dtstart", zone);
  const found = dates(component, "rdate", zone);
  found.add(at(start));
  for (const property of component.getAllProperties("rrule")) {
    const rule = property.getFirstValue();
    if (!(rule instanceof ICAL.Recur)) continue;
    const iterator = rule.iterator(forward(start, rule, at(start), from));
    let steps = 0;
    for (let time = iterator.next(); time; time = iterator.next()) {
      const one = at(time);
      if (one >= to) break;
      if (one >= from) found.add(one);
      if ((steps += 1) > STEPS) throw new Error("it repeats too often");
    }
  }
  return found;
}

/**
 * Moves the start of a rule close to `from`, in whole periods, so that all later occurrences stay the same. Otherwise, the
  * library would step through an event of ten years ago day by day. Keeps a distance of two periods: a rule yields its start
  * even if the start does not match the rule, and the moved start must not be in the result.
 */
function forward(start: ICAL.Time, rule: ICAL.Recur, time: number, from: number): ICAL.Time {
  if (rule.count || time >= from) return start;
  const interval = rule.interval || 1;
  const moved = start.clone();
  const period = PERIODS[rule.freq];
  if (period !== undefined) {
    const periods = Math.floor((from - time) / (period * interval)) - 2;
    if (periods > 0) moved.adjust(0, (periods * interval * period) / (DAY / 24), 0, 0);
    return moved;
  }
  // Not every month has a 30th.
  if (start.day > 28) return start;
  const until = new Date(from);
  const months = (until.getUTCFullYear() - start.year) * 12 + until.getUTCMonth() + 1 - start.month;
  const step = interval * (rule.freq === "YEARLY" ? 12 : 1);
  const steps = Math.floor(months / step) - 2;
  if ((rule.freq === "MONTHLY" || rule.freq === "YEARLY") && steps > 0) {
    const month = start.month - 1 + steps * step;
    moved.year = start.year + Math.floor(month / 12);
    moved.month = (month % 12) + 1;
  }
  return moved;
}

function dates(component: ICAL.Component, name: string, zone: Zone): Set<number> {
  const found = new Set<number>();
  for (const property of component.getAllProperties(name)) {
    for (const value of property.getValues()) {
      const time = value instanceof ICAL.Period ? value.start : value;
      if (!(time instanceof ICAL.Time)) continue;
      const tzid = property.getFirstParameter("tzid");
      found.add(timeOf(time, component, tzid ? name : "dtstart", zone));
    }
  }
  return found;
}
