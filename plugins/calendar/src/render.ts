// Renders occurrences and events: as Markdown for people and models, as JSON for programs.
import { encodePath, encodeSegment } from "@belljar/guest";

import type { Agenda, Entry } from "./agenda.js";
import { dateText, dayOfLocal, modulo, timeText, two } from "./dates.js";
import { dayName, dayOf } from "./days.js";
import { type Event, text } from "./event.js";
import { type Property, all, first, parameter, textOf } from "./lines.js";
import type { Zone } from "./zones.js";

/** An occurrence as JSON. All-day occurrences have dates instead of times; the end is the first day after. */
export function row(entry: Entry, zone: Zone): Record<string, unknown> {
  const { event, calendar } = entry;
  return {
    reference: reference(entry),
    summary: summary(event),
    start: stamp(event, entry.start, zone),
    end: stamp(event, entry.end, zone),
    allDay: event.start.isDate,
    location: line(text(event.component, "LOCATION")),
    status: text(event.component, "STATUS")?.toLowerCase(),
    repeats: entry.repeats,
    calendar: calendar.path,
  };
}

/** The days with their entries, without empty days. A longer event appears on each of its days. */
export function days(agenda: Agenda, from: number, to: number, zone: Zone): string {
  const byDay = new Map<number, string[]>();
  for (const entry of agenda.entries) {
    const last = Math.min(dayOf(Math.max(entry.end - 1, entry.start), zone), to - 1);
    for (let day = Math.max(dayOf(entry.start, zone), from); day <= last; day += 1) {
      const items = byDay.get(day);
      if (items) items.push(item(entry, day, zone));
      else byDay.set(day, [item(entry, day, zone)]);
    }
  }
  const lines: string[] = [];
  for (const day of [...byDay.keys()].sort((a, b) => a - b)) lines.push("", `## ${dayName(day)}`, "", ...(byDay.get(day) ?? []));
  return lines.length > 0 ? `${lines.join("\n")}\n` : "\nNothing.\n";
}

/** The events that a search found, each with its next time, or its last one. */
export function matches(entries: Entry[], now: number, zone: Zone): string {
  if (entries.length === 0) return "\nNothing.\n";
  const lines = entries.map((entry) => {
    const place = line(text(entry.event.component, "LOCATION"));
    const time = entry.end < now ? `last: ${when(entry, zone)}` : when(entry, zone);
    return `- ${time} **${summary(entry.event)}**${place ? `, ${place}` : ""}${isOff(entry.event) ? " (cancelled)" : ""} · ${entry.calendar.path} · ${reference(entry)}`;
  });
  return `\n${lines.join("\n")}\n`;
}

/** True for a cancelled event. */
export function isOff({ component }: Event): boolean {
  return text(component, "STATUS")?.toUpperCase() === "CANCELLED";
}

/** The list of problems at the end of an answer. */
export function problems(texts: string[]): string {
  if (texts.length === 0) return "";
  const shown = texts.slice(0, 20).map((text) => `- ${line(text)}`);
  if (texts.length > shown.length) shown.push(`- and ${texts.length - shown.length} more`);
  return `\nNot understood, or left out:\n\n${shown.join("\n")}\n`;
}

/** All properties of an event. */
export function details(event: Event, next: Entry[], zone: Zone): Record<string, unknown> {
  const { component } = event;
  const people = all(component, "ATTENDEE").map((property) => {
    const state = parameter(property, "PARTSTAT")?.toLowerCase();
    return state ? `${person(property)} (${state})` : person(property);
  });
  const organizer = first(component, "ORGANIZER");
  const rules = all(component, "RRULE").map((property) => property.value.trim());
  const { start } = event;
  return {
    uid: event.uid,
    summary: summary(event),
    start: next[0] ? stamp(event, next[0].start, zone) : start.isDate ? dateText(dayOfLocal(start.local)) : timeText(start.local),
    location: line(text(component, "LOCATION")),
    status: text(component, "STATUS")?.toLowerCase(),
    organizer: organizer ? person(organizer) : undefined,
    attendees: people.length > 0 ? people : undefined,
    repeats: rules.length > 0 ? rules : undefined,
    url: text(component, "URL"),
    categories: text(component, "CATEGORIES"),
    description: text(component, "DESCRIPTION"),
    next: next.map((entry) => ({ start: stamp(entry.event, entry.start, zone), end: stamp(entry.event, entry.end, zone) })),
  };
}

/** The title of an event. */
export function summary(event: Event): string {
  return line(text(event.component, "SUMMARY")) ?? "(no title)";
}

/** The reference of an occurrence's event. */
export function reference({ event, calendar }: Entry): string {
  return `events/${encodePath(calendar.path)}/${encodeSegment(event.uid)}`;
}

/** The time in words: `Friday, 20 November 2026, 10:00 to 11:00`. */
export function when(entry: Entry, zone: Zone): string {
  const [first, last] = [dayOf(entry.start, zone), dayOf(Math.max(entry.end - 1, entry.start), zone)];
  if (entry.event.start.isDate) return first === last ? dayName(first) : `${dayName(first)} to ${dayName(last)}`;
  const end = first === last ? clock(entry.end, zone) : `${dayName(last)} ${clock(entry.end, zone)}`;
  return `${dayName(first)}, ${clock(entry.start, zone)} to ${end}`;
}

function item(entry: Entry, day: number, zone: Zone): string {
  const { event, calendar } = entry;
  const place = line(text(event.component, "LOCATION"));
  const off = isOff(event) ? " (cancelled)" : "";
  const from = dayOf(entry.start, zone) < day ? "…" : clock(entry.start, zone);
  const to = dayOf(entry.end - 1, zone) > day ? "…" : clock(entry.end, zone);
  const time = event.start.isDate ? "all day" : entry.start === entry.end ? from : `${from}–${to}`;
  return `- ${time} **${summary(event)}**${place ? `, ${place}` : ""}${off} · ${calendar.path} · ${reference(entry)}`;
}

function stamp(event: Event, time: number, zone: Zone): string {
  return event.start.isDate ? dateText(dayOf(time, zone)) : zone.text(time);
}

function clock(time: number, zone: Zone): string {
  const minutes = Math.floor(zone.local(time) / 60_000);
  return `${two(modulo(Math.floor(minutes / 60), 24))}:${two(modulo(minutes, 60))}`;
}

function person(property: Property): string {
  const address = (textOf(property) ?? "").replace(/^mailto:/i, "");
  const name = parameter(property, "CN");
  return name && name !== address ? `${name} <${address}>` : address;
}

/** Joins lines: a line break in a title must not begin a heading. */
function line(text: string | undefined): string | undefined {
  return text?.replace(/\s+/g, " ");
}
