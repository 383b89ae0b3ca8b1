// Converts between local time and UTC. The JavaScript engine has no time zones, so the tables come from packages, by
// zones.js. The component's build runs this file up to its end, so that a call finds the tables unpacked.
import { Failed } from "@belljar/guest";

import packed from "../build/zones.json";
import { timeText, two } from "./dates.js";

const DAY = 86_400_000;

/** The offset east of UTC of a span of time, in milliseconds. The span begins at `from` and ends before `until`. */
export interface Offset {
  from: number;
  until: number;
  offset: number;
}

/** A time zone. Times and local times are in milliseconds since 1970. */
export class Zone {
  private last: Offset = { from: 0, until: 0, offset: 0 };

  constructor(
    readonly name: string,
    private readonly find: (time: number) => Offset,
  ) {}

  /** The offset east of UTC at a time. */
  offset(time: number): number {
    // Most questions are about neighbouring times.
    if (time < this.last.from || time >= this.last.until) this.last = this.find(time);
    return this.last.offset;
  }

  /**
   * The time of a local time. A local time that occurs twice means its first occurrence. A skipped local time gets the offset
   * before the change (RFC 5545, section 3.3.5).
   */
  time(local: number): number {
    const before = this.offset(local - DAY);
    const first = local - before;
    // Inside of one span, which is nearly always, nothing changes within a day.
    if (local + DAY < this.last.until) return first;
    const after = this.offset(local + DAY);
    if (before === after || this.offset(first) === before) return first;
    return this.offset(local - after) === after ? local - after : first;
  }

  /** The local time of a time. */
  local(time: number): number {
    return time + this.offset(time);
  }

  /** As RFC 3339, with the zone's offset. */
  text(time: number): string {
    // The form has no seconds in an offset; zones had some before 1970.
    const offset = Math.round(this.offset(time) / 60_000);
    const local = timeText(time + offset * 60_000);
    if (offset === 0) return `${local}Z`;
    const [hours, minutes] = [Math.trunc(Math.abs(offset) / 60), Math.abs(offset) % 60];
    return `${local}${offset < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
  }
}

/** A zone with one offset east of UTC, in milliseconds. */
export function fixed(name: string, offset: number): Zone {
  return new Zone(name, () => ({ from: -Infinity, until: Infinity, offset }));
}

export const UTC = fixed("UTC", 0);

/** The beginnings of the spans of all zones, one zone after the other, and the offsets in them. */
const begins = new Float64Array(packed.tables.reduce((sum, table) => sum + table.split(",").length, 0));
const offsets = new Int32Array(begins.length);
/** The index of the first span of each table, and the number of all spans. */
const firsts = new Int32Array(packed.tables.length + 1);
let filled = 0;
packed.tables.forEach((table, index) => {
  firsts[index] = filled;
  for (const part of table.split(",")) {
    const [begin, offset] = part.split(" ");
    begins[filled] = begin === "" ? -Infinity : Number(begin) * 1000;
    offsets[filled] = Number(offset) * 1000;
    filled += 1;
  }
});
firsts[packed.tables.length] = filled;
const names = new Map(Object.entries(packed.names) as [string, [string, number]][]);
const known = new Map<string, Zone | undefined>();

/**
 * A time zone by its name in the IANA database or in Windows, in any case. Some programs write a path before the name:
 * `/mozilla.org/20050126_1/Europe/Berlin`. Some write an offset: `UTC+01:00`.
 */
export function find(name: string): Zone | undefined {
  if (!known.has(name)) known.set(name, lookUp(name));
  return known.get(name);
}

function lookUp(name: string): Zone | undefined {
  const plain = name.trim().toLowerCase();
  if (plain === "z" || plain === "utc" || plain === "etc/utc") return UTC;
  const spelled = plain.replaceAll(" ", "_");
  for (let at = 0; at >= 0; at = spelled.indexOf("/", at) + 1 || -1) {
    const found = names.get(spelled.slice(at)) ?? (at === 0 ? names.get(plain) : undefined);
    // A single word after a path, such as `Local`, is not the name of a zone.
    if (found && (at === 0 || found[0].includes("/"))) return built(found[0], found[1]);
  }
  const [, sign, hours, minutes] = /^(?:utc|gmt)([+-])(\d{1,2}):?(\d\d)?$/.exec(plain) ?? [];
  if (hours === undefined) return undefined;
  const offset = (Number(hours) * 60 + Number(minutes ?? 0)) * 60_000;
  return fixed(name.trim(), sign === "-" ? -offset : offset);
}

function built(name: string, table: number): Zone {
  const [first, end] = [firsts[table] ?? 0, firsts[table + 1] ?? 0];
  return new Zone(name, (time) => {
    let [low, high] = [first, end];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((begins[middle] ?? 0) <= time) low = middle;
      else high = middle;
    }
    return { from: begins[low] ?? 0, until: high < end ? (begins[high] ?? 0) : Infinity, offset: offsets[low] ?? 0 };
  });
}

/** The zone in the operator's setting ZONE; UTC by default. */
export function zoneFromSetting(value: string | undefined): Zone {
  const name = value || "UTC";
  const zone = find(name);
  if (!zone) throw new Failed(`the setting ZONE is "${name}": no such time zone; write it as "Europe/Berlin"`);
  return zone;
}
