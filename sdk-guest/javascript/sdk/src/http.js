// The classes of the Fetch standard that a provider meets: Headers, Response and its body.
import { decodeUtf8, encodeUtf8 } from "./text.js";

/** Header fields. Names are compared in lower case. */
export class Headers {
  #fields = [];

  constructor(init = []) {
    const fields = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
    for (const [name, value] of fields) this.append(name, value);
  }

  append(name, value) {
    this.#fields.push([fieldName(name), fieldValue(name, value)]);
  }

  set(name, value) {
    const field = [fieldName(name), fieldValue(name, value)];
    const at = this.#fields.findIndex(([own]) => own === field[0]);
    this.delete(name);
    this.#fields.splice(at < 0 ? this.#fields.length : at, 0, field);
  }

  delete(name) {
    const lower = fieldName(name);
    this.#fields = this.#fields.filter(([own]) => own !== lower);
  }

  has(name) {
    return this.#all(name).length > 0;
  }

  get(name) {
    const all = this.#all(name);
    return all.length > 0 ? all.join(", ") : null;
  }

  getSetCookie() {
    return this.#all("set-cookie");
  }

  #all(name) {
    const lower = fieldName(name);
    return this.#fields.filter(([own]) => own === lower).map(([, value]) => value);
  }

  *entries() {
    for (const name of [...new Set(this.#fields.map(([own]) => own))].sort()) {
      if (name !== "set-cookie") yield [name, this.get(name)];
      else for (const value of this.getSetCookie()) yield [name, value];
    }
  }

  *keys() {
    for (const [name] of this.entries()) yield name;
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(receive, self) {
    for (const [name, value] of this.entries()) receive.call(self, value, name, this);
  }

  [Symbol.iterator]() {
    return this.entries();
  }
}

function fieldName(name) {
  const lower = String(name).toLowerCase();
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(lower)) throw new TypeError(`${JSON.stringify(lower)} is not the name of a header`);
  return lower;
}

function fieldValue(name, value) {
  const text = String(value).replace(/^[\t ]+|[\t ]+$/g, "");
  if (/[\0\r\n]/.test(text)) throw new TypeError(`the header ${JSON.stringify(name)} holds a line break: remove it`);
  return text;
}

/** The answer to a request. */
export class Response {
  #body;

  constructor(body = null, { status = 200, statusText = "", headers, url = "", redirected = false } = {}) {
    this.#body = body === null ? null : body instanceof Body ? body : new Body([toBytes(body)].values());
    Object.assign(this, { status, statusText, headers: new Headers(headers ?? []), url, redirected, type: "basic" });
  }

  get ok() {
    return this.status >= 200 && this.status <= 299;
  }

  get body() {
    return this.#body;
  }

  get bodyUsed() {
    return this.#body?.isUsed ?? false;
  }

  async bytes() {
    if (this.#body === null) return new Uint8Array();
    if (this.#body.isUsed) throw new TypeError("the body was read before");
    const pieces = [];
    for await (const piece of this.#body) pieces.push(piece);
    return joined(pieces);
  }

  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }

  /** The body as UTF-8, as the Fetch standard has it. */
  async text() {
    const bytes = await this.bytes();
    const text = decodeUtf8(bytes) ?? decodeBroken(bytes);
    return text.startsWith("\ufeff") ? text.slice(1) : text;
  }

  async json() {
    return JSON.parse(await this.text());
  }
}

/** A body that is read in pieces: by `for await`, or by a reader. */
export class Body {
  #pieces;
  #cancel;
  isUsed = false;
  locked = false;

  /** `pieces` is an iterator or an asynchronous iterator of Uint8Array; `cancel` ends it early. */
  constructor(pieces, cancel = () => {}) {
    this.#pieces = pieces;
    this.#cancel = cancel;
  }

  async cancel() {
    this.isUsed = true;
    this.#cancel();
  }

  getReader() {
    this.#lock();
    return {
      read: async () => {
        const { done = false, value } = await this.#pieces.next();
        return done ? { done, value: undefined } : { done, value };
      },
      cancel: () => this.cancel(),
      releaseLock: () => {
        this.locked = false;
      },
    };
  }

  async *[Symbol.asyncIterator]() {
    const reader = this.getReader();
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
    } finally {
      await reader.cancel();
      reader.releaseLock();
    }
  }

  #lock() {
    if (this.locked) throw new TypeError("the body is being read already");
    [this.locked, this.isUsed] = [true, true];
  }
}

/** The bytes of a text, of an ArrayBuffer, or of a view. */
export function toBytes(value) {
  if (typeof value === "string") return encodeUtf8(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError("a piece of a body is a text, an ArrayBuffer or a Uint8Array");
}

function joined(pieces) {
  if (pieces.length === 1) return pieces[0];
  const bytes = new Uint8Array(pieces.reduce((total, piece) => total + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Text of bytes that are not UTF-8: each byte that belongs to no character becomes U+FFFD. */
function decodeBroken(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = decodeUtf8(bytes.slice(at, at + length));
    text += character ?? "\ufffd";
    at += character === undefined ? 1 : length;
  }
  return text;
}
