// Parses and formats days and weeks: `2026-11-20`, `today`, `2026-W47`. A day is a number of days since 1970.
import { Invalid } from "@belljar/guest";

import { civil, dateText, dayFrom, dayOfLocal, two, weekday } from "./dates.js";
import type { Zone } from "./zones.js";

const DAY = 86_400_000;

export const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
export const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;

/** Parses a date, or `today`, `tomorrow`, `yesterday`. */
export function parseDay(text: string, today: number): number {
  const relative = { yesterday: -1, today: 0, tomorrow: 1 }[text];
  if (relative !== undefined) return today + relative;
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  const found = dayFrom(Number(year), Number(month), Number(day));
  // 2026-02-30 is a day of March by arithmetic.
  if (year === undefined || dateText(found) !== text) {
    throw new Invalid(`"${text}" is not a day: expected a date such as 2026-11-20, "today", "tomorrow" or "yesterday"`);
  }
  return found;
}

/** The Monday of an ISO 8601 week, or of `this` or `next` week. */
export function parseWeek(text: string, today: number): number {
  const relative = { this: 0, next: 7 }[text];
  if (relative !== undefined) return monday(today) + relative;
  const [, year, week] = /^(\d{4})-W(\d{2})$/.exec(text) ?? [];
  if (year !== undefined && week !== undefined) {
    // The fourth of January is always in the first week (ISO 8601).
    const found = monday(dayFrom(Number(year), 1, 4)) + (Number(week) - 1) * 7;
    if (weekText(found) === text) return found;
  }
  throw new Invalid(`"${text}" is not a week: expected an ISO 8601 week such as 2026-W47, "this" or "next"`);
}

/** The first day of a month, and that of the next one. */
export function parseMonth(text: string, today: number): [number, number] {
  const now = civil(today);
  const relative = { this: 0, next: 1 }[text];
  const [, year, month] = /^(\d{4})-(\d{2})$/.exec(text) ?? [];
  if (relative !== undefined) return [dayFrom(now.year, now.month + relative, 1), dayFrom(now.year, now.month + relative + 1, 1)];
  if (year === undefined || Number(year) < 1 || Number(month) < 1 || Number(month) > 12) {
    throw new Invalid(`"${text}" is not a month: expected one such as 2026-11, "this" or "next"`);
  }
  return [dayFrom(Number(year), Number(month), 1), dayFrom(Number(year), Number(month) + 1, 1)];
}

/** The local day of a time in a zone. */
export function dayOf(time: number, zone: Zone): number {
  return dayOfLocal(zone.local(time));
}

/** The time at which a day begins in a zone. */
export function begins(day: number, zone: Zone): number {
  return zone.time(day * DAY);
}

/** `Friday, 20 November 2026` */
export function dayName(day: number): string {
  const { year, month, day: inMonth } = civil(day);
  return `${WEEKDAYS[weekday(day)]}, ${inMonth} ${MONTHS[month - 1]} ${year}`;
}

/** `November 2026` */
export function monthName(day: number): string {
  const { year, month } = civil(day);
  return `${MONTHS[month - 1]} ${year}`;
}

/** `2026-11` */
export function monthText(day: number): string {
  return dateText(day).slice(0, 7);
}

/** `2026-W47` */
export function weekText(day: number): string {
  // A week belongs to the year of its Thursday (ISO 8601).
  const thursday = monday(day) + 3;
  const { year } = civil(thursday);
  const week = Math.floor((thursday - dayFrom(year, 1, 1)) / 7) + 1;
  return `${String(year).padStart(4, "0")}-W${two(week)}`;
}

function monday(day: number): number {
  return day - ((weekday(day) + 6) % 7);
}
