// The data that a provider returns: plain objects with the fields of wit/provider.wit in camelCase. That file describes
// each field in full. Optional fields may be left out.
import { Invalid } from "./errors.js";
import { decodeUtf8 } from "./text.js";

/** A reading of one text. */
export function text(reference, body, { mimeType = "text/plain", meta, freshFor } = {}) {
  return { contents: [{ reference, mimeType, text: body, meta }], freshFor };
}

/** A reading of one value, as JSON text. */
export function json(reference, value, { mimeType = "application/json", ...options } = {}) {
  return text(reference, JSON.stringify(value), { mimeType, ...options });
}

/** A reading of bytes that are not text. */
export function blob(reference, body, { mimeType = "application/octet-stream", meta, freshFor } = {}) {
  return { contents: [{ reference, mimeType, blob: body, meta }], freshFor };
}

/** A reading of bytes: text of this media type if they are UTF-8, otherwise a blob of type `application/octet-stream`. */
export function fromBytes(reference, bytes, { mimeType = "text/plain", ...options } = {}) {
  const decoded = decodeUtf8(bytes);
  return decoded === undefined ? blob(reference, bytes, options) : text(reference, decoded, { mimeType, ...options });
}

/**
 * The page of at most `size` entries that starts at `cursor`: the offset in decimal, from an earlier page.
 * `entries` may be any iterable, such as a generator, and is consumed only as far as the page needs.
 */
export function page(entries, cursor, size = 1000) {
  const start = cursor === undefined ? 0 : Number(cursor);
  const foreign = () => new Invalid(`the cursor ${JSON.stringify(cursor)} is not one of this provider's`);
  // Number("") is 0 and Number(" 1e1 ") is 10: a cursor must equal the text of its number.
  if (cursor !== undefined && (!Number.isSafeInteger(start) || start < 0 || String(start) !== cursor)) throw foreign();
  const resources = [];
  let at = 0;
  let more = false;
  for (const entry of entries) {
    if (at >= start + size) {
      more = true;
      break;
    }
    if (at >= start) resources.push(entry);
    at += 1;
  }
  // The entries before the cursor may have been deleted meanwhile.
  if (at < start) throw foreign();
  return { resources, nextCursor: more ? String(start + size) : undefined };
}
