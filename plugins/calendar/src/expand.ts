// The local times of a recurrence rule in a span. A rule is a sequence of periods: years, months, weeks or days. The periods
// before the span are skipped by arithmetic, whatever parts the rule has, so that the age of an event costs nothing.
import { civil, dayFrom, dayOfLocal, modulo, monthLength, weekday } from "./dates.js";
import type { Rule } from "./rule.js";

const DAY = 86_400_000;
const UNITS: Record<string, number> = { HOURLY: 3_600_000, MINUTELY: 60_000, SECONDLY: 1000 };

/** The most times of one rule in one answer, and the most periods of which the times are counted for COUNT. */
const MOST_TIMES = 5000;
const MOST_COUNTED = 20_000;

/**
 * The local times of a rule from `from` to `to`, both included, in order. `until` is the local time of UNTIL. If there are too
 * many, these are the first ones, and `problems` gets a message.
 */
export function expand(rule: Rule, start: number, from: number, to: number, until: number, problems: string[] = []): number[] {
  return new Expansion(rule, start, problems).between(Math.max(from, start), Math.min(to, until));
}

class Expansion {
  private readonly day: number;
  private readonly clock: number;
  /** The local times of a day without those of HOURLY, MINUTELY and SECONDLY rules, from midnight. */
  private readonly clocks: number[];
  private readonly unit: number | undefined;
  private readonly weekBegin: number;

  constructor(
    private readonly rule: Rule,
    private readonly start: number,
    private readonly problems: string[],
  ) {
    this.day = dayOfLocal(start);
    this.clock = start - this.day * DAY;
    this.unit = UNITS[rule.frequency];
    this.weekBegin = rule.weekStart - 4;
    this.clocks = this.unit === undefined ? clocks(rule, this.clock) : [];
  }

  between(from: number, to: number): number[] {
    const found: number[] = [];
    if (to < from) return found;
    let { count } = this.rule;
    if (this.unit !== undefined && count !== undefined && this.isPlain()) {
      // One time in each period: the last one follows from the first.
      if (count === 0) return found;
      to = Math.min(to, this.start + (count - 1) * this.rule.interval * this.unit);
      count = undefined;
    }
    const step = this.unit === undefined ? this.rule.interval : 1;
    const first = this.index(this.day);
    const last = this.index(dayOfLocal(to));
    let period = first + Math.max(0, Math.ceil((this.index(dayOfLocal(from)) - first) / step)) * step;
    let left = count === undefined ? Infinity : count - this.countBefore(first, period, step);
    for (; period <= last && left > 0; period += step) {
      for (const time of this.times(period)) {
        if (time < this.start) continue;
        if (time > to || left <= 0) return found;
        left -= 1;
        if (time >= from) found.push(time);
        if (found.length < MOST_TIMES) continue;
        this.problems.push(`it repeats more than ${MOST_TIMES} times in this span, and the rest is left out: ask for a shorter span`);
        return found;
      }
    }
    return found;
  }

  /** The number of times in the periods before `end`. */
  private countBefore(first: number, end: number, step: number): number {
    const { rule } = this;
    if (end <= first) return 0;
    const inFirst = this.times(first).filter((time) => time >= this.start).length;
    const periods = (end - first) / step - 1;
    if (periods <= 0) return inFirst;
    if (this.isRegular()) return inFirst + periods * this.times(first + step).length;
    let found = inFirst;
    let counted = 0;
    for (let period = first + step; period < end && found < (rule.count ?? 0); period += step) {
      found += this.times(period).length;
      if ((counted += 1) > MOST_COUNTED) throw new Error(`its COUNT is ${rule.count}: more periods than ${MOST_COUNTED} would have to be counted`);
    }
    return found;
  }

  /** True if all periods after the first have the same number of times, so that these need not be counted one by one. */
  private isRegular(): boolean {
    const { rule, unit } = this;
    const { frequency, weekdays, monthDays } = rule;
    if (rule.positions.length + rule.weeks.length + rule.yearDays.length > 0) return false;
    if (unit !== undefined) return false;
    if (frequency === "DAILY") return weekdays.length + monthDays.length + rule.months.length === 0;
    if (frequency === "WEEKLY") return monthDays.length + rule.months.length === 0;
    if (frequency === "MONTHLY" && rule.months.length > 0) return false;
    // Each month has the days 1 to 28, and the last 28, and each weekday four times.
    if (weekdays.length > 0) return monthDays.length === 0 && alike(weekdays.map(({ nth }) => nth), 4);
    return alike(monthDays.length > 0 ? monthDays : [civil(this.day).day], 28);
  }

  /** True for a rule without any part that adds times or leaves some out. */
  private isPlain(): boolean {
    const { months, weeks, yearDays, monthDays, weekdays, hours, minutes, seconds, positions } = this.rule;
    return [months, weeks, yearDays, monthDays, weekdays, hours, minutes, seconds, positions].every((part) => part.length === 0);
  }

  /** The number of the period that has this day. */
  private index(day: number): number {
    switch (this.rule.frequency) {
      case "YEARLY":
        return civil(day).year;
      case "MONTHLY": {
        const { year, month } = civil(day);
        return year * 12 + month - 1;
      }
      case "WEEKLY":
        return Math.floor((day - this.weekBegin) / 7);
      default:
        return day;
    }
  }

  /** The times of a period, in order. Those before the start are among them. */
  private times(period: number): number[] {
    const { rule, unit } = this;
    const days = this.days(period);
    if (unit !== undefined) return days.flatMap((day) => this.timesOfDay(day, unit));
    const found: number[] = [];
    for (const day of days) for (const clock of this.clocks) found.push(day * DAY + clock);
    return rule.positions.length > 0 ? chosen(found, rule.positions) : found;
  }

  /** The times of an HOURLY, MINUTELY or SECONDLY rule on a day. */
  private timesOfDay(day: number, unit: number): number[] {
    const { rule, start } = this;
    const found: number[] = [];
    const midnight = day * DAY;
    const step = unit * rule.interval;
    const aligned = start - modulo(start, unit);
    // The first period of the day that the interval meets.
    let time = midnight + modulo(aligned - midnight, step);
    for (; time < midnight + DAY; time += step) {
      if (time + unit <= start) continue;
      const inDay = time - midnight;
      if (rule.hours.length > 0 && !rule.hours.includes(Math.floor(inDay / 3_600_000))) {
        // Skips the rest of the hour.
        time += Math.max(0, Math.ceil((3_600_000 - (inDay % 3_600_000)) / step) - 1) * step;
        continue;
      }
      if (unit < 3_600_000 && rule.minutes.length > 0 && !rule.minutes.includes(Math.floor(inDay / 60_000) % 60)) {
        time += Math.max(0, Math.ceil((60_000 - (inDay % 60_000)) / step) - 1) * step;
        continue;
      }
      if (unit < 60_000 && rule.seconds.length > 0 && !rule.seconds.includes(Math.floor(inDay / 1000) % 60)) continue;
      const inner = within(rule, unit, this.clock).map((clock) => time + clock);
      found.push(...(rule.positions.length > 0 ? chosen(inner, rule.positions) : inner));
      if (found.length > MOST_COUNTED) return found;
    }
    return found;
  }

  /** The days of a period, in order and without repetitions. */
  private days(period: number): number[] {
    switch (this.rule.frequency) {
      case "YEARLY":
        return this.daysOfYear(period);
      case "MONTHLY": {
        const year = Math.floor(period / 12);
        const month = modulo(period, 12) + 1;
        if (this.rule.months.length > 0 && !this.rule.months.includes(month)) return [];
        return this.filtered(this.daysOfMonth(year, month), true);
      }
      case "WEEKLY": {
        const begin = period * 7 + this.weekBegin;
        const { weekdays } = this.rule;
        const wanted = weekdays.length > 0 ? weekdays.map((one) => one.weekday) : [weekday(this.day)];
        return this.filtered(sorted(wanted.map((one) => begin + modulo(one - this.rule.weekStart, 7))), true);
      }
      default:
        return this.filtered([period], false);
    }
  }

  private daysOfYear(year: number): number[] {
    const { rule } = this;
    const begin = dayFrom(year, 1, 1);
    const end = dayFrom(year + 1, 1, 1);
    if (rule.weeks.length > 0) return this.filtered(this.daysOfWeeks(year, begin, end), false);
    if (rule.yearDays.length > 0) {
      const days = rule.yearDays.map((day) => (day > 0 ? begin + day - 1 : end + day));
      return this.filtered(sorted(days.filter((day) => day >= begin && day < end)), false);
    }
    if (rule.weekdays.length > 0 && rule.months.length === 0) return this.filtered(nthDays(rule, begin, end), true);
    const all = rule.months.length > 0 ? rule.months : rule.monthDays.length > 0 ? MONTHS : [civil(this.day).month];
    return this.filtered(all.flatMap((month) => this.daysOfMonth(year, month)), true);
  }

  private daysOfMonth(year: number, month: number): number[] {
    const { rule } = this;
    const begin = dayFrom(year, month, 1);
    const length = monthLength(year, month);
    if (rule.weekdays.length > 0) return nthDays(rule, begin, begin + length);
    const days = rule.monthDays.length > 0 ? rule.monthDays : [civil(this.day).day];
    const found = days.map((day) => (day > 0 ? day : length + 1 + day)).filter((day) => day >= 1 && day <= length);
    return sorted(found.map((day) => begin + day - 1));
  }

  /** The days of the weeks of a year (BYWEEKNO). Without BYDAY, they are on the weekday of the start. */
  private daysOfWeeks(year: number, begin: number, end: number): number[] {
    const { rule } = this;
    const wanted = rule.weekdays.length > 0 ? rule.weekdays.map((one) => one.weekday) : [weekday(this.day)];
    const found: number[] = [];
    // The days of a week belong to the year in which they are. The first week of a year has its fourth of January.
    for (const one of [year, year + 1]) {
      const first = weekOf(dayFrom(one, 1, 4), rule.weekStart);
      const weeks = (weekOf(dayFrom(one + 1, 1, 4), rule.weekStart) - first) / 7;
      for (const number of rule.weeks) {
        const week = number > 0 ? number : weeks + 1 + number;
        if (week < 1 || week > weeks) continue;
        for (const day of wanted) found.push(first + (week - 1) * 7 + modulo(day - rule.weekStart, 7));
      }
    }
    return sorted(found.filter((day) => day >= begin && day < end));
  }

  /** The days that meet the parts that limit them. `weekdaysMet` if the days are already on the weekdays of the rule. */
  private filtered(days: number[], weekdaysMet: boolean): number[] {
    const { rule } = this;
    const { months, monthDays, yearDays, weekdays, weeks, frequency } = rule;
    const byDate = months.length + monthDays.length + yearDays.length > 0;
    const byWeek = weeks.length > 0 && frequency !== "YEARLY";
    if (!byDate && !byWeek && (weekdaysMet || weekdays.length === 0)) return days;
    return days.filter((day) => {
      if (!weekdaysMet && weekdays.length > 0 && !weekdays.some((one) => one.weekday === weekday(day))) return false;
      if (!byDate && !byWeek) return true;
      const { year, month, day: inMonth } = civil(day);
      if (months.length > 0 && !months.includes(month)) return false;
      if (monthDays.length > 0 && !monthDays.includes(inMonth) && !monthDays.includes(inMonth - 1 - monthLength(year, month))) return false;
      if (yearDays.length > 0) {
        const begin = dayFrom(year, 1, 1);
        if (!yearDays.includes(day - begin + 1) && !yearDays.includes(day - dayFrom(year + 1, 1, 1))) return false;
      }
      return !byWeek || this.daysOfWeeks(year, dayFrom(year, 1, 1), dayFrom(year + 1, 1, 1)).includes(day);
    });
  }
}

const MONTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

/** The weekdays of a rule in a month or a year, from `begin` to before `end`. */
function nthDays({ weekdays }: Rule, begin: number, end: number): number[] {
  const found: number[] = [];
  for (const { weekday: wanted, nth } of weekdays) {
    const first = begin + modulo(wanted - weekday(begin), 7);
    const last = end - 1 - modulo(weekday(end - 1) - wanted, 7);
    if (nth === 0) for (let day = first; day <= last; day += 7) found.push(day);
    else {
      const day = nth > 0 ? first + (nth - 1) * 7 : last + (nth + 1) * 7;
      if (day >= first && day <= last) found.push(day);
    }
  }
  return sorted(found);
}

/** The first day of the week that has this day. */
function weekOf(day: number, weekStart: number): number {
  return day - modulo(weekday(day) - weekStart, 7);
}

/** The times of a day of a rule, from midnight. */
function clocks(rule: Rule, clock: number): number[] {
  const hours = rule.hours.length > 0 ? rule.hours : [Math.floor(clock / 3_600_000)];
  const inner = within(rule, 3_600_000, clock);
  return hours.flatMap((hour) => inner.map((one) => hour * 3_600_000 + one));
}

/** The times of an hour or of a minute of a rule, from its begin. */
function within(rule: Rule, unit: number, clock: number): number[] {
  if (unit < 60_000) return [0];
  const seconds = rule.seconds.length > 0 ? rule.seconds : [Math.floor(clock / 1000) % 60];
  if (unit < 3_600_000) return seconds.map((second) => second * 1000);
  const minutes = rule.minutes.length > 0 ? rule.minutes : [Math.floor(clock / 60_000) % 60];
  return minutes.flatMap((minute) => seconds.map((second) => minute * 60_000 + second * 1000));
}

/** The times at the positions of BYSETPOS. */
function chosen(times: number[], positions: number[]): number[] {
  const found = positions.map((position) => times[position > 0 ? position - 1 : times.length + position]);
  return sorted(found.filter((time) => time !== undefined));
}

function alike(numbers: number[], most: number): boolean {
  return numbers.every((one) => one > 0 && one <= most) || numbers.every((one) => one < 0 && one >= -most);
}

function sorted(numbers: number[]): number[] {
  return numbers.length < 2 ? numbers : [...new Set(numbers)].sort((a, b) => a - b);
}
