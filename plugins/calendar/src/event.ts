// Parses events with ical.js.
import ICAL from "ical.js";

import { begins } from "./days.js";
import type { Parts } from "./source.js";
import { type Zone, find } from "./zones.js";

/** An event, or a single occurrence with its own properties (RECURRENCE-ID). */
export interface Event {
  uid: string;
  component: ICAL.Component;
  start: ICAL.Time;
  /** In milliseconds. */
  duration: number;
  /** The RECURRENCE-ID: the occurrence that this one replaces. */
  instead?: number;
}

/** An event and the occurrences that replace its own. */
export interface Series {
  uid: string;
  base: Event | undefined;
  exceptions: Event[];
}

/** The parsed events of a calendar, and a message for each part that could not be parsed. */
export interface ParsedEvents {
  name: string | undefined;
  series: Map<string, Series>;
  problems: string[];
}

/** Parses the events of a calendar whose text passes the filter `wanted`. */
export function parseEvents(parts: Parts, zone: Zone, wanted: (text: string) => boolean): ParsedEvents {
  const parsed: ParsedEvents = { name: nameOf(parts.head), series: new Map(), problems: [] };
  const calendar = new ICAL.Component(["vcalendar", [], []]);
  for (const text of parts.zones) {
    try {
      calendar.addSubcomponent(new ICAL.Component(ICAL.parse(text)));
    } catch (error) {
      parsed.problems.push(`a time zone: ${reason(error)}`);
    }
  }
  for (const text of parts.events) {
    if (!wanted(text)) continue;
    try {
      const component = new ICAL.Component(ICAL.parse(text));
      calendar.addSubcomponent(component);
      const event = eventOf(component, zone);
      const series = parsed.series.get(event.uid) ?? { uid: event.uid, base: undefined, exceptions: [] };
      if (event.instead === undefined) series.base ??= event;
      else series.exceptions.push(event);
      parsed.series.set(event.uid, series);
    } catch (error) {
      parsed.problems.push(`the event "${label(text)}": ${reason(error)}`);
    }
  }
  return parsed;
}

function eventOf(component: ICAL.Component, zone: Zone): Event {
  const uid = text(component, "uid");
  const start = component.getFirstPropertyValue("dtstart");
  if (!(start instanceof ICAL.Time)) throw new Error("it has no start");
  if (!uid) throw new Error("it has no UID");
  const event: Event = { uid, component, start, duration: 0 };
  const end = component.getFirstPropertyValue("dtend");
  const duration = component.getFirstPropertyValue("duration");
  if (end instanceof ICAL.Time) event.duration = timeOf(end, component, "dtend", zone) - timeOf(start, component, "dtstart", zone);
  else if (duration instanceof ICAL.Duration) event.duration = duration.toSeconds() * 1000;
  else if (start.isDate) event.duration = 86_400_000;
  if (event.duration < 0) throw new Error("it ends before it starts");
  const instead = component.getFirstPropertyValue("recurrence-id");
  if (instead instanceof ICAL.Time) event.instead = timeOf(instead, component, "recurrence-id", zone);
  return event;
}

/** A time in milliseconds since 1970. Dates, and times without a zone, are in the zone of the setting ZONE. */
export function timeOf(time: ICAL.Time, component: ICAL.Component, property: string, zone: Zone): number {
  if (time.isDate) return begins(Date.UTC(time.year, time.month - 1, time.day) / 86_400_000, zone);
  if (time.zone === ICAL.Timezone.utcTimezone) return time.toUnixTime() * 1000;
  // Prefers the provider's own zone tables to the VTIMEZONE of the file. A VTIMEZONE is often outdated or missing, and a
  // thousand times as slow.
  const named = component.getFirstProperty(property)?.getFirstParameter("tzid");
  const known = named && find(named);
  if (known) return known.time(time);
  return time.zone && time.zone !== ICAL.Timezone.localTimezone ? time.toUnixTime() * 1000 : zone.time(time);
}

/** The value of a property as trimmed text. */
export function text(component: ICAL.Component, property: string): string | undefined {
  const value = component.getFirstPropertyValue(property);
  return value === null || value === undefined ? undefined : String(value).trim() || undefined;
}

function nameOf(head: string): string | undefined {
  return /^(?:X-WR-CALNAME|NAME)[^:\r\n]*:([^\r\n]+)/im.exec(head)?.[1]?.replace(/\\([,;\\])/g, "$1");
}

function label(text: string): string {
  return (/^(?:SUMMARY)[^:\r\n]*:([^\r\n]{1,60})/im.exec(text)?.[1] ?? /^UID:([^\r\n]{1,60})/im.exec(text)?.[1] ?? "?").trim();
}

function reason(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
}
