// UTF-8 for an engine without TextDecoder and TextEncoder. Both directions use built-in functions of the engine,
// because a loop over the bytes of a large file would use up the fuel of a call.

// The bytes that are decoded at once: intermediate values take several times as much memory.
const CHUNK = 1 << 16;

/** The text of UTF-8 bytes, or undefined if they are not UTF-8. */
export function decodeUtf8(bytes) {
  try {
    if (globalThis.TextDecoder) return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const pieces = [];
    for (let at = 0, end; at < bytes.length; at = end) {
      end = Math.min(at + CHUNK, bytes.length);
      // Moves the cut to the end of a character.
      while (end < bytes.length && end > at + CHUNK - 4 && (bytes[end] & 0xc0) === 0x80) end -= 1;
      const chunk = bytes.slice(at, end);
      const binary = decodeLatin1(chunk);
      // No built-in function decodes UTF-8 directly, and a loop would be slow.
      pieces.push(isAscii(chunk) ? binary : decodeURIComponent(escape(binary)));
    }
    return pieces.join("");
  } catch {
    return undefined;
  }
}

/** A text with one character for each byte: ISO 8859-1. It costs a part of what UTF-8 costs. */
export function decodeLatin1(bytes) {
  if (bytes.toBase64) return atob(bytes.toBase64());
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode.apply(null, bytes.subarray(at, at + CHUNK));
  return text;
}

/** Tests four bytes at a time, and eight times per iteration, because iterations are expensive. */
function isAscii(chunk) {
  const words = new Int32Array(chunk.buffer, 0, chunk.length >> 2);
  const turns = words.length & ~7;
  let all = 0;
  for (let at = 0; at < turns; at += 8) {
    all |= words[at] | words[at + 1] | words[at + 2] | words[at + 3];
    all |= words[at + 4] | words[at + 5] | words[at + 6] | words[at + 7];
  }
  for (let at = turns << 2; at < chunk.length; at += 1) all |= chunk[at] >> 7 ? 0x80 : 0;
  return (all & 0x80808080) === 0;
}

/** The bytes of a text. */
export function encodeUtf8(text) {
  if (globalThis.TextEncoder) return new TextEncoder().encode(text);
  const binary = unescape(encodeURIComponent(text.toWellFormed()));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/**
 * Sorts texts in the order of `compareText`, in place. The engine's own order is by UTF-16 units, and costs a hundredth of a
 * function in JavaScript; they differ only with characters from U+D800.
 */
export function sortTexts(texts) {
  return /[\ud800-\uffff]/.test(texts.join("")) ? texts.sort(compareText) : texts.sort();
}

/** Compares in the order of UTF-8 bytes, which is the order of code points, not of UTF-16 units. */
export function compareText(a, b) {
  if (a === b) return 0;
  const end = Math.min(a.length, b.length);
  for (let at = 0; at < end; at += 1) {
    const one = a.charCodeAt(at);
    const other = b.charCodeAt(at);
    if (one === other) continue;
    // Surrogates encode code points that sort after all other units.
    const [oneHigh, otherHigh] = [one >= 0xd800 && one < 0xe000, other >= 0xd800 && other < 0xe000];
    return oneHigh === otherHigh ? one - other : oneHigh ? 1 : -1;
  }
  return a.length - b.length;
}
