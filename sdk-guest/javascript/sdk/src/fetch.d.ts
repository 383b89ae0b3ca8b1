// The part of the Fetch standard that a component has. Your own code and packages may also use the globals of these names.

/** A piece of a body. */
export type BodyPiece = string | ArrayBuffer | ArrayBufferView;

export interface RequestInit {
  method?: string;
  headers?: Headers | Record<string, string> | Iterable<readonly [string, string]>;
  /** A body that is an iterable is sent in pieces, as they come. */
  body?: BodyPiece | Iterable<BodyPiece> | AsyncIterable<BodyPiece> | null;
  /** `follow` (the default) follows at most 20 redirects. `manual` gives the redirect itself, `error` fails. */
  redirect?: "follow" | "manual" | "error";
  /** `AbortSignal.timeout(milliseconds)`. A component has no other signals. */
  signal?: AbortSignal;
}

export interface Headers {
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(receive: (value: string, name: string, headers: Headers) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** A body, which arrives in pieces. Leaving a `for await` early drops the rest. */
export interface Body extends AsyncIterable<Uint8Array> {
  readonly locked: boolean;
  cancel(): Promise<void>;
  getReader(): BodyReader;
}

export interface BodyReader {
  read(): Promise<{ done: false; value: Uint8Array } | { done: true; value: undefined }>;
  cancel(): Promise<void>;
  releaseLock(): void;
}

export interface Response {
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly headers: Headers;
  readonly url: string;
  readonly redirected: boolean;
  readonly body: Body | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  json(): Promise<unknown>;
  text(): Promise<string>;
}

export const Headers: new (init?: RequestInit["headers"]) => Headers;
export const Response: new (
  body?: BodyPiece | null,
  init?: { status?: number; statusText?: string; headers?: RequestInit["headers"] },
) => Response;

/**
 * Sends a request. A status such as 404 is an answer. Without a grant it rejects with `Denied`; if the server cannot be
 * reached or takes too long, with `Unavailable`; otherwise with `Failed`.
 *
 * The world of the component must import `wasi:http/outgoing-handler@0.2.12`.
 */
export function fetch(url: string, init?: RequestInit): Promise<Response>;
