// Converts between percent-encoded references and decoded paths and names. Encode once when listing,
// decode once when reading.
import { Invalid } from "./errors.js";

/** Encodes one segment of a path, such as a file name. A `/` in it becomes `%2F`. */
export function encodeSegment(segment) {
  // A segment may contain all characters that encodeURIComponent leaves. A lone surrogate has no encoding.
  return encodeURIComponent(segment.toWellFormed());
}

/** Encodes a relative path. Each `/` stays a `/`. */
export function encodePath(path) {
  return path.split("/").map(encodeSegment).join("/");
}

/** Decodes a reference, or a part of one. Throws `Invalid` when it is not UTF-8 once decoded. */
export function decode(reference) {
  try {
    return decodeURIComponent(reference);
  } catch {
    throw new Invalid(`${JSON.stringify(reference)} is not UTF-8 once decoded`);
  }
}

/** Splits a reference at its first `?` into its path, still encoded, and the decoded values of its query. */
export function split(reference) {
  const at = reference.indexOf("?");
  if (at < 0) return { path: reference, query: new Map() };
  const query = new Map();
  for (const pair of reference.slice(at + 1).split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    if (!query.has(name)) query.set(name, equals < 0 ? "" : decode(pair.slice(equals + 1)));
  }
  return { path: reference.slice(0, at), query };
}
