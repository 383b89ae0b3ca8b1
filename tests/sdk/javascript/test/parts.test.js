// Tests of the SDK itself: parts that are cut out of contents in memory.
import assert from "node:assert/strict";
import test from "node:test";

import { Invalid, blob, cut, extent, text, within } from "@belljar/guest";

function part(body, range, most) {
  const reading = cut(typeof body === "string" ? text("a", body) : blob("a", body), range, most);
  return [reading.contents[0].text ?? reading.contents[0].blob, reading.extent];
}

test("parts are cut out", () => {
  const whole = "1\n2\n3\n4";
  const bytes = Uint8Array.of(0, 0x9f, 0xff);
  for (const [body, range, most, expected, found] of [
    [whole, undefined, 7, whole, undefined],
    [whole, undefined, 5, "1\n2\n", extent("bytes", 0, 4, 7)],
    ["one two", undefined, 5, "one t", extent("bytes", 0, 5, 7)],
    ["é\né€", undefined, 6, "é\n", extent("bytes", 0, 3, 8)],
    [whole, { unit: "lines", start: 1, end: 3 }, 9, "2\n3\n", extent("lines", 1, 3, 4)],
    [whole, { unit: "lines", last: 2 }, 9, "3\n4", extent("lines", 2, 4, 4)],
    [whole, { unit: "lines", start: 9 }, 9, "", extent("lines", 4, 4, 4)],
    [whole, { unit: "lines", start: 3, end: 1 }, 9, "", extent("lines", 3, 3, 4)],
    [whole, { unit: "lines", start: 0 }, 4, "1\n2\n", extent("lines", 0, 2, 4)],
    [whole, { unit: "bytes", last: 3 }, 9, "3\n4", extent("bytes", 4, 7, 7)],
    ["aé", { unit: "bytes", start: 2, end: 3 }, 9, "é", extent("bytes", 1, 3, 3)],
    ["", { unit: "lines", start: 0 }, 9, "", extent("lines", 0, 0, 0)],
    [bytes, { unit: "bytes", start: 1, end: 2 }, 9, Uint8Array.of(0x9f), extent("bytes", 1, 2, 3)],
    [bytes, undefined, 2, Uint8Array.of(0, 0x9f), extent("bytes", 0, 2, 3)],
  ]) {
    assert.deepEqual(part(body, range, most), [expected, found], JSON.stringify([body, range, most]));
  }
  assert.deepEqual(within({ unit: "lines", last: 9 }, 4), { start: 0, end: 4 });
});

test("parts of any size join to the text, also across the chunks in which it is measured", () => {
  const pieces = ["aé€🔔\nb", "🔔".repeat(40000) + "€x\n", "a".repeat(65535) + "🔔é"];
  for (const [at, whole] of pieces.entries()) {
    const size = Buffer.byteLength(whole);
    for (const most of at === 0 ? [1, 2, 3, 4, 5, 11, 12] : [size, 40001, 65537, 131071]) {
      let [start, joined, more] = [0, "", true];
      while (more) {
        const [body, found] = part(whole, { unit: "bytes", start }, most);
        assert.ok(found.end > start, `${most}: ${JSON.stringify(found)}`);
        assert.equal(Buffer.byteLength(body), found.end - found.start);
        assert.equal(found.total, size);
        joined += body;
        [start, more] = [found.end, found.more];
      }
      assert.equal(joined, whole, String(most));
    }
  }
});

test("parts that cannot be given are refused", () => {
  const refused = (call, words) => assert.throws(call, (error) => error instanceof Invalid && error.message.includes(words));
  refused(() => part("12345", { unit: "lines", start: 0 }, 4), 'line 1 has 5 bytes; the limit of a read is 4; read it with "?bytes=');
  refused(() => part(Uint8Array.of(0x9f), { unit: "lines", start: 0 }, 4), "has no lines");
  const two = { contents: [...text("a", "1").contents, ...text("a/b", "2").contents], freshFor: 1 };
  assert.equal(cut(two, undefined, 0), two);
  refused(() => cut(two, { unit: "bytes", start: 0 }, 9), "2 contents and no parts");
  assert.equal(cut(text("a", "12", { freshFor: 5 }), { unit: "bytes", start: 1 }, 9).freshFor, 5);
});
