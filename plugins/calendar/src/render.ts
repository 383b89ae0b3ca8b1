// Renders occurrences and events: as Markdown for people and models, as JSON for programs.
import { encodePath, encodeSegment } from "@belljar/guest";
import ICAL from "ical.js";

import type { Agenda, Entry } from "./agenda.js";
import { dateText, dayName, dayOf } from "./days.js";
import { type Event, text } from "./event.js";
import type { Zone } from "./zones.js";
import { two } from "./zones.js";

/** An occurrence as JSON. All-day occurrences have dates instead of times; the end is the first day after. */
export function row(entry: Entry, zone: Zone): Record<string, unknown> {
  const { event, calendar } = entry;
  return {
    reference: reference(entry),
    summary: summary(event),
    start: stamp(event, entry.start, zone),
    end: stamp(event, entry.end, zone),
    allDay: event.start.isDate,
    location: line(text(event.component, "location")),
    status: text(event.component, "status")?.toLowerCase(),
    repeats: entry.repeats,
    calendar: calendar.path,
  };
}

/** The days with their entries, without empty days. A longer event appears on each of its days. */
export function days(agenda: Agenda, from: number, to: number, zone: Zone): string {
  const lines: string[] = [];
  for (let day = from; day < to; day += 1) {
    const here = agenda.entries.filter((entry) => isOn(entry, day, zone));
    if (here.length === 0) continue;
    lines.push("", `## ${dayName(day)}`, "", ...here.map((entry) => item(entry, day, zone)));
  }
  return lines.length > 0 ? `${lines.join("\n")}\n` : "\nNothing.\n";
}

/** The list of problems at the end of an answer. */
export function problems(texts: string[]): string {
  if (texts.length === 0) return "";
  const shown = texts.slice(0, 20).map((text) => `- ${line(text)}`);
  if (texts.length > shown.length) shown.push(`- and ${texts.length - shown.length} more`);
  return `\nNot understood, and left out:\n\n${shown.join("\n")}\n`;
}

/** All properties of an event. */
export function details(event: Event, next: Entry[], zone: Zone): Record<string, unknown> {
  const { component } = event;
  const people = component.getAllProperties("attendee").map((property) => {
    const state = property.getFirstParameter("partstat")?.toLowerCase();
    return state ? `${person(property)} (${state})` : person(property);
  });
  const organizer = component.getFirstProperty("organizer");
  const rules = component.getAllProperties("rrule").map((property) => String(property.getFirstValue()));
  return {
    uid: event.uid,
    summary: summary(event),
    start: next[0] ? stamp(event, next[0].start, zone) : event.start.toString(),
    location: line(text(component, "location")),
    status: text(component, "status")?.toLowerCase(),
    organizer: organizer ? person(organizer) : undefined,
    attendees: people.length > 0 ? people : undefined,
    repeats: rules.length > 0 ? rules : undefined,
    url: text(component, "url"),
    categories: text(component, "categories"),
    description: text(component, "description"),
    next: next.map((entry) => ({ start: stamp(entry.event, entry.start, zone), end: stamp(entry.event, entry.end, zone) })),
  };
}

/** The title of an event. */
export function summary(event: Event): string {
  return line(text(event.component, "summary")) ?? "(no title)";
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
  const place = line(text(event.component, "location"));
  const off = text(event.component, "status") === "CANCELLED" ? " (cancelled)" : "";
  const from = dayOf(entry.start, zone) < day ? "…" : clock(entry.start, zone);
  const to = dayOf(entry.end - 1, zone) > day ? "…" : clock(entry.end, zone);
  const time = event.start.isDate ? "all day" : entry.start === entry.end ? from : `${from}–${to}`;
  return `- ${time} **${summary(event)}**${place ? `, ${place}` : ""}${off} · ${calendar.path} · ${reference(entry)}`;
}

function isOn(entry: Entry, day: number, zone: Zone): boolean {
  return dayOf(entry.start, zone) <= day && dayOf(Math.max(entry.end - 1, entry.start), zone) >= day;
}

function stamp(event: Event, time: number, zone: Zone): string {
  return event.start.isDate ? dateText(dayOf(time, zone)) : zone.text(time);
}

function clock(time: number, zone: Zone): string {
  const { hour, minute } = zone.wall(time);
  return `${two(hour)}:${two(minute)}`;
}

function person(property: ICAL.Property): string {
  const address = String(property.getFirstValue()).replace(/^mailto:/i, "");
  const name = property.getFirstParameter("cn");
  return name && name !== address ? `${name} <${address}>` : address;
}

/** Joins lines: a line break in a title must not begin a heading. */
function line(text: string | undefined): string | undefined {
  return text?.replace(/\s+/g, " ");
}
