// Finds calendars and splits them into the texts of their parts. Does not parse the parts: parsing takes a thousand times
// as long as splitting, and most events of a file are outside of the requested span.
import { Denied, NotFound, compareText, decodeUtf8 } from "@belljar/guest";
import * as files from "@belljar/guest/files";

/** The largest file that is read, in bytes. Splitting it takes a large part of a call's fuel. */
const LARGEST = 3 << 20;
const DEPTH = 8;
const TOP = new Set(["VEVENT", "VTIMEZONE", "VTODO", "VJOURNAL", "VFREEBUSY", "VAVAILABILITY"]);
const MOST_FILES = 1000;

/** A calendar, by its path. */
export interface Calendar {
  /** Relative to the granted directory; with several grants, it begins with the name of the directory. */
  path: string;
  /** The actual path of the file. */
  file: string;
}

/** The parts of a calendar. */
export interface Parts {
  /** The text before the first part. */
  head: string;
  zones: string[];
  events: string[];
}

/** The granted directories. */
export function roots(): string[] {
  const granted = files.granted();
  if (granted.length === 0) throw new Denied("no directory was granted; grant the mount a directory of .ics files, as fs");
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

/** The calendar with this path. */
export function calendar(path: string): Calendar {
  const found = calendars().find((one) => one.path === path);
  if (!found) throw new NotFound();
  return found;
}

/** Size and time of the last change of a calendar. */
export function status(calendar: Calendar): { size: number; modified: Date | undefined } {
  return files.stat(calendar.file);
}

/** Reads a calendar. Throws an Error if the file is too large or not an iCalendar file. */
export function read(calendar: Calendar): Parts {
  const { size } = files.stat(calendar.file);
  if (size > LARGEST) throw new Error(`it is larger than ${LARGEST >> 20} MiB`);
  const bytes = files.read(calendar.file);
  const text = decodeUtf8(bytes) ?? latin1(bytes);
  if (!/^\ufeff?\s*BEGIN:VCALENDAR/i.test(text.slice(0, 100))) throw new Error("it is not an iCalendar file");
  return splitCalendar(text);
}

/** Splits a calendar into its parts in a single pass, because string operations are slow in this engine. */
export function splitCalendar(text: string): Parts {
  const [head = "", ...pieces] = text.split("\nBEGIN:");
  const parts: Parts = { head, zones: [], events: [] };
  let open: string[] | undefined;
  const close = (into: string[], name: string): void => {
    const whole = `BEGIN:${pieces.slice(first, next).join("\nBEGIN:")}`;
    const end = whole.lastIndexOf(`\nEND:${name}`);
    // A part without an end stays as it is, and the parser reports it.
    into.push(end < 0 ? whole : whole.slice(0, end + 5 + name.length));
  };
  let [first, next, name] = [0, 0, ""];
  for (const piece of pieces) {
    const begun = /^[^\r\n]{0,20}/.exec(piece)?.[0].trimEnd().toUpperCase() ?? "";
    // Other components are within an event or a zone: an alarm, a change to daylight saving time.
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
