// Unit tests of the provider as plain TypeScript, without belljar and without a component.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { Denied, Invalid, NotFound } from "@belljar/guest";
import { grant, revokeAll } from "@belljar/guest/testing";

// belljar:if tools
import { monthDays } from "../src/provider.js";
// belljar:end
// belljar:if prompts
import { planMonth } from "../src/provider.js";
// belljar:end
import { provider } from "../src/provider.js";

afterEach(revokeAll);

function listed(): string[] {
  const references: string[] = [];
  let cursor: string | undefined;
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
  assert.equal(provider.read("dot.png").contents[0].blob?.[1], 0x50);
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
  assert.ok(provider.read("files/notes.md").contents[0].text?.startsWith("# Notes"));
  assert.deepEqual(provider.read("files/"), { contents: provider.read("files/notes.md").contents });
  assert.throws(() => provider.read("files/nope.md"), NotFound);
  assert.throws(() => provider.read("files/..%2Fpackage.json"), NotFound);
});
// belljar:if tools

test("the tool counts the days of a month", () => {
  assert.deepEqual(monthDays.run({ month: 2 }), {
    content: "February has 28 days.",
    structured: { month: "February", days: 28 },
  });
  assert.equal(monthDays.run({ month: 2, year: 2024 }).content, "February 2024 has 29 days.");
  assert.equal(monthDays.run({ month: 2, year: 1900 }).structured.days, 28);
  assert.equal(monthDays.run({ month: 12, year: 2024 }).structured.days, 31);
  assert.deepEqual(monthDays.input.json["required"], ["month"]);
});
// belljar:end
// belljar:if prompts

test("the prompt makes a plan for a month", () => {
  const text = "Make a plan for February, which has 28 days.";
  assert.deepEqual(planMonth.run({ month: "February" }), { description: "A plan for February", messages: text });
  assert.equal(planMonth.run({ month: "February", goal: "rest" }).messages, `${text} My goal: rest.`);
  assert.throws(() => planMonth.run({ month: "Feb" }), {
    name: "Invalid",
    message: 'a month is one of January to December, not "Feb"',
  });
});

test("the names of months are suggested", () => {
  assert.deepEqual(planMonth.complete("month", "Ma").values, ["March", "May"]);
  assert.deepEqual(planMonth.complete("month", "x").values, []);
  assert.deepEqual(planMonth.complete("goal", "r").values, []);
});
// belljar:end
