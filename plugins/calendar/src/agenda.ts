// What takes place in a span of time, in all calendars or in one; and what could not be understood, which costs nothing
// else.
import { dateText, dayOf } from "./days.js";
import { type Series, type Understood, understand } from "./event.js";
import { type Occurrence, between, surelyOutside } from "./occurrences.js";
import { type Calendar, read } from "./source.js";
import type { Zone } from "./zones.js";

/** An occurrence and the calendar that it is in. */
export interface Entry extends Occurrence {
  calendar: Calendar;
}

/** Entries by their start, and what could not be understood. */
export interface Agenda {
  entries: Entry[];
  problems: string[];
}

/** What takes place between two times. */
export function agenda(calendars: Calendar[], from: number, to: number, zone: Zone): Agenda {
  const found: Agenda = { entries: [], problems: [] };
  // Two days more on each side: the text says times of zones that are not looked at yet.
  const day = (time: number): string => dateText(dayOf(time, zone)).replaceAll("-", "");
  const [first, last] = [day(from - 2 * 86_400_000), day(to + 2 * 86_400_000)];
  for (const calendar of calendars) {
    const understood = attempt(calendar, zone, (text) => !surelyOutside(text, first, last));
    found.problems.push(...understood.problems);
    for (const series of understood.series.values()) {
      try {
        for (const one of between(series, from, to, zone)) found.entries.push({ ...one, calendar });
      } catch (error) {
        found.problems.push(problem(calendar, `the event "${series.uid}": ${told(error)}`));
      }
    }
  }
  found.entries.sort((a, b) => a.start - b.start || a.end - b.end);
  return found;
}

/** One event of a calendar, and what could not be understood of the texts that name it. */
export function one(calendar: Calendar, uid: string, zone: Zone): { series: Series | undefined; problems: string[] } {
  // The beginning of it, up to what a file escapes: a long one is broken over several lines.
  const begins = uid.slice(0, 15).split(/[,;\\]/)[0] ?? "";
  const understood = attempt(calendar, zone, (text) => text.includes(begins));
  return { series: understood.series.get(uid), problems: understood.problems };
}

function attempt(calendar: Calendar, zone: Zone, wanted: (text: string) => boolean): Understood {
  try {
    const understood = understand(read(calendar), zone, wanted);
    return { ...understood, problems: understood.problems.map((text) => problem(calendar, text)) };
  } catch (error) {
    return { name: undefined, series: new Map(), problems: [problem(calendar, told(error))] };
  }
}

function problem(calendar: Calendar, text: string): string {
  return `"${calendar.path}": ${text}`;
}

function told(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
