// Tests of the SDK itself: a provider that can be read in parts, with its types.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Invalid, NotFound, cut, extent, page, text } from "@belljar/guest";
import type { Page, PartialReading, Provider, Range, Reading } from "@belljar/guest";

const book = {
  read(reference: string): Reading {
    if (reference !== "book") throw new NotFound();
    return text(reference, "one\nzwölf\nthree\n", { freshFor: 5 });
  },

  readPart(reference: string, range: Range | undefined, most: number): PartialReading {
    return cut(book.read(reference), range, most);
  },

  listBelow(reference: string, cursor?: string): Page {
    if (reference !== "") throw new NotFound();
    return page([{ reference: "shelf/", mimeType: "inode/directory" }], cursor);
  },
} satisfies Provider;

test("a provider reads the part that is asked for", () => {
  const second = book.readPart("book", { unit: "lines", start: 1, end: 2 }, 100);
  assert.deepEqual([second.contents[0].text, second.extent], ["zwölf\n", extent("lines", 1, 2, 3)]);
  assert.equal(second.freshFor, 5);
  const last = book.readPart("book", { unit: "bytes", last: 6 }, 100);
  assert.deepEqual([last.contents[0].text, last.extent], ["three\n", extent("bytes", 11, 17, 17)]);
  assert.deepEqual(book.readPart("book", undefined, 17), book.read("book"));
  assert.deepEqual(book.readPart("book", undefined, 16).extent, extent("bytes", 0, 11, 17));
});

test("what cannot be read in parts is refused", () => {
  assert.throws(() => book.readPart("none", { unit: "lines", start: 0 }, 9), NotFound);
  assert.throws(() => book.readPart("book", { unit: "lines", start: 1 }, 4), Invalid);
  assert.throws(() => book.listBelow("none/"), NotFound);
  assert.equal(book.listBelow("").resources[0]?.reference, "shelf/");
});
