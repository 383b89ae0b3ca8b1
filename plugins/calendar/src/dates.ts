// The Gregorian calendar by arithmetic. A day is a number of days since 1970; a local time is in milliseconds since 1970.
// `Date` reads the years 0 to 99 as 1900 to 1999, fails in the text of years after 9999, and is slow in this engine.
const DAY = 86_400_000;

/** The first and the last day that the provider knows: the years 1 to 9999. */
export const FIRST_DAY = dayFrom(1, 1, 1);
export const LAST_DAY = dayFrom(9999, 12, 31);

/** A date of the Gregorian calendar. Months and days begin at 1. */
export interface Civil {
  year: number;
  month: number;
  day: number;
}

/** The day of a date. Months outside of 1 to 12 belong to other years. */
export function dayFrom(year: number, month: number, day: number): number {
  const months = month - 1;
  // Years of this arithmetic begin in March, so that a leap day is the last day.
  const moved = year + Math.floor(months / 12) - (modulo(months, 12) < 2 ? 1 : 0);
  const inYear = Math.floor((153 * modulo(months - 2, 12) + 2) / 5) + day - 1;
  return moved * 365 + Math.floor(moved / 4) - Math.floor(moved / 100) + Math.floor(moved / 400) + inYear - 719_468;
}

/** The date of a day. */
export function civil(day: number): Civil {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const inEra = shifted - era * 146_097;
  const years = Math.floor((inEra - Math.floor(inEra / 1460) + Math.floor(inEra / 36_524) - Math.floor(inEra / 146_096)) / 365);
  const inYear = inEra - (365 * years + Math.floor(years / 4) - Math.floor(years / 100));
  const months = Math.floor((5 * inYear + 2) / 153);
  const month = months < 10 ? months + 3 : months - 9;
  return { year: years + era * 400 + (month <= 2 ? 1 : 0), month, day: inYear - Math.floor((153 * months + 2) / 5) + 1 };
}

/** The number of days of a month. */
export function monthLength(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** The weekday of a day: 0 is Sunday. */
export function weekday(day: number): number {
  // The first day of 1970 was a Thursday.
  return modulo(day + 4, 7);
}

/** The day of a local time. */
export function dayOfLocal(local: number): number {
  return Math.floor(local / DAY);
}

/** `2026-11-20` */
export function dateText(day: number): string {
  const { year, month, day: inMonth } = civil(day);
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(inMonth)}`;
}

/** `2026-11-20T10:00:00` */
export function timeText(local: number): string {
  const day = dayOfLocal(local);
  const seconds = Math.floor((local - day * DAY) / 1000);
  const minutes = Math.floor(seconds / 60);
  return `${dateText(day)}T${two(Math.floor(minutes / 60))}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** The remainder of a division, never negative. */
export function modulo(number: number, by: number): number {
  return ((number % by) + by) % by;
}

/** A number with at least two digits. */
export function two(number: number): string {
  return number < 10 ? `0${number}` : String(number);
}
