// Tests of the SDK: what `fetch` of a component consists of, without a host.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Body, Headers, Response } from "../belljar-guest/src/http.js";
import { QueuedPromise, pollWith, ready } from "../belljar-guest/src/promise.js";
import { settle } from "../belljar-guest/src/settle.js";
import { originOf, parseUrl, shown, toText } from "../belljar-guest/src/url.js";

const later = (value) => QueuedPromise.resolve().then(() => value);
const failing = (message) => later().then(() => { throw new Error(message); });

test("a promise is settled within a call", () => {
  assert.equal(settle(7), 7);
  assert.equal(settle(later(later(7))), 7);
  assert.throws(() => settle(failing("why")), /why/);
  assert.throws(() => settle(new QueuedPromise(() => {})), /never settled/);
  assert.equal(settle(failing("why").catch((error) => error.message)), "why");
  assert.equal(settle(later(1).finally(() => 2)), 1);
  assert.throws(() => settle(later(1).finally(() => failing("last"))), /last/);
  assert.throws(() => settle(new QueuedPromise(() => { throw new Error("at once"); })), /at once/);
});

test("promises are combined", () => {
  assert.deepEqual(settle(QueuedPromise.all([later(1), 2, later(3)])), [1, 2, 3]);
  assert.deepEqual(settle(QueuedPromise.all([])), []);
  assert.throws(() => settle(QueuedPromise.all([later(1), failing("one of them")])), /one of them/);
  const settled = settle(QueuedPromise.allSettled([later(1), failing("x")]));
  assert.deepEqual(settled.map(({ status }) => status), ["fulfilled", "rejected"]);
  assert.equal(settle(QueuedPromise.any([failing("x"), later(2)])), 2);
  assert.throws(() => settle(QueuedPromise.any([failing("x")])), AggregateError);
  assert.equal(settle(QueuedPromise.race([later(later(1)), later(2)])), 2);
  assert.equal(settle(QueuedPromise.try(() => 5)), 5);
});

test("the host is asked for all waiting operations at once", () => {
  const asked = [];
  const dropped = [];
  const pollable = (name) => ({ name, [Symbol.dispose]: () => dropped.push(name) });
  // The last one is ready first.
  pollWith((all) => {
    asked.push(all.map(({ name }) => name));
    return [all.length - 1];
  });
  const wait = (name) => ready(pollable(name)).then(() => name);
  assert.deepEqual(settle(QueuedPromise.all([wait("a"), wait("b")])), ["a", "b"]);
  assert.deepEqual(asked, [["a", "b"], ["a"]]);
  assert.deepEqual(dropped, ["b", "a"]);
});

test("URLs are normalised, and references are relative to them", () => {
  assert.equal(toText(parseUrl("HTTP://Example.com")), "http://example.com/");
  assert.equal(toText(parseUrl("https://a/b/../c d?q=\u00fc#x")), "https://a/c%20d?q=%C3%BC");
  const base = parseUrl("http://a/b/c?d");
  for (const [reference, joined] of [
    ["", "http://a/b/c?d"],
    ["?x", "http://a/b/c?x"],
    ["e", "http://a/b/e"],
    ["../e?f", "http://a/e?f"],
    ["//z/e", "http://z/e"],
    ["https://z", "https://z/"],
    ["e?to=http://y", "http://a/b/e?to=http://y"],
  ]) {
    assert.equal(toText(parseUrl(reference, base)), joined, reference);
  }
  assert.equal(originOf(parseUrl("http://a:80/x")), originOf(parseUrl("http://A")));
  assert.notEqual(originOf(parseUrl("https://a")), originOf(parseUrl("http://a")));
  assert.equal(shown(parseUrl("http://a/b?secret")), '"http://a/b"');
  for (const text of ["a", "ftp://a", "http://", "http://user@a", "mailto:x"]) {
    assert.throws(() => parseUrl(text), { name: "TypeError", message: /cannot be requested/ }, text);
  }
});

test("headers are compared in any case", () => {
  const headers = new Headers({ Accept: "a" });
  headers.append("accept", "b");
  headers.append("Set-Cookie", "x=1, 2");
  headers.append("set-cookie", "y");
  assert.equal(headers.get("ACCEPT"), "a, b");
  assert.deepEqual(headers.getSetCookie(), ["x=1, 2", "y"]);
  assert.deepEqual([...headers], [["accept", "a, b"], ["set-cookie", "x=1, 2"], ["set-cookie", "y"]]);
  headers.set("accept", " c ");
  assert.equal(headers.get("accept"), "c");
  assert.throws(() => headers.set("a b", "c"), /is not the name of a header/);
  assert.throws(() => headers.set("a", "b\nc"), /holds a line break/);
});

test("bodies are read whole or in pieces, once", async () => {
  assert.equal(await new Response("\ufeffhé").text(), "hé");
  assert.equal(await new Response(new Uint8Array([0x61, 0xff, 0xc3])).text(), "a\ufffd\ufffd");
  assert.deepEqual(await new Response('{"a":1}').json(), { a: 1 });
  let isCancelled = false;
  const pieces = () => [Uint8Array.of(1), Uint8Array.of(2, 3)].values();
  const body = new Body(pieces(), () => { isCancelled = true; });
  for await (const piece of body) {
    assert.deepEqual(piece, Uint8Array.of(1));
    break;
  }
  assert.ok(isCancelled);
  const response = new Response(new Body(pieces()));
  assert.deepEqual(await response.bytes(), Uint8Array.of(1, 2, 3));
  assert.ok(response.bodyUsed);
  await assert.rejects(response.text(), /was read before/);
});
