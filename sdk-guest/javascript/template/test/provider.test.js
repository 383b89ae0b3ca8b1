// Unit tests of the provider as plain JavaScript, without belljar and without a component.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { Denied, Invalid, NotFound } from "@belljar/guest";
import { grant, revokeAll } from "@belljar/guest/testing";

import { provider } from "../src/provider.js";

afterEach(revokeAll);

function listed() {
  const references = [];
  let cursor;
  do {
    const page = provider.listResources(cursor);
    references.push(...page.resources.map(({ reference }) => reference));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return references;
}

test("lists page by page", () => {
  const first = provider.listResources();
  assert.equal(first.resources.length, 10);
  assert.equal(first.nextCursor, "10");
  assert.equal(listed().length, 14);
  assert.throws(() => provider.listResources("x"), Invalid);
  assert.throws(() => provider.listResources("999"), Invalid);
});

test("every listed resource can be read", () => {
  grant("/data", "data");
  const references = listed();
  assert.ok(references.includes("files/notes.md"));
  for (const reference of references) assert.equal(provider.read(reference).contents[0].reference, reference);
});

test("reads text, bytes and JSON", () => {
  assert.equal(provider.read("hello.txt").contents[0].text, "Hello from my-provider.\n");
  assert.equal(provider.read("dot.png").contents[0].blob[1], 0x50);
  assert.equal(provider.read("months/2").contents[0].text, '{"month":2,"name":"February","days":28}');
});

test("errors are reported", () => {
  assert.throws(() => provider.read("months/13"), NotFound);
  assert.throws(() => provider.read("months/x"), { name: "Invalid", message: 'a month is a number from 1 to 12, not "x"' });
  assert.throws(() => provider.read(""), NotFound);
});

test("reads files only where they were granted", () => {
  assert.throws(() => provider.read("files/notes.md"), Denied);
  grant("/data", "data");
  assert.match(provider.read("files/notes.md").contents[0].text, /^# Notes/);
  assert.throws(() => provider.read("files/nope.md"), NotFound);
  assert.throws(() => provider.read("files/..%2Fpackage.json"), NotFound);
});
