// Tests of the tools, prompts and questions of the TypeScript SDK. `tsc` checks the types of the arguments and results.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Invalid, ask, context, prompt, schema, startingWith, tool } from "@belljar/guest";
import type { Provider } from "@belljar/guest";
import { report } from "@belljar/guest/progress";

// @ts-expect-error A module of the SDK that authors do not see, so it has no types.
import { HOST } from "../../../sdk-guest/javascript/sdk/src/convert.js";

const everything = tool({
  name: "everything",
  description: "Takes arguments of every type.",
  input: schema.object({
    text: schema.string({ maxLength: 5, pattern: "^a" }),
    count: schema.optional(schema.integer({ minimum: 1, default: 1 })),
    ratio: schema.number(),
    yes: schema.boolean(),
    size: schema.oneOf(["small", "large"]),
    tags: schema.optional(schema.array(schema.string(), { minItems: 1 })),
    flags: schema.record(schema.boolean()),
    point: schema.object({ x: schema.number(), y: schema.optional(schema.number()) }),
    either: schema.union([schema.integer(), schema.string()]),
    free: schema.custom<[number, number]>({ type: "array", prefixItems: [{ type: "number" }, { type: "number" }] }),
  }),
  output: schema.object({ sum: schema.number() }),
  effect: "reads",
  run({ text, count = 1, ratio, yes, size, tags = [], flags, point, either, free }) {
    // Each of these is an error of tsc if a type is not what the schema says.
    const texts: string[] = [text, size, ...tags];
    const large: "large" | "small" = size;
    const truths: boolean[] = [yes, ...Object.values(flags)];
    const more: number | string = either;
    const sum: number = count + ratio + point.x + (point.y ?? 0) + free[0] + free[1];
    return { structured: { sum }, content: `${texts.join()} ${large} ${truths.join()} ${more}` };
  },
});

const sure = schema.object({ delete: schema.boolean(), why: schema.optional(schema.string()) });

const erase = tool({
  name: "erase",
  description: "Erases a note, if a person agrees.",
  input: schema.object({ name: schema.string() }),
  run({ name }, context) {
    if (!context.canAsk) throw new Invalid("this needs a client that can ask a person");
    if (!context.answers.has("sure")) return ask({ key: "sure", message: `Erase ${name}?`, form: sure }, name);
    return context.accepted("sure", sure)?.delete ? `Erased ${context.state}.` : "Nothing was erased.";
  },
});

const count = tool({
  name: "count",
  description: "Counts.",
  input: schema.object({ to: schema.integer({ minimum: 1, maximum: 100 }) }),
  effect: "reads",
  run({ to }) {
    for (let at = 1; at <= to; at += 1) report(at, to, `at ${at}`);
    return `Counted to ${to}.`;
  },
});

test("types make the schema", () => {
  const { json } = everything.input;
  assert.deepEqual(json["required"], ["text", "ratio", "yes", "size", "flags", "point", "either", "free"]);
  const properties = json["properties"] as Record<string, unknown>;
  assert.deepEqual(properties["text"], { type: "string", maxLength: 5, pattern: "^a" });
  assert.deepEqual(properties["count"], { type: "integer", minimum: 1, default: 1 });
  assert.deepEqual(properties["size"], { type: "string", enum: ["small", "large"] });
  assert.deepEqual(properties["tags"], { type: "array", items: { type: "string" }, minItems: 1 });
  assert.deepEqual(properties["flags"], { type: "object", additionalProperties: { type: "boolean" } });
  assert.deepEqual(properties["either"], { anyOf: [{ type: "integer" }, { type: "string" }] });
  const y = { type: "number" };
  assert.deepEqual(properties["point"], { type: "object", properties: { x: y, y }, required: ["x"] });
});

test("a tool is a function of typed arguments", () => {
  const given = { text: "a", ratio: 0.5, yes: true, size: "small" as const, flags: {}, point: { x: 1 }, either: "e" };
  const result = everything.run({ ...given, free: [2, 3] });
  assert.deepEqual(result, { structured: { sum: 7.5 }, content: "a,small small true e" });
  // Never called: tsc checks that these lines are errors.
  () => {
    // @ts-expect-error "name" is missing
    erase.run({});
    // @ts-expect-error a number is no text
    erase.run({ name: 1 });
    // @ts-expect-error there is no such size
    everything.run({ ...given, size: "huge", free: [2, 3] });
    const output = schema.object({ sum: schema.number() });
    // @ts-expect-error the result does not fit the output schema
    tool({ name: "wrong", description: "Wrong.", output, run: () => ({ structured: { sum: "1" } }) });
    // @ts-expect-error the structured result is missing
    tool({ name: "wrong", description: "Wrong.", output, run: () => "1" });
    // @ts-expect-error arguments of prompts are texts
    prompt({ name: "wrong", description: "Wrong.", arguments: { a: schema.integer() }, run: () => "" });
    tool({ name: "right", description: "Right.", output, run: () => ({ isError: true as const, content: "no" }) });
  };
});

test("a question comes before the result", () => {
  assert.throws(() => erase.run({ name: "n" }), Invalid);
  const asked = { questions: [{ key: "sure", message: "Erase n?", form: sure }], state: "n" };
  assert.deepEqual(erase.run({ name: "n" }, context({ canAsk: true })), asked);
  for (const [answer, text] of [
    [{ action: "accept", content: { delete: true } }, "Erased n."],
    [{ action: "accept", content: { delete: false } }, "Nothing was erased."],
    [{ action: "decline" }, "Nothing was erased."],
  ] as const) {
    const given = context({ canAsk: true, answers: { sure: answer }, state: "n" });
    assert.equal(erase.run({ name: "n" }, given), text);
  }
});

test("a prompt suggests values", () => {
  const greet = prompt({
    name: "greet",
    description: "Greets.",
    arguments: {
      name: schema.string({ description: "Whom to greet" }),
      tone: schema.optional(schema.oneOf(["kind", "short"])),
    },
    suggest: { name: (text, resolved) => ({ values: [text + (resolved.get("tone") ?? "")], total: 7 }) },
    run({ name, tone = "kind" }) {
      const shown: "kind" | "short" = tone;
      return [`Greet ${name}, ${shown}.`, { role: "assistant", content: "Hello." }];
    },
  });
  assert.deepEqual(greet.run({ name: "Ann" }), ["Greet Ann, kind.", { role: "assistant", content: "Hello." }]);
  assert.deepEqual(greet.complete("tone", "K"), { values: ["kind"] });
  assert.deepEqual(greet.complete("name", "A", new Map([["tone", "!"]])), { values: ["A!"], total: 7 });
  assert.deepEqual(greet.complete("toString", ""), { values: [] });
  const many = startingWith("1", Array.from({ length: 1000 }, (_, at) => String(at)));
  assert.deepEqual([many.values.length, many.total], [100, 111]);
  const provider = { read: () => assert.fail(), prompts: [greet], tools: () => [erase] } satisfies Provider;
  assert.equal(provider.prompts.length, 1);
});

/** The functions of a tool for the host. */
function host(made: unknown): { info(): Record<string, unknown>; call(values: string, given: object): Sent } {
  return (made as Record<symbol, any>)[HOST];
}

type Sent = { tag: string; val: Record<string, any> };

const silent = { canAsk: false, answers: [], state: null };

/** What the host gets from a tool that returns this value. */
function sent(value: unknown): Sent {
  return host(tool({ name: "a", description: "x", run: () => value as string })).call("{}", silent);
}

test("results are converted for the host", () => {
  const text = (val: string) => [{ body: { tag: "text", val }, annotations: null }];
  const result = { content: text("x"), structured: null, isError: false, meta: [] };
  assert.deepEqual(sent("x"), { tag: "done", val: result });
  assert.deepEqual(sent(undefined).val["content"], text("Done."));
  assert.deepEqual(sent({ content: "no", isError: true }).val, { ...result, content: text("no"), isError: true });
  const json = '{"a":"\ufffd"}';
  assert.deepEqual(sent({ structured: { a: "\ud800" } }).val, { ...result, content: text(json), structured: json });
  const [image, link] = sent([{ image: Uint8Array.of(1), mimeType: "image/png" }, { link: "a" }]).val["content"];
  const data = { mimeType: "image/png", data: Uint8Array.of(1) };
  assert.deepEqual(image, { body: { tag: "image", val: data }, annotations: null });
  assert.equal(link.body.val.name, "a");
  assert.throws(() => sent({ nothing: 1 }), /a piece of content must be a text, or an object with/);
  assert.throws(() => sent({ structured: [1] }), /a structured result must be an object/);
});

test("questions and answers are converted for the host", () => {
  const { call } = host(erase);
  const form = '{"type":"object","properties":{"delete":{"type":"boolean"},"why":{"type":"string"}},"required":["delete"]}';
  const questions = [{ key: "sure", message: "Erase n?", form }];
  assert.deepEqual(call('{"name":"n"}', { ...silent, canAsk: true }), { tag: "ask", val: { questions, state: "n" } });
  const answers = [{ key: "sure", action: "accept", content: '{"delete":true}' }];
  const done = JSON.stringify(call('{"name":"n"}', { canAsk: true, answers, state: "n" }));
  assert.ok(done.includes('"Erased n."'), done);
});

test("definitions are converted for the host", () => {
  const { name, effect, idempotent, openWorld, input, output } = host(erase).info();
  assert.deepEqual([name, effect, idempotent, openWorld, output], ["erase", "destroys", false, true, null]);
  const properties = { name: { type: "string" } };
  const expected = { additionalProperties: false, type: "object", properties, required: ["name"] };
  assert.deepEqual(JSON.parse(input as string), expected);
});

test("mistakes are errors of the build", () => {
  const run = () => "";
  assert.throws(() => tool({ name: "a b", description: "x", run }), /the name of the tool "a b" must be 1 to 48/);
  assert.throws(() => tool({ name: "a", description: "", run }), /the tool "a" has no description/);
  const input = schema.array(schema.string());
  assert.throws(() => tool({ name: "a", description: "x", input, run }), /the input of the tool "a" must be an object/);
  const wrong = { name: "a", description: "x", suggest: { nobody: ["x"] }, run };
  assert.throws(() => prompt(wrong), /has suggestions for "nobody", which is not one of its arguments/);
});

test("progress does nothing outside of a component", () => {
  assert.equal(count.run({ to: 3 }), "Counted to 3.");
});
