// Finds calendars, and reads the parts of their files that a question needs. Most events of a file are outside of the asked
// span. Their text is dropped before it is parsed, and before it is decoded: both take many times as long as splitting.
import { Denied, Failed, NotFound, decodeLatin1 } from "@belljar/guest";
import * as files from "@belljar/guest/files";

import { encoded, parseComponent, textOf, unfold } from "./lines.js";

/** The MiB that one answer goes through, unless the operator says so: about as much as the default fuel suffices for. */
const MEBIBYTES = 7;
/** What a file costs besides its bytes, in bytes. */
const FILE = 900;
/** The bytes that are split at once. */
const CHUNK = 1 << 20;
const DEPTH = 8;
const MOST_FILES = 20_000;

/** A calendar, by its path. */
export interface Calendar {
  /** Relative to the granted directory; with several grants, it begins with the name of the directory. */
  path: string;
  /** The actual path of the file. */
  file: string;
}

/** An event's text, and the index of its head. */
export interface Source {
  text: string;
  head: number;
}

/** The parts of a calendar. */
export interface Parts {
  /** The text before the first part of each VCALENDAR of the file. */
  heads: string[];
  /** The texts of its VTIMEZONEs. */
  zones: string[];
  /** The texts of the wanted events. */
  events: Source[];
  /** The numbers of all its components, by name. */
  counts: Map<string, number>;
}

/** The bytes that this answer may still go through, and those that it might at its beginning. */
let [left, most] = [0, 0];

/** Begins an answer, with the operator's setting READ_MIB. */
export function beginAnswer(setting: string | undefined): void {
  const mebibytes = Number(setting || MEBIBYTES);
  if (!(mebibytes >= 1 && mebibytes <= 4096)) throw new Failed(`the setting READ_MIB is "${setting}": expected a number of MiB from 1 to 4096`);
  most = mebibytes * (1 << 20);
  left = most;
}

/** The calendars until the answer has gone through its bytes, and a message that says how to read the rest. */
export function* affordable(calendars: Calendar[], problems: string[]): Generator<Calendar> {
  for (let at = 0; at < calendars.length; at += 1) {
    const one = calendars[at];
    if (left <= 0 || !one) {
      const rest = `${calendars.length - at} calendars from "${one?.path}" on are not read: the others have ${most >> 20} MiB`;
      problems.push(`${rest}. Ask for one, with calendar=, or raise the setting READ_MIB and the limit fuel`);
      return;
    }
    yield one;
  }
}

/** The granted directories. */
export function roots(): string[] {
  const granted = files.granted();
  if (granted.length === 0) throw new Denied("no directory was granted; grant the mount a directory of .ics files, as fs");
  return granted;
}

/** All calendars, each directory by name, and messages about those that are left out. */
export function calendars(problems: string[] = []): Calendar[] {
  const granted = roots();
  const found: Calendar[] = [];
  let more = 0;
  const walk = (directory: string, path: string, depth: number): void => {
    const entries = files.list(directory);
    if (entries.unreadable > 0) problems.push(`"${path || "."}": ${entries.unreadable} names are not UTF-8, and cannot be read: rename these files`);
    for (const { name, kind } of entries) {
      if (name.startsWith(".")) continue;
      const inner = path === "" ? name : `${path}/${name}`;
      if (kind === "directory") {
        if (depth < DEPTH) walk(`${directory}/${name}`, inner, depth + 1);
        else problems.push(`"${inner}": it is deeper than ${DEPTH} directories`);
      } else if (kind === "file" && isCalendar(name)) {
        if (found.length < MOST_FILES) found.push({ path: inner, file: `${directory}/${name}` });
        else more += 1;
      }
    }
  };
  for (const root of granted) walk(root, granted.length === 1 ? "" : (root.split("/").pop() ?? root), 0);
  if (more > 0) problems.push(`${more} files more than ${MOST_FILES} are not read: grant a directory with fewer files`);
  return found;
}

/** True for the names of iCalendar files, and of vCalendar 1.0. */
function isCalendar(name: string): boolean {
  return name.endsWith(".ics") || [".ics", ".ical", ".icalendar", ".vcs"].some((end) => name.toLowerCase().endsWith(end));
}

/** The calendar with this path. */
export function calendar(path: string): Calendar {
  const found = direct(path);
  if (!found) throw new NotFound();
  return found;
}

/** Looks for one path without listing all. */
function direct(path: string): Calendar | undefined {
  const granted = roots();
  if (path.split("/").some((name) => name === "" || name.startsWith("."))) return undefined;
  for (const root of granted) {
    const prefix = granted.length === 1 ? "" : `${root.split("/").pop() ?? root}/`;
    if (!path.startsWith(prefix) || !isCalendar(path)) continue;
    const file = `${root}/${path.slice(prefix.length)}`;
    try {
      if (files.stat(file).kind === "file") return { path, file };
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
  }
  return undefined;
}

/** Size and time of the last change of a calendar. */
export function status(calendar: Calendar): { size: number; modified: Date | undefined } {
  return files.stat(calendar.file);
}

/**
 * Reads the wanted events of a calendar. Throws an Error if the file is too large or not an iCalendar file. `again` for a file
 * that the answer has already read.
 */
export function read(calendar: Calendar, wanted: (text: string) => boolean, again = false): Parts {
  const splitter = new Splitter(wanted);
  let bytes = files.read(calendar.file, { offset: 0, length: CHUNK });
  left -= again ? 0 : FILE;
  const is16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  // Units of two bytes are decoded in JavaScript, which costs more than all else.
  if (is16 && bytes.length === CHUNK) throw new Error("it is UTF-16, and larger than 1 MiB: save it as UTF-8");
  if (bytes.length === CHUNK) {
    const { size } = files.stat(calendar.file);
    if (size > most) {
      throw new Error(`it is larger than ${most >> 20} MiB: divide it by years, or raise the setting READ_MIB and the limit fuel`);
    }
    if (size > left + FILE && !again) throw new Error(`it is too large to be read with the other calendars: ask for it alone, with calendar=${calendar.path}`);
  }
  for (let offset = CHUNK; ; offset += CHUNK) {
    left -= again ? 0 : bytes.length;
    splitter.add(is16 ? utf16(bytes) : decodeLatin1(bytes));
    if (bytes.length < CHUNK) return splitter.end();
    bytes = files.read(calendar.file, { offset, length: CHUNK });
  }
}

/** Splits a calendar into its parts. */
export function splitCalendar(text: string, wanted: (text: string) => boolean = () => true): Parts {
  const splitter = new Splitter(wanted);
  splitter.add(text);
  return splitter.end();
}

/** Splits a text that comes in chunks at `BEGIN:V`, with the fewest operations, because these are slow in this engine. */
class Splitter {
  private readonly parts: Parts = { heads: [], zones: [], events: [], counts: new Map() };
  private rest = "";
  private started = false;
  private normalize: (text: string) => string = (text) => text;
  /** The pieces of the open event, and of what is in it. */
  private open: string[] = [];

  constructor(private readonly wanted: (text: string) => boolean) {}

  add(chunk: string): void {
    if (!this.started) {
      this.started = true;
      this.rest = "\n";
      if (!chunk.startsWith("BEGIN:VCALENDAR\r\n")) chunk = this.begin(chunk);
    }
    const pieces = (this.rest + this.normalize(chunk)).split("\nBEGIN:V");
    const last = pieces.pop() ?? "";
    for (const piece of pieces) this.take(piece);
    this.rest = `\nBEGIN:V${last}`;
  }

  /** Looks how a file is written that does not begin as it should. Returns the text from its beginning. */
  private begin(chunk: string): string {
    const begin = chunk.slice(0, 2000).replace(/^(?:\xef\xbb\xbf)?\s*/, "");
    if (!/^BEGIN:V(?:CALENDAR|EVENT)/i.test(begin)) throw new Error("it is not an iCalendar file");
    if (!chunk.includes("\n")) this.normalize = (text) => text.split("\r").join("\n");
    if (!begin.startsWith("BEGIN:V")) this.normalize = (text) => text.replace(/^(?:BEGIN|END):\w+/gim, (line) => line.toUpperCase());
    return chunk.slice(Math.min(chunk.length, 2000) - begin.length);
  }

  end(): Parts {
    this.take(this.rest.slice(8));
    this.close();
    return this.parts;
  }

  private take(piece: string): void {
    if (piece.startsWith("EVENT")) {
      this.close();
      this.open = [piece];
      return;
    }
    if (piece === "" || piece === "\n") return;
    if (piece.startsWith("CALENDAR")) {
      this.close();
      this.parts.heads.push(piece);
      return;
    }
    const name = /^[A-Z-]{0,20}/.exec(piece)?.[0] ?? "";
    switch (name) {
      case "TIMEZONE":
        this.close();
        this.parts.zones.push(`BEGIN:V${piece}`);
        break;
      case "TODO":
      case "JOURNAL":
      case "FREEBUSY":
      case "AVAILABILITY":
        this.close();
        this.count(`V${name}`);
        break;
      default:
        // An alarm, a place, or another component in the event.
        if (this.open.length > 0) this.open.push(piece);
    }
  }

  private close(): void {
    const [event = "", ...inner] = this.open;
    if (event === "") return;
    this.open = [];
    this.count("VEVENT");
    // Properties after an alarm are rare, and legal. What is not seen at once is parsed.
    const plain = inner.every((one) => /^(?:\r?\nEND:VEVENT|\s*$)/.test(one.split("\nEND:VALARM", 2)[1] ?? "?"));
    if (plain && !this.wanted(event)) return;
    this.parts.events.push({ text: `BEGIN:V${[event, ...inner].join("\nBEGIN:V")}`, head: this.parts.heads.length - 1 });
  }

  private count(name: string): void {
    this.parts.counts.set(name, (this.parts.counts.get(name) ?? 0) + 1);
  }
}

/** A property of a calendar's head, as text. */
export function headText(head: string | undefined, ...names: string[]): string | undefined {
  if (head === undefined) return undefined;
  const { properties } = parseComponent(`BEGIN:V${head}`);
  for (const name of names) {
    const found = textOf(properties.get(name)?.[0]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The UID of an event's text, or an empty text. */
export function uidOf(text: string): string {
  const line = text.split("\nUID", 2)[1];
  if (line === undefined) return "";
  const at = line.indexOf("\n");
  // A folded line goes on with a space or a tab.
  const whole = line[at + 1] === " " || line[at + 1] === "\t" ? (unfold(line).split("\n", 1)[0] ?? "") : at < 0 ? line : line.slice(0, at);
  const colon = whole.indexOf(":");
  return textOf({ name: "UID", parameters: "", value: whole.slice(colon + 1) }) ?? "";
}

function utf16(bytes: Uint8Array): string {
  const swapped = bytes[0] === 0xfe;
  const pieces: string[] = [];
  for (let at = 2; at + 1 < bytes.length; at += 8192) {
    const units: number[] = [];
    for (let one = at; one + 1 < bytes.length && one < at + 8192; one += 2) {
      const [low = 0, high = 0] = swapped ? [bytes[one + 1], bytes[one]] : [bytes[one], bytes[one + 1]];
      units.push(low | (high << 8));
    }
    pieces.push(String.fromCharCode(...units));
  }
  return encoded(pieces.join(""));
}
