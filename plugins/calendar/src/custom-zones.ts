// The zones of one calendar: those of the IANA database, and those that the calendar defines itself (VTIMEZONE). A
// definition is parsed only if its name is not known, and only the changes near the asked time are computed.
import { expand } from "./expand.js";
import { type Component, all, first, parseComponent } from "./lines.js";
import { parseRule } from "./rule.js";
import { type Zones, moment, momentOf, shown } from "./values.js";
import { type Offset, UTC, Zone, find } from "./zones.js";

const YEAR = 400 * 86_400_000;
const PLAIN: Zones = { floating: UTC, utc: UTC, own: UTC, named: () => UTC };

/** The zones of a calendar. */
export class CalendarZones implements Zones {
  floating: Zone;
  utc: Zone = UTC;
  /** What could not be understood since the last look. */
  problems: string[] = [];
  private readonly known = new Map<string, Zone | string>();

  /** `own` is the zone of the answers; `definitions` are the texts of the VTIMEZONEs of the file. */
  constructor(
    readonly own: Zone,
    private readonly definitions: string[],
    setting?: string,
  ) {
    this.floating = own;
    if (setting === undefined) return;
    const zone = find(setting);
    // Google and Apple write times without a zone, and UTC in place of the zone of a repetition.
    if (zone) [this.floating, this.utc] = [zone, zone];
    else this.problems.push(`X-WR-TIMEZONE is "${shown(setting)}": no such time zone; times without a zone are read in ${own.name}`);
  }

  named(name: string): Zone {
    let zone = this.known.get(name);
    if (zone === undefined) this.known.set(name, (zone = find(name) ?? this.defined(name)));
    if (zone instanceof Zone) return zone;
    this.problems.push(zone);
    return this.floating;
  }

  /** The zone that the calendar defines with this name, or why there is none. */
  private defined(name: string): Zone | string {
    const read = `its times are read in ${this.floating.name}`;
    const text = this.definitions.find((one) => one.includes(name) || one.includes("\n "));
    if (text === undefined) return `the time zone "${shown(name)}" is not known, and the file has no VTIMEZONE for it: ${read}`;
    try {
      for (const one of this.definitions) {
        const component = parseComponent(one);
        if (first(component, "TZID")?.value.trim() !== name) continue;
        const location = first(component, "X-LIC-LOCATION")?.value;
        return (location === undefined ? undefined : find(location)) ?? new Zone(name, changes(component));
      }
      return `the time zone "${shown(name)}" is not known, and the file has no VTIMEZONE for it: ${read}`;
    } catch (error) {
      return `the time zone "${shown(name)}": ${error instanceof Error ? error.message : String(error)}; ${read}`;
    }
  }
}

/** A STANDARD or DAYLIGHT part of a definition: the local times at which its offset begins. */
interface Observance {
  start: number;
  dates: number[];
  rules: { rule: ReturnType<typeof parseRule>; until: number }[];
  before: number;
  after: number;
}

function changes(component: Component): (time: number) => Offset {
  const observances = component.inner.filter(({ name }) => name === "STANDARD" || name === "DAYLIGHT").map(observance);
  if (observances.length === 0) throw new Error("its VTIMEZONE has no STANDARD and no DAYLIGHT");
  return (time) => {
    const found = observances.flatMap((one) => onsets(one, time)).sort((a, b) => a.time - b.time);
    const next = found.findIndex((one) => one.time > time);
    const current = next < 0 ? found.at(-1) : found[next - 1];
    const until = next < 0 ? time + YEAR / 2 : (found[next]?.time ?? Infinity);
    // Before its first change, a zone has the offset that this change ends.
    if (!current) return { from: -Infinity, until, offset: found[0]?.before ?? 0 };
    return { from: current.time, until, offset: current.after };
  };
}

/** The changes to an observance near a time, and the last one before. */
function onsets(one: Observance, time: number): { time: number; before: number; after: number }[] {
  const local = time + one.before;
  const [from, to] = [local - YEAR, local + YEAR];
  const found = [one.start, ...one.dates];
  for (const { rule, until } of one.rules) {
    found.push(...expand(rule, one.start, from, to, until));
    if (until < from) found.push(...expand(rule, one.start, until - YEAR, until, until));
  }
  return found.map((onset) => ({ time: onset - one.before, before: one.before, after: one.after }));
}

function observance(component: Component): Observance {
  const start = first(component, "DTSTART");
  if (!start) throw new Error(`a ${component.name} has no DTSTART`);
  const before = offset(component, "TZOFFSETFROM");
  const dates = all(component, "RDATE").flatMap((property) =>
    property.value.split(",").map((value) => moment(value.split("/", 1)[0] ?? "", property, PLAIN).local),
  );
  const rules = all(component, "RRULE").map((property) => {
    const rule = parseRule(property.value);
    // UNTIL is in UTC here.
    const until = rule.until === undefined ? Infinity : moment(rule.until, property, PLAIN).local + before;
    return { rule, until };
  });
  return { start: momentOf(start, PLAIN).local, dates, rules, before, after: offset(component, "TZOFFSETTO") };
}

function offset(component: Component, name: string): number {
  const value = first(component, name)?.value.trim() ?? "";
  const [, sign, hours, minutes, seconds] = /^([+-]?)(\d\d?):?(\d\d):?(\d\d)?$/.exec(value) ?? [];
  if (hours === undefined) throw new Error(`${name} is "${shown(value)}": expected an offset such as +0100`);
  const size = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds ?? 0)) * 1000;
  return sign === "-" ? -size : size;
}
