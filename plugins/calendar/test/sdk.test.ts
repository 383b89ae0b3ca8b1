// Tests of the TypeScript SDK.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { Denied, Invalid, NotFound, compareText, decode, decodeUtf8, encodePath, encodeSegment, fromBytes, page, split } from "@belljar/guest";
import * as files from "@belljar/guest/files";
import { grant, revokeAll } from "@belljar/guest/testing";

test("encoding and decoding are inverse", () => {
  for (const name of ["plain.md", "a b/c#d?e.md", "100%.txt", "a:b", "ümläut/日本語", "😀", "it's (1)+2,3;4=5@!$&*~"]) {
    assert.match(encodePath(name), /^[\x21-\x7e]*$/);
    assert.equal(decode(encodePath(name)), name);
    assert.ok(!encodeSegment(name).includes("/"));
    assert.equal(decode(encodeSegment(name)), name);
  }
  assert.throws(() => decode("%FF"), Invalid);
});

test("a reference is split at its first question mark", () => {
  assert.deepEqual(split("a?b=1%2B1&c&b=2&=x?"), { path: "a", query: new Map([["b", "1+1"], ["c", ""], ["", "x?"]]) });
  assert.deepEqual(split("a"), { path: "a", query: new Map() });
});

test("a page takes only the entries that it shows", () => {
  let used = 0;
  function* entries(): Generator<{ reference: string }> {
    for (let n = 0; n < 25; n += 1) {
      used += 1;
      yield { reference: String(n) };
    }
  }
  assert.equal(page(entries(), undefined, 10).nextCursor, "10");
  assert.equal(used, 11);
  assert.deepEqual(page(entries(), "20", 10).resources.map(({ reference }) => reference), ["20", "21", "22", "23", "24"]);
  assert.equal(page(entries(), "20", 10).nextCursor, undefined);
  for (const cursor of ["x", "", " 1", "1e1", "-1", "1.5", "99", "9999999999999999999"]) {
    assert.throws(() => page(entries(), cursor, 10), { name: "Invalid", message: `the cursor "${cursor}" is not one of this provider's` });
  }
});

test("names are sorted as bytes", () => {
  const names = ["\u{1f600}", "\uffee", "Z", "a", "ä", "ab", ""];
  const bytes = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  assert.deepEqual(names.sort(compareText), bytes);
});

test("UTF-8 is text, and other bytes are blobs", () => {
  assert.equal(decodeUtf8(Buffer.from("\ufeffä")), "\ufeffä");
  assert.equal(decodeUtf8(Uint8Array.of(0xff)), undefined);
  assert.equal(fromBytes("a", Uint8Array.of(0xff), { mimeType: "text/markdown" }).contents[0].mimeType, "application/octet-stream");
  assert.equal(fromBytes("a", Buffer.from("x"), { mimeType: "text/markdown" }).contents[0].mimeType, "text/markdown");
});

test("only files in granted directories are read", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "sdk-"));
  try {
    writeFileSync(path.join(directory, "a.txt"), "0123456789");
    mkdirSync(path.join(directory, "folder"));
    symlinkSync("a.txt", path.join(directory, "link"));
    assert.throws(() => files.read("/data/a.txt"), Denied);
    grant("/data", directory);
    assert.deepEqual(files.granted(), ["/data"]);
    assert.deepEqual(files.list("/data").map(({ name, kind }) => `${name} ${kind}`), ["a.txt file", "folder directory", "link link"]);
    assert.equal(Buffer.from(files.read("/data/a.txt", { offset: 8, length: 5 })).toString(), "89");
    assert.equal(files.read("/data/a.txt", { offset: 20 }).length, 0);
    assert.equal(files.stat("/data/link").size, 10);
    for (const missing of ["/data/b", "/data/folder", "/data/a.txt/b"]) assert.throws(() => files.read(missing), NotFound, missing);
    assert.throws(() => files.read("/data/../a.txt"), Denied);
    assert.throws(() => files.read("/database"), Denied);
  } finally {
    revokeAll();
    rmSync(directory, { recursive: true });
  }
});
