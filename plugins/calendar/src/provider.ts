// The provider: references, the list, reads and completion.
import {
  type Argument,
  type Info,
  Invalid,
  NotFound,
  type Reading,
  type Resource,
  type Template,
  decode,
  encodePath,
  json,
  page,
  split,
  text,
} from "@belljar/guest";
import * as environment from "@belljar/guest/environment";

import { type Agenda, agenda, withUids } from "./agenda.js";
import { dateText } from "./dates.js";
import { begins, dayName, dayOf, monthName, monthText, parseDay, parseMonth, parseWeek, weekText } from "./days.js";
import * as render from "./render.js";
import { nextTimes, search, wordsOf } from "./search.js";
import { type Calendar, affordable, beginAnswer, calendar, calendars, headText, read as readCalendar, roots, status } from "./source.js";
import { type Zone, zoneFromSetting } from "./zones.js";

const DAY = 86_400_000;

/** The number of days ahead in the list and in `next`, unless `days` is given. */
const AHEAD = 30;
const MOST_AHEAD = 1000;

/** The most occurrences in an answer. */
const MOST_ENTRIES = 10_000;

/** The most calendars of which the overview shows the name and the number of events. */
const MOST_NAMED = 500;

type Query = Map<string, string>;

/** The provider. The host creates a new instance for each call; tests set the time. */
export class Calendars {
  constructor(private readonly now: () => number = Date.now) {}

  describe(): Info {
    return {
      title: environment.get("TITLE") || "Calendar",
      version: "0.1.0",
      description: "Calendars of .ics files: upcoming events, days, weeks, months, each event with its repetitions, and search.",
    };
  }

  listResources(cursor?: string): ReturnType<typeof page> {
    return page(this.listed(), cursor, 200);
  }

  listTemplates(): Template[] {
    const format = "format=json gives JSON instead of Markdown.";
    return [
      {
        template: "next{?days,calendar,format}",
        name: "next",
        description: `The events of the next {days} days (default ${AHEAD}), in one calendar or in all. ${format}`,
      },
      {
        template: "days/{date}{?calendar,format}",
        name: "day",
        description: `The events of a day: 2026-11-20, today, tomorrow or yesterday. ${format}`,
      },
      {
        template: "weeks/{week}{?calendar,format}",
        name: "week",
        description: `The events of an ISO 8601 week: 2026-W47, this or next. ${format}`,
      },
      {
        template: "months/{month}{?calendar,format}",
        name: "month",
        description: `The events of a month: 2026-11, this or next. ${format}`,
      },
      {
        template: "search{?q,calendar,format}",
        name: "search",
        description: `The events with all words of {q} in their texts, past ones too, each with its next time. ${format}`,
      },
      {
        template: "calendars/{+calendar}{?format}",
        name: "calendar",
        description: `A calendar: its name, the number of its events, and its upcoming events. ${format}`,
      },
      {
        template: "events/{+calendar}/{uid}{?format}",
        name: "event",
        description: `An event by its UID: all its properties, and its next occurrences. ${format}`,
      },
    ];
  }

  read(reference: string): Reading {
    const { path, query } = split(reference);
    const at = path.indexOf("/");
    const [family, rest] = at < 0 ? [path, ""] : [path.slice(0, at), path.slice(at + 1)];
    // Missing grants are reported before wrong settings.
    roots();
    beginAnswer(environment.get("READ_MIB"));
    if (path === "") return this.overview(reference);
    if (path === "next") return this.next(reference, query);
    if (path === "search") return this.search(reference, query);
    if (rest === "") throw new NotFound();
    const zone = this.zone();
    const today = dayOf(this.now(), zone);
    switch (family) {
      case "days": {
        const day = parseDay(decode(rest), today);
        return this.span(reference, dayName(day), day, day + 1, query);
      }
      case "weeks": {
        const monday = parseWeek(decode(rest), today);
        return this.span(reference, `Week ${weekText(monday)}`, monday, monday + 7, query);
      }
      case "months": {
        const [first, end] = parseMonth(decode(rest), today);
        return this.span(reference, monthName(first), first, end, query);
      }
      case "calendars":
        return this.calendar(reference, calendar(decode(rest)), query);
      case "events": {
        const slash = rest.lastIndexOf("/");
        if (slash < 0) throw new NotFound();
        return this.event(reference, calendar(decode(rest.slice(0, slash))), decode(rest.slice(slash + 1)), query);
      }
      default:
        throw new NotFound();
    }
  }

  complete(_template: string, argument: Argument): string[] {
    const known: Record<string, () => string[]> = {
      calendar: () => calendars().map(({ path }) => path),
      date: () => ["today", "tomorrow", "yesterday", ...this.following(dateText, 1)],
      week: () => ["this", "next", ...this.following(weekText, 7)],
      month: () => ["this", "next", ...this.following(monthText, 30)],
      format: () => ["json", "markdown"],
      days: () => ["7", "30", "90"],
    };
    return (known[argument.name]?.() ?? []).filter((value) => value.startsWith(argument.value)).slice(0, 100);
  }

  catalogRevision(): string {
    // The list has the events of the next days, so it changes every day.
    return revision(calendars(), dayOf(this.now(), this.zone()));
  }

  resourceRevision(reference: string): string {
    const { path } = split(reference);
    const [family = "", ...rest] = path.split("/");
    const known = ["", "next", "search"].includes(path) || ["days", "weeks", "months"].includes(family);
    if (known) return revision(calendars(), path === "next" || path === "search" ? Math.floor(this.now() / 60_000) : dayOf(this.now(), this.zone()));
    if (family === "events") rest.pop();
    if (family !== "events" && family !== "calendars") throw new NotFound();
    return revision([calendar(decode(rest.join("/")))], Math.floor(this.now() / 60_000));
  }

  private zone(): Zone {
    return zoneFromSetting(environment.get("ZONE"));
  }

  private following(name: (day: number) => string, step: number): string[] {
    const today = dayOf(this.now(), this.zone());
    return Array.from({ length: 14 }, (_, index) => name(today + index * step));
  }

  private *listed(): Generator<Resource> {
    const mimeType = "text/markdown";
    roots();
    yield { reference: "next", name: "next", title: "What comes next", mimeType };
    yield { reference: "days/today", name: "today", title: "Today", mimeType };
    yield { reference: "weeks/this", name: "week", title: "This week", mimeType };
    beginAnswer(environment.get("READ_MIB"));
    const all = calendars();
    for (const one of all) {
      const { modified } = status(one);
      yield {
        reference: `calendars/${encodePath(one.path)}`,
        name: one.path,
        description: "A calendar with its upcoming events.",
        mimeType,
        annotations: { lastModified: modified },
      };
    }
    const seen = new Set<string>();
    const zone = this.zone();
    for (const entry of agenda(all, this.now(), this.now() + AHEAD * DAY, zone).entries) {
      const reference = render.reference(entry);
      if (seen.has(reference)) continue;
      seen.add(reference);
      const title = render.summary(entry.event);
      yield { reference, name: entry.event.uid, title, description: render.when(entry, zone), mimeType };
    }
  }

  private overview(reference: string): Reading {
    const lines = ["| calendar | name | events | size |", "|---|---|---|---|"];
    const problems: string[] = [];
    let named = 0;
    for (const one of affordable(calendars(problems), problems)) {
      const link = `[${one.path.replaceAll("|", "\\|")}](calendars/${encodePath(one.path)})`;
      const { size } = status(one);
      // With one event in each file, names and numbers say nothing, and cost the most.
      if ((named += 1) > MOST_NAMED) {
        lines.push(`| ${link} | | | ${size} |`);
        continue;
      }
      try {
        const { heads, counts } = readCalendar(one, () => false);
        const name = heads[0]?.includes("NAME") ? (headText(heads[0], "X-WR-CALNAME", "NAME") ?? "") : "";
        lines.push(`| ${link} | ${name.replaceAll("|", "\\|")} | ${counts.get("VEVENT") ?? 0}${others(counts)} | ${size} |`);
      } catch (error) {
        lines.push(`| ${link} | | | ${size} |`);
        problems.push(`"${one.path}": ${error instanceof Error ? error.message : error}`);
      }
    }
    const zone = `\nTimes are in the zone ${this.zone().name}.\n`;
    const body = `# ${this.describe().title}\n${zone}\n${lines.join("\n")}\n${render.problems(problems)}`;
    return text(reference, body, { mimeType: "text/markdown" });
  }

  private search(reference: string, query: Query): Reading {
    const words = wordsOf(query.get("q"));
    const zone = this.zone();
    const problems: string[] = [];
    const found = search(chosen(query, problems), words, this.now(), zone);
    problems.push(...found.problems);
    if (isJson(query)) {
      const events = found.entries.map((entry) => render.row(entry, zone));
      return json(reference, { words, total: found.total, zone: zone.name, events, problems });
    }
    const title = `Events with ${words.map((word) => `"${word}"`).join(" and ")}: ${found.total}`;
    const body = `# ${title} (${zone.name})\n${render.matches(found.entries, this.now(), zone)}${render.problems(problems)}`;
    return text(reference, body, { mimeType: "text/markdown" });
  }

  private next(reference: string, query: Query): Reading {
    const days = query.get("days") || String(AHEAD);
    const ahead = Number(days);
    if (!/^\d{1,9}$/.test(days) || ahead < 1 || ahead > MOST_AHEAD) {
      throw new Invalid(`"days" is "${days}": expected a number from 1 to ${MOST_AHEAD}`);
    }
    const zone = this.zone();
    const problems: string[] = [];
    const found = agenda(chosen(query, problems), this.now(), this.now() + ahead * DAY, zone);
    found.entries = found.entries.filter(({ event }) => !render.isOff(event));
    found.problems.push(...problems);
    const today = dayOf(this.now(), zone);
    return this.answer(reference, `The next ${ahead} days`, found, today, today + ahead + 1, query);
  }

  private span(reference: string, title: string, from: number, to: number, query: Query): Reading {
    const zone = this.zone();
    const problems: string[] = [];
    const found = agenda(chosen(query, problems), begins(from, zone), begins(to, zone), zone);
    found.problems.push(...problems);
    return this.answer(reference, title, found, from, to, query);
  }

  private calendar(reference: string, one: Calendar, query: Query): Reading {
    const zone = this.zone();
    const today = dayOf(this.now(), zone);
    const found = agenda([one], this.now(), this.now() + AHEAD * DAY, zone);
    const [parsed] = found.parsed;
    const title = `${headText(parsed?.heads[0], "X-WR-CALNAME", "NAME") ?? one.path}: ${parsed?.counts.get("VEVENT") ?? 0} events${others(parsed?.counts)}`;
    return this.answer(reference, title, found, today, today + AHEAD + 1, query);
  }

  private event(reference: string, from: Calendar, uid: string, query: Query): Reading {
    const zone = this.zone();
    const parsed = withUids(from, new Set([uid]), zone);
    const series = parsed.series.get(uid);
    const event = series?.base ?? series?.exceptions[0];
    if (!series || !event) throw new NotFound();
    const problems = [...new Set([...parsed.problems, ...event.problems.map((text) => `"${from.path}": ${text}`)])];
    const next = nextTimes(series, this.now(), 5).map((one) => ({ ...one, calendar: from }));
    const details = render.details(next[0]?.event ?? event, next, zone);
    if (isJson(query)) return json(reference, { ...details, calendar: from.path, zone: zone.name, problems });
    const { summary, description, next: _, start: __, uid: ___, ...fields } = details;
    const lines = next.map((entry) => `- ${render.when(entry, zone)}`);
    const shown = Object.entries(fields).filter(([, value]) => value !== undefined);
    const table = shown.map(([key, value]) => `- ${key}: ${Array.isArray(value) ? value.join("; ") : String(value)}`);
    const body = [`# ${String(summary)}`, "", ...lines, "", ...table, `- calendar: ${from.path}`, `- zone: ${zone.name}`];
    const about = description === undefined ? "" : `\n${String(description)}\n`;
    return text(reference, `${body.join("\n")}\n${about}${render.problems(problems)}`, { mimeType: "text/markdown" });
  }

  private answer(reference: string, title: string, found: Agenda, from: number, to: number, query: Query): Reading {
    const zone = this.zone();
    const more = found.entries.length - MOST_ENTRIES;
    if (more > 0) {
      const rest = found.entries.splice(MOST_ENTRIES);
      const next = dateText(dayOf(rest[0]?.start ?? 0, zone));
      found.problems.unshift(`${more} more occurrences, from ${next} on: ask for a shorter span, such as days/${next} or weeks/${weekText(dayOf(rest[0]?.start ?? 0, zone))}, or add calendar=`);
    }
    if (isJson(query)) {
      const events = found.entries.map((entry) => render.row(entry, zone));
      return json(reference, { from: dateText(from), to: dateText(to), zone: zone.name, events, problems: found.problems });
    }
    const body = `# ${title} (${zone.name})\n${render.days(found, from, to, zone)}${render.problems(found.problems)}`;
    return text(reference, body, { mimeType: "text/markdown" });
  }
}

function chosen(query: Query, problems: string[]): Calendar[] {
  const path = query.get("calendar");
  return path ? [calendar(path)] : calendars(problems);
}

/** The components of a calendar that are not served. */
function others(counts: Map<string, number> | undefined): string {
  const names = { VTODO: "to-dos", VJOURNAL: "journals", VFREEBUSY: "free and busy times", VAVAILABILITY: "availabilities" };
  const found = Object.entries(names).flatMap(([name, text]) => (counts?.has(name) ? [`${counts.get(name)} ${text}`] : []));
  return found.length > 0 ? ` (not read: ${found.join(", ")})` : "";
}

function isJson(query: Query): boolean {
  const format = query.get("format") || "markdown";
  if (format !== "json" && format !== "markdown") throw new Invalid(`"format" is "${format}": expected "json" or "markdown"`);
  return format === "json";
}

function revision(of: Calendar[], time: number): string {
  let hash = 0;
  for (const one of of) {
    const { size, modified } = status(one);
    for (const character of `${one.path}\n${size} ${modified?.getTime()}\n`) {
      hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
    }
  }
  return `${of.length}-${(hash >>> 0).toString(16)}-${time}`;
}
