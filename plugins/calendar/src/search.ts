// Searches the events of calendars by words, with the next occurrence of each.
import { Invalid } from "@belljar/guest";

import { type Entry, parseEvents } from "./agenda.js";
import { dateText, dayOfLocal } from "./dates.js";
import { surelyOutside } from "./filter.js";
import { type Component, all, has, parameter, replaced, textOf } from "./lines.js";
import { type Series, occurrencesBetween } from "./occurrences.js";
import { type Calendar, affordable, read, uidOf } from "./source.js";
import { timeOf } from "./values.js";
import type { Zone } from "./zones.js";

const DAY = 86_400_000;

/** The most events in an answer, and the most that are parsed. */
const MOST = 50;
const MOST_PARSED = 200;

/** The properties that are searched. */
const SEARCHED = ["SUMMARY", "DESCRIPTION", "LOCATION", "CATEGORIES", "COMMENT", "CONTACT", "ORGANIZER", "ATTENDEE", "URL", "UID"];

/** Events with the words: the upcoming ones first, in order, then the past ones, the latest first. */
export interface Matches {
  entries: Entry[];
  /** The number of all events with the words. */
  total: number;
  problems: string[];
}

/** The words of a question. */
export function wordsOf(query: string | undefined): string[] {
  const words = (query ?? "").toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) throw new Invalid('"q" is missing: expected the words to search for, such as search?q=dentist');
  return words;
}

/** The events that have all words, in any order and any case, in any of their texts. */
export function search(calendars: Calendar[], words: string[], now: number, own: Zone): Matches {
  const found: Matches = { entries: [], total: 0, problems: [] };
  let [parsedEvents, unparsed] = [0, 0];
  // Of a word, only the part in ASCII is compared before a text is decoded.
  const parts = words.map((word) => word.split(/[^\x20-\x7e]|[\\,;:"]/).reduce((long, one) => (one.length > long.length ? one : long), ""));
  const today = dateText(dayOfLocal(own.local(now))).replaceAll("-", "");
  for (const calendar of affordable(calendars, found.problems)) {
    try {
      // Those that may be upcoming are parsed first, and the others as far as there is room.
      const [upcoming, past] = [new Set<string>(), new Set<string>()];
      const take = (text: string): void => {
        if (mayHave(text, parts)) (surelyOutside(text, today, "99991231") ? past : upcoming).add(uidOf(text));
      };
      const seen = read(calendar, (text) => {
        take(text);
        return false;
      });
      for (const { text } of seen.events) take(text);
      for (const uid of upcoming) past.delete(uid);
      const room = Math.max(0, MOST_PARSED - parsedEvents);
      const wanted = new Set([...upcoming, ...[...past].reverse()].slice(0, room));
      unparsed += upcoming.size + past.size - wanted.size;
      if (wanted.size === 0) continue;
      // The other texts of these events, which move or replace single occurrences, may lack the words.
      const whole = read(calendar, (text) => wanted.has(uidOf(text)), true);
      whole.events = whole.events.filter(({ text }) => wanted.has(uidOf(text)));
      const parsed = parseEvents(calendar, whole, own);
      parsedEvents += parsed.series.size;
      for (const series of parsed.series.values()) {
        const every = [...(series.base ? [series.base] : []), ...series.exceptions];
        if (!every.some(({ component }) => hasWords(component, words))) continue;
        found.total += 1;
        const entry = nextTimes(series, now, 1)[0];
        if (entry) found.entries.push({ ...entry, calendar });
        else found.problems.push(`"${calendar.path}": the event "${series.uid}" never occurs`);
      }
      found.problems.push(...parsed.problems);
    } catch (error) {
      found.problems.push(`"${calendar.path}": ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const rank = ({ end, start }: Entry): number => (end >= now ? start : Number.MAX_SAFE_INTEGER - start);
  found.entries.sort((a, b) => rank(a) - rank(b));
  const more = found.entries.length - MOST + unparsed;
  found.entries.length = Math.min(found.entries.length, MOST);
  found.total += unparsed;
  if (unparsed > 0) found.problems.push(`about ${more} more events have these words: add a word, or calendar=`);
  else if (more > 0) found.problems.push(`${more} more events have these words: add a word, or calendar=`);
  return found;
}

/** False if the text of an event surely lacks one of the parts of words, which are in lower case. */
function mayHave(text: string, parts: string[]): boolean {
  const plain = replaced(replaced(text, "\r\n ", ""), "\n ", "").toLowerCase();
  // Quoted-printable text, and lines that are folded with tabs, have other forms.
  return parts.every((part) => part === "" || has(plain, part)) || has(plain, "quoted-printable") || has(plain, "\n\t");
}

function hasWords(component: Component, words: string[]): boolean {
  const texts = SEARCHED.flatMap((name) => all(component, name)).map((property) => `${textOf(property) ?? ""} ${parameter(property, "CN") ?? ""}`);
  const text = texts.join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

/**
 * The next occurrences of a series, or its last ones if it is over. Extends the span step by step, as most events occur soon or
 * never again.
 */
export function nextTimes(series: Series, now: number, most: number): ReturnType<typeof occurrencesBetween>["found"] {
  const between = (from: number, to: number): ReturnType<typeof occurrencesBetween>["found"] =>
    occurrencesBetween(series, from, to).found.sort((a, b) => a.start - b.start);
  const events = [...(series.base ? [series.base] : []), ...series.exceptions];
  const starts = events.map(({ start }) => timeOf(start));
  const repeats = events.some(({ rules }) => rules.length > 0);
  let found: ReturnType<typeof between> = [];
  // The years until a rule of the 29 February occurs, and beyond all that is planned.
  for (const days of repeats ? [14, 100, 800, 4000] : [40_000]) {
    found = between(now, now + days * DAY);
    if (found.length >= most) return found.slice(0, most);
  }
  if (found.length > 0) return found;
  const far = Math.max(...starts);
  if (far > now) return between(far, far + 100 * DAY).slice(0, most);
  // It is over: the last ones.
  for (const days of [100, 800, 4000]) {
    found = between(now - days * DAY, now);
    if (found.length > 0) return found.slice(-most);
  }
  const first = Math.min(...starts);
  return between(first, first + 100 * DAY).slice(0, most);
}
