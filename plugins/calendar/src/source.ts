// The files: which calendars there are, and what each holds, as text. What a file says is not understood here, so that
// the events that nobody asked for are never parsed: the parser takes a thousand times as long.
import { Denied, NotFound, compareText, decodeUtf8 } from "@belljar/guest";
import * as files from "@belljar/guest/files";

/** No larger file is read: to go through its text takes a good part of the fuel of a call. */
const LARGEST = 3 << 20;
const DEPTH = 8;
const TOP = new Set(["VEVENT", "VTIMEZONE", "VTODO", "VJOURNAL", "VFREEBUSY", "VAVAILABILITY"]);
const MOST_FILES = 1000;

/** A calendar, by its path. */
export interface Calendar {
  /** Relative to what was granted; with several directories, below the name of its own. */
  path: string;
  /** Where it is read. */
  file: string;
}

/** The parts of a calendar. */
export interface Parts {
  /** What stands before the first part. */
  head: string;
  zones: string[];
  events: string[];
}

/** The granted directories. */
export function roots(): string[] {
  const granted = files.granted();
  if (granted.length === 0) throw new Denied("this needs a directory of .ics files, and none was granted");
  return granted;
}

/** All calendars, sorted by path. */
export function calendars(): Calendar[] {
  const granted = roots();
  const found: Calendar[] = [];
  const walk = (directory: string, path: string, depth: number): void => {
    for (const { name, kind } of files.list(directory)) {
      if (name.startsWith(".") || found.length >= MOST_FILES) continue;
      const [file, inner] = [`${directory}/${name}`, path === "" ? name : `${path}/${name}`];
      if (kind === "directory" && depth < DEPTH) walk(file, inner, depth + 1);
      if (kind === "file" && name.toLowerCase().endsWith(".ics")) found.push({ path: inner, file });
    }
  };
  for (const root of granted) walk(root, granted.length === 1 ? "" : (root.split("/").pop() ?? root), 0);
  return found.sort((a, b) => compareText(a.path, b.path));
}

/** The calendar of this path. */
export function calendar(path: string): Calendar {
  const found = calendars().find((one) => one.path === path);
  if (!found) throw new NotFound();
  return found;
}

/** Size and time of the last change of a calendar. */
export function status(calendar: Calendar): { size: number; modified: Date | undefined } {
  return files.stat(calendar.file);
}

/** Reads a calendar. Throws an Error when it is none. */
export function read(calendar: Calendar): Parts {
  const { size } = files.stat(calendar.file);
  if (size > LARGEST) throw new Error(`it is larger than ${LARGEST >> 20} MiB`);
  const bytes = files.read(calendar.file);
  const text = decodeUtf8(bytes) ?? latin1(bytes);
  if (!/^\ufeff?\s*BEGIN:VCALENDAR/i.test(text.slice(0, 100))) throw new Error("it is not an iCalendar file");
  return split(text);
}

/** Splits a calendar into its parts. Goes through the text once: in this engine each time counts. */
export function split(text: string): Parts {
  const [head = "", ...pieces] = text.split("\nBEGIN:");
  const parts: Parts = { head, zones: [], events: [] };
  let open: string[] | undefined;
  const close = (into: string[], name: string): void => {
    const whole = `BEGIN:${pieces.slice(first, next).join("\nBEGIN:")}`;
    const end = whole.lastIndexOf(`\nEND:${name}`);
    // One that never ends stays as it is, and is told as broken by the parser.
    into.push(end < 0 ? whole : whole.slice(0, end + 5 + name.length));
  };
  let [first, next, name] = [0, 0, ""];
  for (const piece of pieces) {
    const begun = /^[^\r\n]{0,20}/.exec(piece)?.[0].trimEnd().toUpperCase() ?? "";
    // Anything else is within an event or a zone: an alarm, a change to daylight saving time.
    if (TOP.has(begun)) {
      if (open) close(open, name);
      open = begun === "VEVENT" ? parts.events : begun === "VTIMEZONE" ? parts.zones : undefined;
      [first, name] = [next, begun];
    }
    next += 1;
  }
  if (open) close(open, name);
  return parts;
}

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return text;
}
