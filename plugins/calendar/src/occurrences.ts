// Computes the occurrences of events: single and recurring ones, with exceptions and moved occurrences.
import { dayOfLocal } from "./dates.js";
import { type Event, type Span, endOf, longest } from "./event.js";
import { expand } from "./expand.js";
import { type Moment, timeOf } from "./values.js";

const DAY = 86_400_000;

/** An event and the occurrences that replace its own. */
export interface Series {
  uid: string;
  base: Event | undefined;
  exceptions: Event[];
  /** Other events with the same UID, which do not count. */
  others?: Event[];
}

/** One occurrence of an event, in milliseconds since 1970. */
export interface Occurrence {
  event: Event;
  start: number;
  end: number;
  repeats: boolean;
}

/** The occurrences of a series between two times, and what could not be computed. */
export function occurrencesBetween(series: Series, from: number, to: number): { found: Occurrence[]; problems: string[] } {
  const found: Occurrence[] = [];
  const problems: string[] = [];
  const add = (event: Event, start: number, end: number, repeats: boolean): void => {
    // An event without duration occurs at its start.
    if (start < to && (end > from || (end === start && start >= from))) found.push({ event, start, end, repeats });
  };
  const { base } = series;
  const replaced = replacements(series.exceptions, base);
  const excluded = new Set(base?.excluded.map((one) => key(one, base)) ?? []);
  for (const [id, event] of replaced) {
    if (excluded.has(id)) continue;
    const { start } = event;
    const time = timeOf(start);
    add(event, time, endOf(event.span, time, start.local, start), true);
  }
  if (!base) return { found, problems };
  const repeats = base.rules.length > 0 || base.additional.length > 0;
  const later = series.exceptions.filter(({ future, instead }) => future && instead).sort((a, b) => replacedTime(a) - replacedTime(b));
  const done = new Set<number>();
  for (const { local, time, span } of starts(base, later, from, to, problems)) {
    const id = base.start.isDate ? dayOfLocal(local) : time;
    const date = `on ${dayOfLocal(local)}`;
    if (done.has(time) || replaced.has(id) || replaced.has(date) || excluded.has(id) || excluded.has(date)) continue;
    done.add(time);
    const change = later.findLast((one) => replacedTime(one) < time);
    if (!change?.instead) {
      add(base, time, endOf(span ?? base.span, time, local, base.start), repeats);
      continue;
    }
    const moved = local + change.start.local - change.instead.local;
    const start = change.start.zone.time(moved);
    add(change, start, endOf(change.span, start, moved, change.start), true);
  }
  return { found, problems };
}

/** The exceptions by the occurrences that they replace. Of several for one occurrence, the one with the highest SEQUENCE counts. */
function replacements(exceptions: Event[], base: Event | undefined): Map<number | string, Event> {
  const found = new Map<number | string, Event>();
  for (const event of exceptions) {
    const id = key(event.instead ?? event.start, base ?? event);
    const other = found.get(id);
    if (!other || event.sequence > other.sequence) found.set(id, event);
  }
  return found;
}

/** Identifies an occurrence of `base`: all-day ones by their day, others by their time, or by the local day if only this is given. */
function key(moment: Moment, base: Event): number | string {
  if (base.start.isDate) return dayOfLocal(moment.local);
  return moment.isDate ? `on ${dayOfLocal(moment.local)}` : timeOf(moment);
}

function replacedTime({ instead, start }: Event): number {
  return timeOf(instead ?? start);
}

interface Start {
  local: number;
  time: number;
  span: Span | undefined;
}

/** The starts of an event that may be in a span, or be moved into it. */
function starts(base: Event, later: Event[], from: number, to: number, problems: string[]): Start[] {
  const { zone } = base.start;
  let [before, after] = [longest(base.span), 0];
  for (const { start, instead, span } of later) {
    const shift = start.local - (instead?.local ?? start.local);
    before = Math.max(before, longest(span) + shift);
    after = Math.max(after, -shift);
  }
  // A day more on each side, as the zones may differ.
  const [first, last] = [zone.local(from) - before - DAY, zone.local(to) + after + DAY];
  const locals: number[] = [];
  for (const { rule, until } of base.rules) locals.push(...attempt(() => expand(rule, base.start.local, first, last, until, problems), problems));
  // The start occurs even if it does not match the rule, unless the rule ends before it.
  if (base.rules.length === 0 || base.rules.some(({ until }) => until >= base.start.local)) locals.push(base.start.local);
  const left = new Set<number>();
  for (const { rule, until } of base.exceptRules) {
    for (const one of attempt(() => expand(rule, base.start.local, first, last, until, problems), problems)) left.add(one);
  }
  const found: Start[] = [];
  for (const local of locals) if (!left.has(local)) found.push({ local, time: zone.time(local), span: undefined });
  for (const { start, span } of base.additional) {
    const local = start.isDate || base.start.isDate ? start.local : zone.local(timeOf(start));
    const kept = base.start.isDate ? dayOfLocal(local) * DAY : local;
    // First, so that the length of a period counts for a time that the rule has too.
    found.unshift({ local: kept, time: zone.time(kept), span: base.start.isDate ? undefined : span });
  }
  return found;
}

function attempt(compute: () => number[], problems: string[]): number[] {
  try {
    return compute();
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    return [];
  }
}
