// Converts between local time and UTC. The JavaScript engine has no time zones, so the tables come from a package.
import { Failed } from "@belljar/guest";
import moment from "moment-timezone";

/** A local date and time, as on a wall clock. */
export interface Wall {
  year: number;
  /** 1 to 12. */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;

const known = new Map<string, Zone | undefined>();

/** A time zone of the IANA database, or undefined. Some programs write a path before its name. */
export function find(name: string): Zone | undefined {
  if (!known.has(name)) {
    const found = moment.tz.zone(name) ?? moment.tz.zone(/[^/]+\/[^/]+$/.exec(name)?.[0] ?? name);
    known.set(name, found ? new Zone(found) : undefined);
  }
  return known.get(name);
}

/** The zone in the operator's setting ZONE; UTC by default. */
export function zoneFromSetting(value: string | undefined): Zone {
  const name = value || "Etc/UTC";
  const zone = find(name);
  if (!zone) throw new Failed(`the setting ZONE is "${name}": no such time zone; write it as "Europe/Berlin"`);
  return zone;
}

/** A time zone. Times are in milliseconds since 1970. */
export class Zone {
  constructor(private readonly rules: NonNullable<ReturnType<typeof moment.tz.zone>>) {}

  get name(): string {
    return this.rules.name === "Etc/UTC" ? "UTC" : this.rules.name;
  }

  /** The time of a local date and time. */
  time(wall: Wall): number {
    const local = Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second);
    const before = this.rules.utcOffset(local - DAY);
    const after = this.rules.utcOffset(local + DAY);
    if (before === after) return local + before * MINUTE;
    // A local time that occurs twice means its first occurrence. A skipped local time gets the offset before the change.
    const found = [before, after]
      .map((offset) => local + offset * MINUTE)
      .filter((time, index) => this.rules.utcOffset(time) === (index === 0 ? before : after));
    return found.length > 0 ? Math.min(...found) : local + before * MINUTE;
  }

  /** The local date and time of a time. */
  wall(time: number): Wall {
    const local = new Date(time - this.rules.utcOffset(time) * MINUTE);
    return {
      year: local.getUTCFullYear(),
      month: local.getUTCMonth() + 1,
      day: local.getUTCDate(),
      hour: local.getUTCHours(),
      minute: local.getUTCMinutes(),
      second: local.getUTCSeconds(),
    };
  }

  /** As RFC 3339, with the zone's offset. */
  text(time: number): string {
    const offset = -this.rules.utcOffset(time);
    const local = new Date(time + offset * MINUTE).toISOString().slice(0, 19);
    if (offset === 0) return `${local}Z`;
    const [hours, minutes] = [Math.trunc(Math.abs(offset) / 60), Math.round(Math.abs(offset) % 60)];
    return `${local}${offset < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
  }
}

/** A number with at least two digits. */
export function two(number: number): string {
  return String(number).padStart(2, "0");
}
