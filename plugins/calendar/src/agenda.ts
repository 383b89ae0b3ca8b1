// The agenda: the occurrences in a span of time, in one calendar or in all. A broken event becomes a problem in the answer,
// and does not affect the others.
import { CalendarZones } from "./custom-zones.js";
import { FIRST_DAY, LAST_DAY, dateText, dayOfLocal } from "./dates.js";
import { type Event, eventOf } from "./event.js";
import { surelyOutside } from "./filter.js";
import { decoded, has, parseComponent, textOf, first as property } from "./lines.js";
import { type Occurrence, type Series, occurrencesBetween } from "./occurrences.js";
import { type Calendar, type Parts, affordable, headText, read, uidOf } from "./source.js";
import type { Zone } from "./zones.js";

const DAY = 86_400_000;

/** The begin of the names that this provider gives to events without a UID. */
const UNNAMED = "without-uid-";

/** An occurrence and the calendar that it is in. */
export interface Entry extends Occurrence {
  calendar: Calendar;
}

/** Entries sorted by start, and a message for each calendar or event that could not be understood. */
export interface Agenda {
  entries: Entry[];
  problems: string[];
}

/** The parsed events of a calendar, by UID, and a message for each that could not be parsed. */
export interface ParsedEvents {
  heads: string[];
  counts: Map<string, number>;
  series: Map<string, Series>;
  problems: string[];
}

/** The occurrences between two times, in milliseconds since 1970. */
export function agenda(calendars: Calendar[], from: number, to: number, own: Zone): Agenda & { parsed: ParsedEvents[] } {
  const found: Agenda & { parsed: ParsedEvents[] } = { entries: [], problems: [], parsed: [] };
  // The filter adds two days on each side: the text has local times, and their zones are not parsed yet.
  const day = (time: number): string => {
    const found = Math.min(Math.max(dayOfLocal(own.local(time)), FIRST_DAY), LAST_DAY);
    return dateText(found).replaceAll("-", "");
  };
  const [first, last] = [day(from - 2 * DAY), day(to + 2 * DAY)];
  for (const calendar of affordable(calendars, found.problems)) {
    const skipped: string[] = [];
    const parsed = tryParse(calendar, own, (text) => {
      if (!surelyOutside(text, first, last)) return true;
      skipped.push(text);
      return false;
    });
    // Of several events with one UID, one counts. It may be outside of the span.
    const elsewhere = new Set(parsed.series.size > 0 ? skipped.map(uidOf) : []);
    const shared = new Set([...parsed.series.keys()].filter((uid) => elsewhere.has(uid)));
    if (shared.size > 0) {
      const whole = tryParse(calendar, own, (text) => shared.has(uidOf(text)), true);
      for (const uid of shared) parsed.series.set(uid, whole.series.get(uid) ?? { uid, base: undefined, exceptions: [] });
    }
    found.parsed.push(parsed);
    found.problems.push(...parsed.problems);
    for (const series of parsed.series.values()) found.problems.push(...addOccurrences(found.entries, series, calendar, from, to));
  }
  found.entries.sort((a, b) => a.start - b.start || a.end - b.end);
  found.problems = [...new Set(found.problems)];
  return found;
}

/** Adds the occurrences of a series. Returns the problems of the events that occur. */
function addOccurrences(entries: Entry[], series: Series, calendar: Calendar, from: number, to: number): string[] {
  const problems: string[] = [];
  const { found, problems: own } = occurrencesBetween(series, from, to);
  for (const one of found) entries.push({ ...one, calendar });
  for (const text of own) problems.push(problem(calendar, series.base ?? found[0]?.event, text));
  for (const event of new Set(found.flatMap(({ event }) => (event === series.base || !series.base ? [event] : [event, series.base])))) {
    for (const text of event.problems) problems.push(problem(calendar, event, text));
  }
  for (const event of series.others ?? []) {
    if (occurrencesBetween({ uid: series.uid, base: event, exceptions: [] }, from, to).found.length === 0) continue;
    problems.push(problem(calendar, event, `its UID "${series.uid}" is also the UID of another event, which is read in its place`));
  }
  return problems;
}

/** The events with one UID, or with one of several. */
export function withUids(calendar: Calendar, uids: Set<string>, own: Zone): ParsedEvents {
  return tryParse(calendar, own, (text) => {
    const uid = uidOf(text);
    return uid === "" ? [...uids].some((one) => one.startsWith(UNNAMED)) : uids.has(uid);
  });
}

/** Parses the wanted events of a calendar. An error becomes a problem of the calendar. */
function tryParse(calendar: Calendar, own: Zone, wanted: (text: string) => boolean, again = false): ParsedEvents {
  try {
    return parseEvents(calendar, read(calendar, wanted, again), own);
  } catch (error) {
    return { heads: [], counts: new Map(), series: new Map(), problems: [`"${calendar.path}": ${message(error)}`] };
  }
}

/** Parses events, and puts those with one UID together. */
export function parseEvents(calendar: Calendar, parts: Parts, own: Zone): ParsedEvents {
  const heads = parts.heads.map((head) => new CalendarZones(own, parts.zones, has(head, "X-WR-TIMEZONE") ? headText(head, "X-WR-TIMEZONE") : undefined));
  const found: ParsedEvents = {
    ...{ heads: parts.heads, counts: parts.counts, series: new Map() },
    problems: heads.flatMap(({ problems }) => problems).map((text) => `"${calendar.path}": ${text}`),
  };
  if (parts.events.length === 0) return found;
  const none = new CalendarZones(own, parts.zones);
  for (const { text, head } of parts.events) {
    try {
      const component = parseComponent(text);
      const uid = textOf(property(component, "UID")) ?? `${UNNAMED}${hash(text)}`;
      add(found.series, eventOf(component, uid, heads[head] ?? none));
    } catch (error) {
      found.problems.push(`"${calendar.path}": the event "${label(text)}": ${message(error)}`);
    }
  }
  return found;
}

function add(all: Map<string, Series>, event: Event): void {
  let series = all.get(event.uid);
  if (!series) all.set(event.uid, (series = { uid: event.uid, base: undefined, exceptions: [] }));
  const { base } = series;
  if (event.instead) series.exceptions.push(event);
  else if (!base) series.base = event;
  else if (event.sequence > base.sequence) series.base = event;
  // An older version of the event, or the same once more, is no other event.
  else if (event.sequence === base.sequence && event.start.local !== base.start.local) (series.others ??= []).push(event);
}

function problem(calendar: Calendar, event: Event | undefined, text: string): string {
  const name = event && (textOf(property(event.component, "SUMMARY")) ?? event.uid);
  return `"${calendar.path}": the event "${(name ?? "?").slice(0, 60)}": ${text}`;
}

function label(text: string): string {
  const [, name] = /\nSUMMARY[^:\r\n]*:([^\r\n]{1,60})/i.exec(text) ?? /\nUID:([^\r\n]{1,60})/i.exec(text) ?? [];
  return decoded((name ?? "?").trim());
}

function message(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}

function hash(text: string): string {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return (hash >>> 0).toString(16);
}
