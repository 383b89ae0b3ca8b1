// The agenda: the occurrences in a span of time, in one calendar or in all. A broken event becomes a problem in the answer,
// and does not affect the others.
import { dateText, dayOf } from "./days.js";
import { type Series, type ParsedEvents, parseEvents } from "./event.js";
import { type Occurrence, occurrencesBetween, surelyOutside } from "./occurrences.js";
import { type Calendar, read } from "./source.js";
import type { Zone } from "./zones.js";

/** An occurrence and the calendar that it is in. */
export interface Entry extends Occurrence {
  calendar: Calendar;
}

/** Entries sorted by start, and a message for each calendar or event that could not be parsed. */
export interface Agenda {
  entries: Entry[];
  problems: string[];
}

/** The occurrences between two times, in milliseconds since 1970. */
export function agenda(calendars: Calendar[], from: number, to: number, zone: Zone): Agenda {
  const found: Agenda = { entries: [], problems: [] };
  // The filter adds two days on each side: the text has local times, and their zones are not parsed yet.
  const day = (time: number): string => dateText(dayOf(time, zone)).replaceAll("-", "");
  const [first, last] = [day(from - 2 * 86_400_000), day(to + 2 * 86_400_000)];
  for (const calendar of calendars) {
    const parsed = tryParse(calendar, zone, (text) => !surelyOutside(text, first, last));
    found.problems.push(...parsed.problems);
    for (const series of parsed.series.values()) {
      try {
        for (const one of occurrencesBetween(series, from, to, zone)) found.entries.push({ ...one, calendar });
      } catch (error) {
        found.problems.push(problem(calendar, `the event "${series.uid}": ${message(error)}`));
      }
    }
  }
  found.entries.sort((a, b) => a.start - b.start || a.end - b.end);
  return found;
}

/** One event of a calendar, and messages for the texts with its UID that could not be parsed. */
export function one(calendar: Calendar, uid: string, zone: Zone): { series: Series | undefined; problems: string[] } {
  // Searches for the beginning of the UID: a file escapes some characters, and breaks a long UID over several lines.
  const begins = uid.slice(0, 15).split(/[,;\\]/)[0] ?? "";
  const parsed = tryParse(calendar, zone, (text) => text.includes(begins));
  return { series: parsed.series.get(uid), problems: parsed.problems };
}

/** Parses a calendar. An error becomes a problem of the calendar. */
function tryParse(calendar: Calendar, zone: Zone, wanted: (text: string) => boolean): ParsedEvents {
  try {
    const parsed = parseEvents(read(calendar), zone, wanted);
    return { ...parsed, problems: parsed.problems.map((text) => problem(calendar, text)) };
  } catch (error) {
    return { name: undefined, series: new Map(), problems: [problem(calendar, message(error))] };
  }
}

function problem(calendar: Calendar, text: string): string {
  return `"${calendar.path}": ${text}`;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
