// Parts: ranges of large resources, and cutting a part out of contents in memory.
import { Invalid } from "./errors.js";

// The units of UTF-16 that are measured at once.
const CHUNK = 1 << 16;

/** The requested positions in a resource of `total`. Both are at most `total`. */
export function within(range, total) {
  if (range.last !== undefined) return { start: Math.max(0, total - range.last), end: total };
  const start = Math.min(range.start ?? 0, total);
  return { start, end: Math.max(start, Math.min(range.end ?? total, total)) };
}

/** The positions from `start` to `end` of a resource of `total`. */
export function extent(unit, start, end, total) {
  return { unit, start, end, total, more: end < total };
}

/**
 * The requested part of a reading that is in memory, of at most `most` bytes. For a provider that cannot read a part cheaper
 * than the whole: `readPart: (reference, range, most) => cut(provider.read(reference), range, most)`.
 */
export function cut(reading, range, most) {
  const { contents } = reading;
  if (contents.length !== 1) {
    if (!range) return reading;
    throw new Invalid(`the resource has ${contents.length} contents and no parts; read it without a range`);
  }
  const [one] = contents;
  const source = one.blob ? ofBytes(one.blob) : ofText(String(one.text).toWellFormed());
  if (!range) return source.total <= most ? reading : partial(reading, source, source.bytes({}, most, true));
  if (range.unit === "bytes") return partial(reading, source, source.bytes(range, most, false));
  if (!source.lines) throw new Invalid('the resource is not text and has no lines; read it with "?bytes=0-65535"');
  return partial(reading, source, source.lines(range, most));
}

function partial(reading, { key }, [body, found]) {
  return { ...reading, contents: [{ ...reading.contents[0], [key]: body }], extent: found };
}

function ofBytes(blob) {
  const total = blob.length;
  const bytes = (range, most) => {
    const { start, end } = within(range, total);
    const stop = Math.min(end, start + most);
    return [blob.slice(start, stop), extent("bytes", start, stop, total)];
  };
  return { key: "blob", total, bytes };
}

function ofText(text) {
  const total = sizeOf(text);
  const bytes = (range, most, atLine) => {
    const asked = within(range, total);
    const wanted = Math.min(asked.end, asked.start + most);
    const start = characterAt(text, asked.start);
    let end = characterAt(text, wanted);
    // A range inside one character gives this character.
    if (end.byte <= start.byte && wanted > start.byte) end = { unit: end.next, byte: end.byte + end.size };
    if (atLine && end.unit < text.length) {
      const line = text.lastIndexOf("\n", end.unit - 1);
      if (line >= start.unit && end.unit > start.unit) {
        end = { unit: line + 1, byte: end.byte - sizeOf(text.slice(line + 1, end.unit)) };
      }
    }
    return [text.slice(start.unit, end.unit), extent("bytes", start.byte, end.byte, total)];
  };
  return { key: "text", total, bytes, lines: (range, most) => cutLines(text, range, most) };
}

/** Whole lines, as many as fit. */
function cutLines(text, range, most) {
  const total = countLines(text);
  const { start, end } = within(range, total);
  let line = 0;
  let begin = 0;
  for (; line < start; line += 1) begin = afterLine(text, begin);
  let stop = begin;
  for (let size = 0; line < end; line += 1) {
    const after = afterLine(text, stop);
    size += sizeOf(text.slice(stop, after));
    if (size > most) {
      if (line > start) break;
      const cure = 'read it with "?bytes=0-65535"';
      throw new Invalid(`line ${line + 1} has ${size} bytes; the limit of a read is ${most}; ${cure}`);
    }
    stop = after;
  }
  return [text.slice(begin, stop), extent("lines", start, line, total)];
}

function countLines(text) {
  let lines = 0;
  for (let at = 0; at < text.length; at = afterLine(text, at)) lines += 1;
  return lines;
}

function afterLine(text, at) {
  const found = text.indexOf("\n", at);
  return found < 0 ? text.length : found + 1;
}

/** The size of a text in bytes of UTF-8. Uses built-in functions, because a loop would use up the fuel of a call. */
function sizeOf(text) {
  if (/^[\x00-\x7f]*$/.test(text)) return text.length;
  const long = text.replace(/[\x00-\x7f]+/g, "");
  // Two units of UTF-16 are one character of four bytes, so each of them counts two.
  const three = long.replace(/[\x80-\u07ff\ud800-\udfff]+/g, "").length;
  return text.length + long.length + three;
}

/** The character that contains a byte: its place and size in both encodings. At the end of the text, its size is 0. */
function characterAt(text, byte) {
  let unit = 0;
  let at = 0;
  while (unit < text.length) {
    let next = Math.min(unit + CHUNK, text.length);
    // Both units of a character are in one chunk.
    if (next < text.length && (text.charCodeAt(next) & 0xfc00) === 0xdc00) next += 1;
    const size = sizeOf(text.slice(unit, next));
    if (at + size > byte) break;
    unit = next;
    at += size;
  }
  for (;;) {
    const code = text.codePointAt(unit);
    if (code === undefined) return { unit, byte: at, next: unit, size: 0 };
    const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const next = unit + (size === 4 ? 2 : 1);
    if (at + size > byte) return { unit, byte: at, next, size };
    unit = next;
    at += size;
  }
}
