// Parses and formats days and weeks: `2026-11-20`, `today`, `2026-W47`. A day is a number of days since 1970.
import { Invalid } from "@belljar/guest";

import { two, type Zone } from "./zones.js";

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
  const found = Date.UTC(Number(year), Number(month) - 1, Number(day)) / DAY;
  // `Date` accepts 2026-02-30 as a day of March.
  if (Number.isNaN(found) || dateText(found) !== text) {
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
    const found = monday(Date.UTC(Number(year), 0, 4) / DAY) + (Number(week) - 1) * 7;
    if (weekText(found) === text) return found;
  }
  throw new Invalid(`"${text}" is not a week: expected an ISO 8601 week such as 2026-W47, "this" or "next"`);
}

/** The local day of a time in a zone. */
export function dayOf(time: number, zone: Zone): number {
  const { year, month, day } = zone.wall(time);
  return Date.UTC(year, month - 1, day) / DAY;
}

/** The time at which a day begins in a zone. */
export function begins(day: number, zone: Zone): number {
  const date = new Date(day * DAY);
  return zone.time({
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: 0,
    minute: 0,
    second: 0,
  });
}

/** `2026-11-20` */
export function dateText(day: number): string {
  return new Date(day * DAY).toISOString().slice(0, 10);
}

/** `Friday, 20 November 2026` */
export function dayName(day: number): string {
  const date = new Date(day * DAY);
  return `${WEEKDAYS[date.getUTCDay()]}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/** `2026-W47` */
export function weekText(day: number): string {
  // A week belongs to the year of its Thursday (ISO 8601).
  const thursday = monday(day) + 3;
  const year = new Date(thursday * DAY).getUTCFullYear();
  const week = Math.floor((thursday - Date.UTC(year, 0, 1) / DAY) / 7) + 1;
  return `${year}-W${two(week)}`;
}

function monday(day: number): number {
  // The first day of 1970 was a Thursday.
  return day - ((((day + 3) % 7) + 7) % 7);
}
