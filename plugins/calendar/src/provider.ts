// The provider: references, the list, reads and completion.
import {
  type Argument,
  Invalid,
  NotFound,
  type Provider,
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

import { type Agenda, agenda, one } from "./agenda.js";
import { begins, dateText, dayName, dayOf, parseDay, parseWeek, weekText } from "./days.js";
import { type Series, timeOf } from "./event.js";
import { type Occurrence, occurrencesBetween } from "./occurrences.js";
import * as render from "./render.js";
import { type Calendar, calendar, calendars, read as readCalendar, roots, status } from "./source.js";
import { type Zone, zoneFromSetting } from "./zones.js";

const DAY = 86_400_000;

/** The number of days ahead in the list and in `next`, unless `days` is given. */
const AHEAD = 30;
const MOST_AHEAD = 1000;

type Query = Map<string, string>;

/** The provider. The host creates a new instance for each call; tests set the time. */
export class Calendars {
  constructor(private readonly now: () => number = Date.now) {}

  describe(): ReturnType<NonNullable<Provider["describe"]>> {
    return {
      title: environment.get("TITLE") || "Calendar",
      version: "0.1.0",
      description: "Calendars of .ics files: upcoming events, days, weeks, and each event with its repetitions.",
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
    if (path === "") return this.overview(reference);
    if (path === "next") return this.next(reference, query);
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
    const known = path === "" || path === "next" || ["days", "weeks"].includes(family);
    if (known) return revision(calendars(), path === "next" ? Math.floor(this.now() / 60_000) : dayOf(this.now(), this.zone()));
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
    for (const one of calendars()) {
      const link = `[${one.path.replaceAll("|", "\\|")}](calendars/${encodePath(one.path)})`;
      try {
        const { head, events } = readCalendar(one);
        const name = /^X-WR-CALNAME[^:\r\n]*:([^\r\n]+)/im.exec(head)?.[1]?.trim() ?? "";
        lines.push(`| ${link} | ${name.replaceAll("|", "\\|")} | ${events.length} | ${status(one).size} |`);
      } catch (error) {
        lines.push(`| ${link} | | | ${status(one).size} |`);
        problems.push(`"${one.path}": ${error instanceof Error ? error.message : error}`);
      }
    }
    const zone = `\nTimes are in the zone ${this.zone().name}.\n`;
    const body = `# ${this.describe().title}\n${zone}\n${lines.join("\n")}\n${render.problems(problems)}`;
    return text(reference, body, { mimeType: "text/markdown" });
  }

  private next(reference: string, query: Query): Reading {
    const days = query.get("days") || String(AHEAD);
    const ahead = Number(days);
    if (!/^\d{1,9}$/.test(days) || ahead < 1 || ahead > MOST_AHEAD) {
      throw new Invalid(`"days" is "${days}": expected a number from 1 to ${MOST_AHEAD}`);
    }
    const zone = this.zone();
    const found = agenda(chosen(query), this.now(), this.now() + ahead * DAY, zone);
    found.entries = found.entries.filter(({ event }) => !isOff(event.component.getFirstPropertyValue("status")));
    const today = dayOf(this.now(), zone);
    return this.answer(reference, `The next ${ahead} days`, found, today, today + ahead + 1, query);
  }

  private span(reference: string, title: string, from: number, to: number, query: Query): Reading {
    const zone = this.zone();
    return this.answer(reference, title, agenda(chosen(query), begins(from, zone), begins(to, zone), zone), from, to, query);
  }

  private calendar(reference: string, one: Calendar, query: Query): Reading {
    const { head, events } = readable(one);
    const name = /^X-WR-CALNAME[^:\r\n]*:([^\r\n]+)/im.exec(head)?.[1]?.trim() ?? one.path;
    const zone = this.zone();
    const today = dayOf(this.now(), zone);
    const found = agenda([one], this.now(), this.now() + AHEAD * DAY, zone);
    return this.answer(reference, `${name}: ${events.length} events`, found, today, today + AHEAD + 1, query);
  }

  private event(reference: string, from: Calendar, uid: string, query: Query): Reading {
    const zone = this.zone();
    const { series, problems } = one(from, uid, zone);
    const event = series?.base ?? series?.exceptions[0];
    if (!series || !event) throw new NotFound();
    const next = this.nextTimes(series, zone).map((one) => ({ ...one, calendar: from }));
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

  /** The occurrences from now, or from the beginning if the event is over. Extends the span step by step to save work. */
  private nextTimes(series: Series, zone: Zone): Occurrence[] {
    let found: Occurrence[] = [];
    for (const days of [14, 100, 800]) {
      found = occurrencesBetween(series, this.now(), this.now() + days * DAY, zone);
      if (found.length >= 5) break;
    }
    const event = series.base ?? series.exceptions[0];
    if (found.length === 0 && event) {
      const start = timeOf(event.start, event.component, "dtstart", zone);
      found = occurrencesBetween(series, start, start + 100 * DAY, zone);
    }
    return found.sort((a, b) => a.start - b.start).slice(0, 5);
  }

  private answer(reference: string, title: string, found: Agenda, from: number, to: number, query: Query): Reading {
    const zone = this.zone();
    if (isJson(query)) {
      const events = found.entries.map((entry) => render.row(entry, zone));
      return json(reference, { from: dateText(from), to: dateText(to), zone: zone.name, events, problems: found.problems });
    }
    const body = `# ${title} (${zone.name})\n${render.days(found, from, to, zone)}${render.problems(found.problems)}`;
    return text(reference, body, { mimeType: "text/markdown" });
  }
}

function chosen(query: Query): Calendar[] {
  const path = query.get("calendar");
  return path ? [calendar(path)] : calendars();
}

function readable(one: Calendar): ReturnType<typeof readCalendar> {
  try {
    return readCalendar(one);
  } catch {
    // A read of this calendar reports the error.
    return { head: "", zones: [], events: [] };
  }
}

function isJson(query: Query): boolean {
  const format = query.get("format") || "markdown";
  if (format !== "json" && format !== "markdown") throw new Invalid(`"format" is "${format}": expected "json" or "markdown"`);
  return format === "json";
}

function isOff(status: unknown): boolean {
  return String(status).toUpperCase() === "CANCELLED";
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
