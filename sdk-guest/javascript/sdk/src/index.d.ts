/** Why a provider did not answer: one of the kinds below. */
export class ProviderError extends Error {
  readonly kind: "not-found" | "invalid" | "denied" | "unavailable" | "failed";
}

/** There is no such resource, or none that this caller may know of. */
export class NotFound extends ProviderError {
  constructor(message?: string, options?: ErrorOptions);
}

/** The reference, cursor or argument is malformed; the text says how. */
export class Invalid extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** Refused, or something that it needs was not granted; the text says what. */
export class Denied extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** Something that it depends on is down or busy; the same call may succeed later. */
export class Unavailable extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** Anything else. What else is thrown becomes this. */
export class Failed extends ProviderError {
  constructor(message: string, options?: ErrorOptions);
}

/** Any value that JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Further data, passed on to clients as `_meta`. */
export type Meta = Record<string, Json>;

/** What a provider says of itself. */
export interface Info {
  /** A name for people. */
  title?: string | undefined;
  version?: string | undefined;
  /** What it provides, in a sentence or two. */
  description?: string | undefined;
}

/** Hints about how a client may use a resource. */
export interface Annotations {
  /** Who it is meant for. */
  audience?: ("user" | "assistant")[] | undefined;
  /** From 0.0 (optional) to 1.0 (as good as required). */
  priority?: number | undefined;
  /** When it last changed; a string is RFC 3339. */
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
  /** A short name for programs and logs; the reference or template itself when left out. */
  name?: string | undefined;
  /** A name for people. */
  title?: string | undefined;
  /** What it holds and when to use it, for people and models. */
  description?: string | undefined;
  mimeType?: string | undefined;
  annotations?: Annotations | undefined;
  icons?: Icon[] | undefined;
  meta?: Meta | undefined;
}

/** One entry of the list: what can be read, without its contents. */
export interface Resource extends Described {
  /** What to read it by, relative to the mount and percent-encoded. */
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
  /** Where the next page starts; left out on the last one. Has to hold all that is needed to go on. */
  nextCursor?: string | undefined;
}

interface Content {
  /** What it is the content of: the reference that was asked for, or one below it. */
  reference: string;
  mimeType?: string | undefined;
  meta?: Meta | undefined;
}

/** One content of a reading: text or bytes. */
export type Contents = Content & ({ text: string; blob?: undefined } | { blob: Uint8Array; text?: undefined });

/** What reading a resource gave. */
export interface Reading {
  /** At least one; several when the resource consists of parts. */
  contents: [Contents, ...Contents[]];
  /** For how many milliseconds the host may serve it again without asking; left out: not at all. */
  freshFor?: number | undefined;
}

/** A variable of a template and its value, possibly only begun. */
export interface Argument {
  name: string;
  value: string;
}

/** Whole values, best first; or those and how many there are in all. */
export type Suggestions = string[] | { values: string[]; total?: number | undefined };

/** A provider of resources. State does not outlive a call: each runs in a fresh sandbox. */
export interface Provider {
  /** What the provider says of itself. Must work without any grant. */
  describe?(): Info;
  /** Lists resources, a page at a time; `page` does it for whatever can be had in a stable order. */
  listResources?(cursor?: string): Page;
  /** Lists all templates. */
  listTemplates?(): Template[];
  /** Reads one resource. The reference is well formed, but may never have been listed: throw `NotFound` then. */
  read(reference: string): Reading;
}

/** A provider that suggests values for the variables of its templates. */
export interface Completing {
  /** Suggests values for `argument`; `resolved` are the variables that have their value already. */
  complete(template: string, argument: Argument, resolved: Map<string, string>): Suggestions;
}

/** A provider that tells cheaply whether something changed. A revision is any text of at most 256 bytes. */
export interface Revising {
  /** Differs when the resources or templates that are listed differ. */
  catalogRevision(): string;
  /** Differs when reading the resource would give something else. */
  resourceRevision(reference: string): string;
}

/** What a reading may have besides its body. */
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
/** The page of at most `size` entries at `cursor`. `entries` is used no further than the page needs. */
export function page(entries: Iterable<Resource>, cursor: string | undefined, size?: number): Page;

/** Encodes one segment of a path, such as a file name. A `/` in it becomes `%2F`. */
export function encodeSegment(segment: string): string;
/** Encodes a relative path. Each `/` stays a `/`. */
export function encodePath(path: string): string;
/** Decodes a reference, or a part of one. Throws `Invalid` when it is not UTF-8 once decoded. */
export function decode(reference: string): string;
/** Splits a reference into its path, still encoded, and the decoded values of its query. */
export function split(reference: string): { path: string; query: Map<string, string> };

/** The text that bytes are, or undefined when they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined;
/** The bytes of a text. */
export function encodeUtf8(text: string): Uint8Array;
/** Compares texts in the order of their UTF-8 bytes. */
export function compareText(a: string, b: string): number;
