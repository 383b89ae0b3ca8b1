// The values of properties: dates, times, durations and periods (RFC 5545, section 3.3), and the forms that programs write
// in their place.
import { FIRST_DAY, LAST_DAY, dayFrom, dayOfLocal, monthLength } from "./dates.js";
import { type Property, decoded, parameter } from "./lines.js";
import { UTC, type Zone } from "./zones.js";

const DAY = 86_400_000;

/** A date, or a time in a zone. */
export interface Moment {
  /** The local time in milliseconds since 1970; of a date, its midnight. */
  local: number;
  isDate: boolean;
  zone: Zone;
}

/** Finds the zones of a calendar. `floating` is the zone of times without one. */
export interface Zones {
  floating: Zone;
  /** The zone of times in UTC: another one if the calendar asks for it (X-WR-TIMEZONE). */
  utc: Zone;
  /** The zone of the answers. All-day events are on the same days in every zone, so dates are in this one. */
  own: Zone;
  /** The zone with this name. Notes a problem and returns `floating` if there is none. */
  named(name: string): Zone;
}

const FORM = /^(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d))?(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?)?$/i;

/** The moment of a property with one value. */
export function momentOf(property: Property, zones: Zones): Moment {
  return moment(property.value, property, zones);
}

/** The time of a moment, in milliseconds since 1970. */
export function timeOf({ local, zone }: Moment): number {
  return zone.time(local);
}

/** One value of a property. */
export function moment(text: string, property: Property, zones: Zones): Moment {
  const parts = FORM.exec(text.trim());
  if (!parts) throw new Error(`${property.name} is "${shown(text)}": expected a date or a time, such as 20261120T100000Z`);
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > monthLength(year, month)) {
    throw new Error(`${property.name} is "${shown(text)}": there is no such date`);
  }
  const local = dayFrom(year, month, day) * DAY;
  const isDate = parts[4] === undefined || parameter(property, "VALUE")?.toUpperCase() === "DATE";
  if (isDate) return { local, isDate, zone: zones.own };
  const [hour, minute, second] = [Number(parts[4]), Number(parts[5]), Number(parts[6] ?? 0)];
  // 24:00 is the end of the day. A leap second is the second before it, as most systems do not have it.
  if (hour > 24 || minute > 59 || second > 60 || (hour === 24 && minute + second > 0)) {
    throw new Error(`${property.name} is "${shown(text)}": there is no such time`);
  }
  const time = local + hour * 3_600_000 + minute * 60_000 + Math.min(second, 59) * 1000;
  const suffix = parts[7]?.toUpperCase();
  if (suffix === "Z") return inUtc(time, zones);
  if (suffix !== undefined) {
    const offset = (Number(suffix.slice(1, 3)) * 60 + Number(suffix.slice(-2))) * 60_000;
    return inUtc(suffix.startsWith("-") ? time + offset : time - offset, zones);
  }
  const named = parameter(property, "TZID");
  return { local: time, isDate, zone: named ? zones.named(named) : zones.floating };
}

function inUtc(time: number, { utc }: Zones): Moment {
  return { local: utc === UTC ? time : utc.local(time), isDate: false, zone: utc };
}

/** A length of time. Days keep the time of day when the clocks change; the rest is exact. */
export interface Length {
  days: number;
  /** In milliseconds. */
  time: number;
}

/** Parses a duration, such as `P1DT2H`. Months and years are not part of the form. */
export function length(text: string, name: string): Length {
  const parts = /^([+-])?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/i.exec(text.trim());
  if (!parts || !/\d/.test(text)) {
    throw new Error(`${name} is "${shown(text)}": expected weeks, days, hours, minutes or seconds, such as P1DT2H`);
  }
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts.slice(2).map((part) => Number(part ?? 0));
  const sign = parts[1] === "-" ? -1 : 1;
  return { days: sign * (weeks * 7 + days), time: sign * (hours * 3600 + minutes * 60 + seconds) * 1000 };
}

/** Throws if a local time is outside of the years 1 to 9999. */
export function checked(local: number, name: string): number {
  const day = dayOfLocal(local);
  if (day < FIRST_DAY || day > LAST_DAY + 1 || Number.isNaN(day)) throw new Error(`${name} leads out of the years 1 to 9999`);
  return local;
}

/** A text of a file in a message. */
export function shown(text: string): string {
  const trimmed = decoded(text.trim());
  return trimmed.length > 60 ? `${trimmed.slice(0, 60)}…` : trimmed;
}
