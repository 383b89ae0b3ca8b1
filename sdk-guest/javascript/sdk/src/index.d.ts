import type { Prompting, Skilled, Tooling } from "./calls.js";

export * from "./calls.js";
export * as schema from "./schema.js";
export type { Schema } from "./schema.js";

/** The reason why a provider failed: one of the kinds below. */
export class ProviderError extends Error {
  readonly kind: "not-found" | "invalid" | "denied" | "unavailable" | "failed";
}

/** The resource does not exist, or this caller must not know of it. */
export class NotFound extends ProviderError {
  constructor(message?: string, options?: ErrorOptions);
}

/** The reference, cursor or argument is malformed; the text says how. */
export class Invalid extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** The provider refuses, or a grant is missing; the text says which. */
export class Denied extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** A backend is down or busy; the same call may succeed later. */
export class Unavailable extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** Any other failure. Every other thrown value becomes this error. */
export class Failed extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Further data, passed on to clients as `_meta`. */
export type Meta = Record<string, Json>;

/** The description of a provider, for people. */
export interface Info {
  /** A name for people. */
  title?: string | undefined;
  version?: string | undefined;
  /** The purpose of the provider, in a sentence or two. */
  description?: string | undefined;
}

/** Hints about how a client may use a resource. */
export interface Annotations {
  /** The intended audience. */
  audience?: ("user" | "assistant")[] | undefined;
  /** From 0.0 (optional) to 1.0 (effectively required). */
  priority?: number | undefined;
  /** The time of the last change; a string is RFC 3339. */
  lastModified?: Date | string | undefined;
}

/** A picture for user interfaces. */
export interface Icon {
  /** A `data:` or `https:` URI. */
  src: string;
  mimeType?: string | undefined;
  /** Each as `48x48` or `any`. */
  sizes?: string[] | undefined;
}

interface Described {
  /** A short name for programs and logs. By default, the reference or the template. */
  name?: string | undefined;
  /** A name for people. */
  title?: string | undefined;
  /** Its contents and when to use it, for people and models. */
  description?: string | undefined;
  mimeType?: string | undefined;
  annotations?: Annotations | undefined;
  icons?: Icon[] | undefined;
  meta?: Meta | undefined;
}

/** One entry of the list: a resource without its contents. */
export interface Resource extends Described {
  /** The reference for `read`: relative to the mount and percent-encoded. */
  reference: string;
  /** Size of the contents in bytes. */
  size?: number | undefined;
}

/** A family of resources that can be read, but are not all listed. */
export interface Template extends Described {
  /** A relative URI template (RFC 6570), such as `cities/{name}`. */
  template: string;
}

/** One page of the list. */
export interface Page {
  resources: Resource[];
  /** The start of the next page; left out on the last page. Must contain everything that the next call needs. */
  nextCursor?: string | undefined;
}

interface Content {
  /** The reference of this content: the requested one, or one below it. */
  reference: string;
  mimeType?: string | undefined;
  meta?: Meta | undefined;
}

/** One content of a reading: text or bytes. */
export type Contents = Content & ({ text: string; blob?: undefined } | { blob: Uint8Array; text?: undefined });

/** The result of reading a resource. */
export interface Reading {
  /** At least one; several when the resource consists of parts. */
  contents: [Contents, ...Contents[]];
  /** How long the host may serve this reading from its cache, in milliseconds. If left out, the host must not cache it. */
  freshFor?: number | undefined;
}

/** A variable of a template and its value, possibly incomplete. */
export interface Argument {
  name: string;
  value: string;
}

/** Whole values, best first; or an object with these values and their total number. */
export type Suggestions = string[] | { values: string[]; total?: number | undefined };

/** A value, or a promise of one. A component waits for promises only if it imports `@belljar/guest/fetch`. */
export type Awaitable<T> = T | Promise<T>;

/** A provider. State does not outlive a call: each runs in a fresh sandbox. */
export interface Provider extends Partial<Parting>, Partial<Tooling>, Partial<Prompting>, Partial<Skilled> {
  /** The description of the provider. Must work without any grant. */
  describe?(): Awaitable<Info>;
  /** Lists resources, a page at a time; `page` makes such a page from entries in a stable order. */
  listResources?(cursor?: string): Awaitable<Page>;
  /** Lists all templates. */
  listTemplates?(): Awaitable<Template[]>;
  /** Reads one resource. The reference is well formed, but the resource may not exist: throw `NotFound` then. */
  read(reference: string): Awaitable<Reading>;
}

/** A provider that suggests values for the variables of its templates. */
export interface Completing {
  /** Suggests values for `argument`; `resolved` are the variables that already have a value. */
  complete(template: string, argument: Argument, resolved: Map<string, string>): Awaitable<Suggestions>;
}

/** A provider that detects changes cheaply. A revision is any text of at most 256 bytes. */
export interface Revising {
  /** The revision of the list. It differs from an earlier one if the listed resources or templates differ. */
  catalogRevision(): Awaitable<string>;
  /** The revision of one resource. It differs from an earlier one if a read would return other contents. */
  resourceRevision(reference: string): Awaitable<string>;
}

/** What a range counts: bytes, or lines of text. For a table, lines are rows. */
export type Unit = "bytes" | "lines";

/** The part that the caller asks for. Positions are counted from 0, and `end` is excluded. */
export type Range =
  | { unit: Unit; start: number; end?: number | undefined; last?: undefined }
  /** So many positions, counted back from the end. */
  | { unit: Unit; last: number; start?: undefined; end?: undefined };

/** The part that was read. */
export interface Extent {
  unit: Unit;
  start: number;
  /** The position after the last one, where the next part starts. */
  end: number;
  /** The number of positions, if it is known without reading all of the resource. */
  total?: number | undefined;
  /** Whether positions follow after `end`. */
  more: boolean;
}

/** The result of reading a part. */
export interface PartialReading extends Reading {
  /** If left out, the contents are the whole resource. A part is one content, with the requested reference. */
  extent?: Extent | undefined;
}

/** A provider of large resources and of directories. */
export interface Parting {
  /**
   * Reads a part of one resource. The host calls it in place of `read`: without a range, both must give the same. Then it
   * reads the whole resource if it has at most `most` bytes, else its first part. A part has at most `most` bytes, too, and
   * ends at the end of a line or of a character. If the resource has no lines, or no bytes, throw `Invalid`, and say what
   * it has. `cut` cuts a part out of what `read` gives.
   */
  readPart(reference: string, range: Range | undefined, most: number): Awaitable<PartialReading>;
  /**
   * Lists the resources directly below a reference, a page at a time; `""` is the mount itself. A directory has the media
   * type `inode/directory`, and its reference ends with `/`. If it is left out, there are no directories.
   */
  listBelow?(reference: string, cursor?: string): Awaitable<Page>;
}

/** The optional fields of a reading. */
export interface Options {
  mimeType?: string | undefined;
  meta?: Meta | undefined;
  freshFor?: number | undefined;
}

/** A reading of one text. */
export function text(reference: string, body: string, options?: Options): Reading;
/** A reading of one value, as JSON text. */
export function json(reference: string, value: unknown, options?: Options): Reading;
/** A reading of bytes that are not text. */
export function blob(reference: string, body: Uint8Array, options?: Options): Reading;
/** A reading of bytes: text of the media type given when they are UTF-8, `application/octet-stream` otherwise. */
export function fromBytes(reference: string, bytes: Uint8Array, options?: Options): Reading;
/** The page of at most `size` entries at `cursor`. `entries` is consumed only as far as the page needs. */
export function page(entries: Iterable<Resource>, cursor: string | undefined, size?: number): Page;

/** The requested part of a reading that is in memory, of at most `most` bytes. */
export function cut(reading: Reading, range: Range | undefined, most: number): PartialReading;
/** The positions from `start` to `end` of a resource of `total`. */
export function extent(unit: Unit, start: number, end: number, total: number): Extent;
/** The requested positions in a resource of `total`. Both are at most `total`. */
export function within(range: Range, total: number): { start: number; end: number };

/** Encodes one segment of a path, such as a file name. A `/` in it becomes `%2F`. */
export function encodeSegment(segment: string): string;
/** Encodes a relative path. Each `/` stays a `/`. */
export function encodePath(path: string): string;
/** Decodes a reference, or a part of one. Throws `Invalid` when it is not UTF-8 once decoded. */
export function decode(reference: string): string;
/** Splits a reference into its path, still encoded, and the decoded values of its query. */
export function split(reference: string): { path: string; query: Map<string, string> };

/** The text of UTF-8 bytes, or undefined if they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined;
/** The text of ISO 8859-1 bytes, one character for each byte. It costs much less than UTF-8. */
export function decodeLatin1(bytes: Uint8Array): string;
/** The bytes of a text. */
export function encodeUtf8(text: string): Uint8Array;
/** Compares texts in the order of their UTF-8 bytes. */
export function compareText(a: string, b: string): number;
