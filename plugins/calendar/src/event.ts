// Events: what a VEVENT says of its start, its end and its repetition. A property that cannot be understood is left out
// and named; only without a start there is no event.
import { type Component, type Property, all, first, textOf } from "./lines.js";
import { type Rule, parseRule } from "./rule.js";
import type { CalendarZones } from "./custom-zones.js";
import { type Length, type Moment, checked, length, moment, momentOf, shown, timeOf } from "./values.js";

const DAY = 86_400_000;

/** The length of an event: whole days, an exact time, or a duration whose days follow the clock. */
export type Span = { days: number } | { exact: number } | { nominal: Length };

/** An additional start (RDATE), with its own length if it is a period. */
export interface Additional {
  start: Moment;
  span: Span | undefined;
}

/** An event, or a single occurrence with its own properties (RECURRENCE-ID). */
export interface Event {
  uid: string;
  component: Component;
  start: Moment;
  span: Span;
  sequence: number;
  /** The RECURRENCE-ID: the occurrence that this one replaces. */
  instead: Moment | undefined;
  /** True if the replacement is also for all later occurrences. */
  future: boolean;
  rules: { rule: Rule; until: number }[];
  /** The rules of the times that do not occur: EXRULE of the first iCalendar. */
  exceptRules: { rule: Rule; until: number }[];
  additional: Additional[];
  excluded: Moment[];
  /** What was left out. */
  problems: string[];
}

/** The event of a component. Throws if it has no start that can be understood. */
export function eventOf(component: Component, uid: string, zones: CalendarZones): Event {
  zones.problems = [];
  const begin = first(component, "DTSTART");
  if (!begin) throw new Error("it has no DTSTART");
  const start = momentOf(begin, zones);
  const problems: string[] = [];
  const event: Event = {
    ...{ uid, component, start, span: { exact: 0 }, sequence: -1, instead: undefined, future: false },
    ...{ rules: [], exceptRules: [], additional: [], excluded: [], problems },
  };
  const attempt = (parse: () => void): void => {
    try {
      parse();
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  };
  // The default: a day for a date, no time at all for a time.
  event.span = start.isDate ? { days: 1 } : { exact: 0 };
  attempt(() => setSpan(event, zones));
  const sequence = Number(first(component, "SEQUENCE")?.value ?? -1);
  if (!Number.isNaN(sequence)) event.sequence = sequence;
  const instead = first(component, "RECURRENCE-ID");
  if (instead) {
    event.instead = start;
    attempt(() => (event.instead = momentOf(instead, zones)));
    event.future = /RANGE="?THISANDFUTURE/i.test(instead.parameters);
  }
  for (const [name, rules] of [["RRULE", event.rules], ["EXRULE", event.exceptRules]] as const) {
    for (const property of all(component, name)) attempt(() => rules.push(ruleOf(property, start, zones)));
  }
  for (const property of all(component, "RDATE")) {
    for (const value of values(property)) attempt(() => event.additional.push(additional(value, property, zones)));
  }
  for (const property of all(component, "EXDATE")) {
    for (const value of values(property)) attempt(() => event.excluded.push(moment(value, property, zones)));
  }
  if (!component.complete) problems.push("it has no END:VEVENT");
  problems.unshift(...new Set(zones.problems));
  return event;
}

function setSpan(event: Event, zones: CalendarZones): void {
  const { component, start } = event;
  const ending = first(component, "DTEND");
  if (ending) {
    const end = momentOf(ending, zones);
    if (start.isDate && end.isDate) {
      const days = (end.local - start.local) / DAY;
      // Many programs write the day itself as the end of an event of one day.
      if (days >= 0) event.span = { days: Math.max(days, 1) };
      else [event.start, event.span] = [end, { days: -days }];
      if (days < 0) throw new Error("DTEND is before DTSTART: they are read in the other order");
      return;
    }
    // With one time, the other date is the midnight of its day.
    if (start.isDate) event.start = { ...start, isDate: false, zone: end.zone };
    const last = end.isDate ? event.start.zone.time(end.local) : timeOf(end);
    const time = last - timeOf(event.start);
    event.span = { exact: Math.abs(time) };
    if (time < 0) {
      event.start = end.isDate ? { ...end, isDate: false, zone: event.start.zone } : end;
      throw new Error("DTEND is before DTSTART: they are read in the other order");
    }
    return;
  }
  const duration = first(component, "DURATION");
  if (duration) event.span = spanOf(length(duration.value, "DURATION"), event.start);
}

function spanOf(given: Length, start: Moment): Span {
  if (given.days < 0 || given.time < 0) throw new Error("DURATION is negative: the event is read without it");
  checked(start.local + given.days * DAY + given.time, "DURATION");
  if (!start.isDate) return { nominal: given };
  return { days: Math.max(1, given.days + Math.ceil(given.time / DAY)) };
}

function ruleOf(property: Property, start: Moment, zones: CalendarZones): { rule: Rule; until: number } {
  let rule: Rule;
  try {
    rule = parseRule(property.value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${property.name} is "${shown(property.value)}": ${reason}; without it, the event does not repeat`);
  }
  if (rule.until === undefined) return { rule, until: Infinity };
  const end = moment(rule.until, { name: "UNTIL", parameters: "", value: rule.until }, zones);
  if (start.isDate) return { rule, until: Math.floor(end.local / DAY) * DAY };
  // UNTIL is in UTC; programs also write a date, or a local time, which are in the zone of the start.
  const isUtc = /Z$/i.test(rule.until.trim());
  return { rule, until: isUtc ? start.zone.local(timeOf(end)) : end.local };
}

function additional(value: string, property: Property, zones: CalendarZones): Additional {
  const [begin = "", end] = value.split("/");
  const start = moment(begin, property, zones);
  if (end === undefined) return { start, span: undefined };
  if (/^[+-]?P/i.test(end)) return { start, span: spanOf(length(end, property.name), start) };
  return { start, span: { exact: Math.max(0, timeOf(moment(end, property, zones)) - timeOf(start)) } };
}

/** The values of a property with several. vCalendar 1.0 separates them by `;`. */
function values({ value }: Property): string[] {
  return value.split(/[,;]/).filter((one) => one.trim() !== "");
}

/** The end of an occurrence of this length, as a time. `start` is its start, and `local` the same in the zone. */
export function endOf(span: Span, start: number, local: number, { zone }: Moment): number {
  if ("days" in span) return zone.time(local + span.days * DAY);
  if ("exact" in span) return start + span.exact;
  const { days, time } = span.nominal;
  return (days === 0 ? start : zone.time(local + days * DAY)) + time;
}

/** The longest possible length of an occurrence, in milliseconds. */
export function longest(span: Span): number {
  if ("days" in span) return (span.days + 1) * DAY;
  return "exact" in span ? span.exact : (span.nominal.days + 1) * DAY + span.nominal.time;
}

/** The value of a property as trimmed text. */
export function text(component: Component, property: string): string | undefined {
  return textOf(first(component, property));
}
