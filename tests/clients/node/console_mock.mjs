// A mock of the operator's endpoint, for development of the console's page: the three files under the header of belljar,
// hostile rows, 1,000 mounts and 50 requests a second. Usage: node console_mock.mjs [PORT] [empty]

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const PAGE = new URL("../../../host/src/server/admin/console/", import.meta.url);
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/console.css": ["console.css", "text/css; charset=utf-8"],
  "/console.js": ["console.js", "text/javascript; charset=utf-8"],
};
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HOSTILE = [
  "<img src=x onerror=window.__pwned=1>",
  "\"><script>window.__pwned=2;alert(1)</script>",
  "javascript:window.__pwned=3",
  "' onmouseover='window.__pwned=4' x='",
  "n".repeat(10000),
  "\u202Egnp.exe\u202C and \u2066more\u2069 \u200E\u200F",
  "z\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309a\u030A\u030B\u030C\u030D\u030E l\u0334\u0335\u0336\u0337\u0338go",
  "\u0301lone mark",
  "line one\nline two\r\n\ttab \u0000 nul \u001b[31mred \u0085 \u2028",
  "\u{1F468}\u200D\u{1F469}\u200D\u{1F467} family \u{1F600}",
  "\u0645\u0631\u062D\u0628\u0627 \u05E9\u05DC\u05D5\u05DD abc",
  "__proto__",
  "constructor",
  "",
  "</title></style><svg onload=window.__pwned=5>",
  "{{constructor.constructor('window.__pwned=6')()}}",
  "\uD800 lone surrogate \uFEFF\u3164\u2800\u00A0",
];
const hostile = (n) => HOSTILE[n % HOSTILE.length];
const started = Date.now() - 3 * 3600e3;
const isEmpty = process.argv[3] === "empty";
const states = ["served", "served", "served", "served", "served", "served", "quarantined", "compiling", "unserved"];
const outcomes = ["ok", "ok", "ok", "ok", "ok", "ok", "denied", "not-found", "limit", "trap", "busy", "failed"];
const references = ["2026/plan.md", "a.pdf", "reports/q3/figures.csv?sheet=2&rows=100-200", "HEAD~3/src/main.rs", null];
const many = (n, make) => (isEmpty ? [] : Array.from({ length: n }, (_, i) => make(i)));

function mount(i) {
  const state = i < HOSTILE.length ? "served" : states[i % states.length];
  const name = i < HOSTILE.length ? hostile(i) : `notes-${i}`;
  const bad = state === "quarantined" || state === "unserved";
  return {
    name, base: `belljar://${name}/`, component: i < HOSTILE.length ? hostile(i + 3) : "files.wasm", digest: `sha256:${"9f2c41d07ab3".repeat(6).slice(0, 64)}`, state,
    reason: state === "quarantined" ? "its component is not the one that its grants were given to" : state === "unserved" ? "the component imports wasi:sockets, which belljar does not offer" : null,
    may: i % 4 === 3 ? [] : [`read files below /notes (~/notes on this machine)`, ...(i % 5 === 0 ? [`send GET to https://api.example`, hostile(i)] : [])],
    command: bad ? `belljar trust ${name}` : i === 4 ? `belljar trust ${name}` : null,
    calls: 120 * i, served: 14 * i, failed: i % 7, denied: i % 3, bytes: 12345 * i, cpu_micros: 8400 * i,
  };
}

let beat = 0;
function request(i) {
  const odd = i % 9 === 0;
  const outcome = odd && i % 18 === 0 ? hostile(i) : outcomes[(i * 7) % outcomes.length];
  return {
    time: Date.now(), principal: odd ? hostile(i / 9) : i % 2 ? "local" : "key:ana", client: i % 5 === 0 ? null : odd ? hostile(i / 9 + 1) : "claude 1.0", transport: i % 2 ? "stdio" : "http",
    method: "resources/read", mount: odd ? hostile(i / 9 + 2) : i % 11 === 0 ? null : ["notes", "pdf", "weather"][i % 3], operation: "read", reference: odd ? hostile(i / 9 + 4) : references[i % references.length],
    outcome, micros: 410 * (1 + (i % 40) ** 2), cpu_micros: 300, bytes: 2048 * (i % 90), denied: i % 13 === 0 ? 2 : 0,
  };
}

function state() {
  const now = Date.now();
  beat += 1;
  const read = (i) => ({ time: now - i * 60e3, mount: hostile(i), operation: "read", reference: hostile(i + 1), principal: i % 2 ? "local" : hostile(i + 2), outcome: outcomes[i % 12], micros: 9021000 / (i + 1), bytes: 1e8 / (i + 1) });
  const step = 10000;
  const first = Math.floor(now / step) * step - 359 * step;
  return {
    version: "0.1.0", now, started, state: "ready", configuration: 3, memory: { used: 12345678, limit: 1073741824 }, turns: { used: 2, limit: 64 }, subscribers: 1, watched: 3, records_waiting: 0,
    mounts: many(1000, mount).map((each) => ({ ...each, calls: each.calls + beat })),
    callers: many(200, (i) => ({ principal: i < 20 ? hostile(i) : `key:user-${i}`, client: i < 20 ? hostile(i + 1) : "claude 1.0", transport: i % 2 ? "stdio" : "http", requests: 100 * i + beat, failed: i % 5, bytes: 123456 * i, cpu_micros: 90000 * i, last: now - i * 1000 })),
    denials: many(200, (i) => ({ mount: i < 3 ? "weather" : hostile(i), grant: ["http", "fs", "env", "secret"][i % 4], what: i < 3 ? `GET https://x${i}.example/v1/points?lat=52.5` : hostile(i + 1), times: i + 1, last: now - i * 5000, command: i % 6 === 5 ? null : i < 3 ? `belljar grant weather --http https://x${i}.example` : `belljar grant '${hostile(i)}' --http https://x.example` })),
    limits: many(12, (i) => ({ mount: i < 3 ? "pdf" : hostile(i), limit: ["fuel", "time", "memory", "result", "handles", "open-files", "list-time", "requests", "stack", "instances", "upload", hostile(0)][i], times: i, used: 2000000000, cap: 1000000000, last: now, command: i % 4 === 3 ? null : "belljar set 'mounts.pdf.limits.fuel = 4000000000'" })),
    slowest: many(50, read), largest: many(50, (i) => read(i + 5)),
    upstreams: many(50, (i) => ({ mount: i < 2 ? "weather" : hostile(i), what: i < 2 ? "GET https://api.example/points" : hostile(i + 2), times: 12 * i, last: now })),
    history: { step, points: many(360, (i) => ({ t: first + i * step, requests: Math.round(300 + 200 * Math.sin(i / 20)), failed: i % 40 < 5 ? i % 7 : 0, cpu_micros: 800000 + 400000 * Math.sin(i / 15), memory: 3e7 + 1e5 * i, turns: i % 9 })).filter((_, i) => i < 100 || i > 130) },
  };
}

createServer((incoming, answer) => {
  const path = new URL(incoming.url, "http://mock").pathname;
  const common = { "content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-store" };
  if (path === "/api/state") {
    answer.writeHead(200, { ...common, "content-type": "application/json" }).end(JSON.stringify(state()));
  } else if (path === "/api/events") {
    answer.writeHead(200, { ...common, "content-type": "text/event-stream" });
    answer.write("retry: 1000\n\n");
    if (isEmpty) return;
    let n = 0;
    const send = (items) => answer.write(`data: ${JSON.stringify(items)}\n\n`);
    const timer = setInterval(() => {
      const size = n % 2 ? 12 : 13;
      send(Array.from({ length: size }, () => request((n += 1))));
      if (Math.random() < 0.02) send({ skipped: 512 });
    }, 250);
    answer.on("close", () => clearInterval(timer));
  } else if (Object.hasOwn(FILES, path)) {
    const [name, type] = FILES[path];
    answer.writeHead(200, { ...common, "content-type": type }).end(readFileSync(new URL(name, PAGE)));
  } else {
    answer.writeHead(404, common).end();
  }
}).listen(Number(process.argv[2] ?? 8810), "127.0.0.1", function () {
  console.log(`http://127.0.0.1:${this.address().port}/`);
});
