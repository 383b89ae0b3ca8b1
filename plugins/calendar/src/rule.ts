// Recurrence rules (RFC 5545, section 3.3.10): their parts, and the rules of vCalendar 1.0, which become the same.
import { decoded } from "./lines.js";

export const FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"] as const;
export type Frequency = (typeof FREQUENCIES)[number];

/** A weekday, 0 is Sunday, and which one of the month or year: 1 the first, -1 the last, 0 all. */
export interface Nth {
  weekday: number;
  nth: number;
}

/** A rule. Empty lists are parts that the rule does not have. */
export interface Rule {
  frequency: Frequency;
  interval: number;
  count: number | undefined;
  /** The value of UNTIL, not parsed: its meaning depends on the start. */
  until: string | undefined;
  months: number[];
  weeks: number[];
  yearDays: number[];
  monthDays: number[];
  weekdays: Nth[];
  hours: number[];
  minutes: number[];
  seconds: number[];
  positions: number[];
  weekStart: number;
}

const WEEKDAYS = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/** The smallest and the largest number of each part, and if it counts from the end with a `-`. */
const LISTS: Record<string, [keyof Rule, number, number, boolean]> = {
  BYMONTH: ["months", 1, 12, false],
  BYWEEKNO: ["weeks", 1, 53, true],
  BYYEARDAY: ["yearDays", 1, 366, true],
  BYMONTHDAY: ["monthDays", 1, 31, true],
  BYHOUR: ["hours", 0, 23, false],
  BYMINUTE: ["minutes", 0, 59, false],
  BYSECOND: ["seconds", 0, 60, false],
  BYSETPOS: ["positions", 1, 366, true],
};

/** Parses a rule. */
export function parseRule(text: string): Rule {
  const plain = decoded(text).trim().toUpperCase();
  const parts = (plain.includes("=") ? plain : ofVersion1(plain)).split(";");
  const rule: Rule = {
    ...{ frequency: "DAILY", interval: 1, count: undefined, until: undefined, weekStart: 1, weekdays: [] },
    ...{ months: [], weeks: [], yearDays: [], monthDays: [], hours: [], minutes: [], seconds: [], positions: [] },
  };
  let frequent = false;
  for (const part of parts) {
    const [name = "", value = ""] = part.split("=").map((one) => one.trim());
    if (value === "") continue;
    const list = LISTS[name];
    if (list) (rule[list[0]] as number[]) = numbers(name, value, list);
    else if (name === "FREQ") {
      const found = FREQUENCIES.find((one) => one === value);
      if (!found) throw new Error(`FREQ is "${value}": expected one of ${FREQUENCIES.join(", ")}`);
      [rule.frequency, frequent] = [found, true];
    } else if (name === "INTERVAL") {
      rule.interval = Number(value);
      if (!/^\d+$/.test(value) || rule.interval < 1) throw new Error(`INTERVAL is "${value}": expected a number from 1`);
    } else if (name === "COUNT") {
      // Some programs write -1 for a rule without an end.
      if (!/^-?\d+$/.test(value)) throw new Error(`COUNT is "${value}": expected a number`);
      if (Number(value) >= 0) rule.count = Number(value);
    } else if (name === "UNTIL") rule.until = value;
    else if (name === "BYDAY") rule.weekdays = value.split(",").map((one) => nth(one.trim()));
    else if (name === "WKST") rule.weekStart = nth(value).weekday;
    else if (name === "RSCALE" && value !== "GREGORIAN") throw new Error(`RSCALE is "${value}": only GREGORIAN is understood`);
  }
  if (!frequent) throw new Error("it has no FREQ");
  return rule;
}

function numbers(name: string, value: string, [, least, most, signed]: [keyof Rule, number, number, boolean]): number[] {
  const found = value.split(",").map((one) => {
    const number = Number(one);
    const size = signed ? Math.abs(number) : number;
    if (!/^\s*[+-]?\d+\s*$/.test(one) || size < least || size > most) {
      throw new Error(`${name} is "${value}": expected numbers from ${least} to ${most}`);
    }
    return number;
  });
  return [...new Set(found)].sort((a, b) => a - b);
}

function nth(text: string): Nth {
  const [, number, name = ""] = /^([+-]?\d+)?([A-Z]{2})$/.exec(text) ?? [];
  const weekday = WEEKDAYS.indexOf(name);
  if (weekday < 0) throw new Error(`a weekday is "${text}": expected one of ${WEEKDAYS.join(", ")}, such as -1SU`);
  return { weekday, nth: Number(number ?? 0) };
}

/** A rule of vCalendar 1.0, such as `W2 TU TH #10` or `MP1 1- FR 19991231T000000Z`, in the form of iCalendar. */
function ofVersion1(text: string): string {
  const [, kind = "", interval = "", rest = ""] = /^(D|W|MP|MD|YM|YD)(\d+)\b(.*)$/.exec(text) ?? [];
  const words = rest.split(/\s+/).filter((word) => word !== "");
  // Without an end, a rule happens twice; "#0" is for ever.
  let end = ";COUNT=2";
  const values: string[] = [];
  for (const word of words) {
    if (/^#\d+$/.test(word)) end = word === "#0" ? "" : `;COUNT=${word.slice(1)}`;
    else if (/^\d{8}(T\d{6}Z?)?$/.test(word)) end = `;UNTIL=${word}`;
    else values.push(word.replace(/^(\d+)([+-])$/, (_, number: string, sign: string) => (sign === "-" ? `-${number}` : number)));
  }
  const [frequency, part] = {
    ...{ D: ["DAILY", ""], W: ["WEEKLY", "BYDAY"], MP: ["MONTHLY", "BYDAY"], MD: ["MONTHLY", "BYMONTHDAY"] },
    ...{ YM: ["YEARLY", "BYMONTH"], YD: ["YEARLY", "BYYEARDAY"] },
  }[kind] ?? ["", ""];
  if (frequency === "") throw new Error(`it is "${text}": expected parts such as FREQ=WEEKLY;BYDAY=MO`);
  let nth: string[] = [];
  const list = values.flatMap((value) => {
    if (kind !== "MP") return [value];
    if (/\d/.test(value)) {
      nth = [value];
      return [];
    }
    return nth.length > 0 ? nth.map((number) => `${number}${value}`) : [value];
  });
  return `FREQ=${frequency};INTERVAL=${interval}${list.length > 0 && part !== "" ? `;${part}=${list.join(",")}` : ""}${end}`;
}
