// The operator's console: shows /api/state and /api/events, and changes nothing.
//
// Everything from the API is untrusted: providers and clients choose names. It reaches the page only as text nodes and
// titles, with hidden characters made visible and a cap on the length. See `segments`.
"use strict";

/** Time between two requests for the state. */
const REFRESH = 5000;
/** Live requests on the page. */
const LIVE = 100;
/** Shortest and longest time between two updates of the live requests. */
const LIVE_PAUSE = [1000, 4000];
/** The pause is this many times the duration of the last update: a slow machine updates less often. */
const LIVE_REST = 300;
/** The most characters that a text from the API may have on the page. */
const MAX_TEXT = 500;
/** The most characters of a command. A longer one is not offered for copying. */
const MAX_COMMAND = 1000;
/** Rows that "Show all" adds at once. */
const CHUNK = 100;
/** Longest work in one frame. The rest waits for the next one. */
const FRAME_WORK = 8;
const HOUR = 3600000;

const byId = (id) => document.getElementById(id);

// --- Values from the API ---

const num = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
/** A text. Another type than a string is shown as JSON, and null as null. */
const asText = (value) => (typeof value === "string" ? value : value === null || value === undefined ? null : JSON.stringify(value));
/** A time, within what `Date` can hold. */
const dateOf = (value) => new Date(Math.min(Math.max(num(value), 0), 8.64e15));
const list = (value, max) => (Array.isArray(value) ? value.slice(0, max).filter((item) => item !== null && typeof item === "object") : []);

// --- Untrusted text ---

const PLAIN = /^[\x20-\x7e]*$/;
// Control, format, private and unassigned characters, separators, and all that a font draws as nothing.
const HIDDEN = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;
const MARK = /\p{M}/u;
const BASE = /[\p{L}\p{N}]/u;

/**
 * Splits a text into parts that are safe to show. Hidden characters, combining marks without a letter, and all but three
 * marks of a letter become escapes such as `\u{202e}`. `isExact` is false if something was escaped or cut.
 */
function segments(value, max, size) {
  const text = asText(value) ?? "";
  if (text.length <= max && PLAIN.test(text)) return { parts: [text], shown: text, isExact: true };
  const parts = [""];
  let marks = 0;
  let hasBase = false;
  let taken = 0;
  let isExact = true;
  let isCut = false;
  const escape = (label) => {
    // Odd places hold escapes, even places hold text.
    if (parts.length % 2 === 1) parts.push("");
    parts[parts.length - 1] += label;
    isExact = false;
    hasBase = false;
  };
  for (const character of text) {
    taken += 1;
    if (taken > max) {
      isCut = true;
      break;
    }
    const isMark = MARK.test(character);
    marks = isMark ? marks + 1 : 0;
    if ((character !== " " && HIDDEN.test(character)) || (isMark && (!hasBase || marks > 3))) {
      escape(`\\u{${character.codePointAt(0).toString(16)}}`);
      continue;
    }
    if (parts.length % 2 === 0) parts.push("");
    parts[parts.length - 1] += character;
    hasBase = isMark || BASE.test(character);
  }
  if (isCut) escape(`\u2026 (${count.format(size ?? text.length)} characters)`);
  return { parts, shown: parts.join(""), isExact };
}

// --- Numbers, with units ---

const count = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const rough = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

function bytes(amount) {
  let rest = num(amount);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (rest < 1023.5) return unit === "B" ? `${count.format(rest)} B` : `${rest < 100 ? rest.toFixed(1) : count.format(rest)} ${unit}`;
    rest /= 1024;
  }
  return `${short.format(rest)} TiB`;
}

function tokens(amount) {
  const all = num(amount) / 4;
  if (all < 999.5) return `~${count.format(all)} tokens`;
  if (all < 999500) return `~${all < 1e4 ? rough.format(all / 1e3) : count.format(all / 1e3)}k tokens`;
  return `~${all < 1e7 ? rough.format(all / 1e6) : count.format(all / 1e6)}M tokens`;
}

function micros(amount) {
  const all = num(amount);
  if (all < 999.5) return `${count.format(all)} \u00b5s`;
  if (all < 1e6) return `${all < 1e4 ? (all / 1e3).toFixed(1) : count.format(all / 1e3)} ms`;
  if (all < 6e7) return `${(all / 1e6).toFixed(1)} s`;
  return span(all / 1e3);
}

/** A long time, in its two largest units. */
function span(milliseconds) {
  let seconds = Math.max(0, Math.floor(num(milliseconds) / 1000));
  const words = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    if (seconds >= size || (unit === "s" && words.length === 0)) words.push(`${Math.floor(seconds / size)} ${unit}`);
    seconds %= size;
  }
  return words.slice(0, 2).join(" ");
}

/** The local time; with the day if it is not today. The title has the whole date. */
function when(time) {
  if (num(time) <= 0) return own("unknown", "soft");
  // Formatting is slow, and many requests end in the same second.
  const second = Math.floor(num(time) / 1000);
  if (second !== moment.second) Object.assign(moment, { second, piece: moments(dateOf(time)) });
  return moment.piece;
}

const moment = { second: -1, piece: null };

function moments(date) {
  const isToday = Math.abs(Date.now() - date) < 86400000 && date.getDate() === new Date().getDate();
  return own(isToday ? clock.format(date) : `${day.format(date)} ${minute.format(date)}`, "", whole.format(date));
}

/** The amount of a limit, in the unit of the limit. */
function amount(limit, value) {
  if (["time", "list-time"].includes(limit)) return micros(num(value) * 1000);
  if (["memory", "result", "random", "stack", "upload", "download"].includes(limit)) return bytes(value);
  const units = { fuel: "units of fuel", handles: "handles", "open-files": "files", instances: "instances", requests: "requests" };
  return `${count.format(num(value))} ${Object.hasOwn(units, limit) ? units[limit] : ""}`.trim();
}

// --- Cells ---
//
// A cell is a list of pieces. A piece is plain data, so that two can be compared without the page.

/** A line in the words of this page. */
const own = (text, style = "", title = "") => ({ text, style, title });
/** A line of untrusted text. */
const given = (value, style = "") => {
  const text = asText(value);
  return { given: text?.slice(0, 2 * MAX_TEXT + 2) ?? null, size: text?.length ?? 0, style };
};
/** A command line that the operator may run. */
const command = (text, label) => ({ command: typeof text === "string" ? text : null, label });
const number = (value, style = "") => own(count.format(num(value)), num(value) > 0 ? style : "soft");

function element(tag, style, text) {
  const node = document.createElement(tag);
  if (style) node.className = style;
  if (text !== undefined) node.textContent = text;
  return node;
}

function fill(node, { parts }) {
  for (const [index, part] of parts.entries()) {
    if (part !== "") node.append(index % 2 === 1 ? element("span", "escape", part) : part);
  }
}

/** A cell whose lines are all of this form keeps its nodes: a line with one text, and no escapes. */
function simple(piece) {
  if ("command" in piece) return null;
  if (!("given" in piece)) return { style: piece.style, text: piece.text, title: piece.title };
  if (piece.given === null) return { style: "soft", text: "none", title: "" };
  if (piece.given === "") return { style: "soft", text: "(empty)", title: "" };
  return piece.size <= MAX_TEXT && PLAIN.test(piece.given) ? { style: piece.style, text: piece.given, title: piece.given } : null;
}

function show(piece) {
  if ("command" in piece) return showCommand(piece);
  const node = element("span", `line ${piece.style}`);
  const inner = element("bdi");
  const line = simple(piece);
  if (line === null) {
    const safe = segments(piece.given, MAX_TEXT, piece.size);
    fill(inner, safe);
    node.title = safe.shown.slice(0, MAX_TEXT);
  } else {
    inner.textContent = line.text;
    node.className = `line ${line.style}`;
    if (line.title) node.title = line.title;
  }
  node.append(inner);
  return node;
}

/** Changes the lines of a cell in place. False if they need other nodes. */
function change(cell, pieces) {
  if (cell.childElementCount !== pieces.length) return false;
  const lines = pieces.map(simple);
  if (lines.includes(null)) return false;
  for (const [index, line] of lines.entries()) {
    const node = cell.children[index];
    const text = node.firstElementChild?.firstChild;
    if (node.tagName !== "SPAN" || text?.nodeType !== Node.TEXT_NODE || text.nextSibling !== null) return false;
    if (text.data !== line.text) text.data = line.text;
    if (node.className !== `line ${line.style}`) node.className = `line ${line.style}`;
    if (node.title !== line.title) node.title = line.title;
  }
  return true;
}

let commands = 0;

function showCommand({ command: text, label }) {
  const node = element("div", "command");
  node.append(element("span", "soft", label));
  // A command that is too long is not run from here, so its start is enough.
  const safe = segments(text, text.length > MAX_COMMAND ? MAX_COMMAND / 5 : MAX_COMMAND);
  const code = element("code");
  const inner = element("bdi");
  fill(inner, safe);
  code.append(inner);
  node.append(code);
  if (!safe.isExact) {
    // What is copied must be what is shown: a line break or a hidden character could run something else.
    node.append(element("span", "warn", "Not offered for copying: it is too long, or has hidden characters."));
    return node;
  }
  commands += 1;
  code.id = `command-${commands}`;
  const button = element("button", "", "Copy");
  button.type = "button";
  button.setAttribute("aria-describedby", code.id);
  button.addEventListener("click", () => copy(button, code, text));
  node.append(button);
  return node;
}

async function copy(button, code, text) {
  let word = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(code);
    word = "Selected: press Ctrl+C";
  }
  button.textContent = word;
  setTimeout(() => (button.textContent = "Copy"), 3000);
}

// --- Tables ---

/** Adds a role: `display: grid` takes the meaning of a table away. */
function part(tag, role, style) {
  const node = element(tag, style);
  node.setAttribute("role", role);
  return node;
}

class Table {
  /**
   * `columns` are `[label, style, cell]`, where `cell(item)` gives the pieces. `options.first` rows are shown until the
   * operator asks for all. `options.key(item)` names a row, `options.mark(item)` gives the class of a row.
   */
  constructor(place, name, columns, options) {
    Object.assign(this, { place: byId(place), name, columns, options, rows: new Map(), shown: options.first, items: [] });
    this.box = element("div", `box ${options.style ?? ""}`);
    this.table = part("table", "table");
    this.table.setAttribute("aria-label", name);
    const head = part("thead", "rowgroup");
    const line = part("tr", "row");
    for (const [label, style] of columns) {
      const cell = part("th", "columnheader", style);
      cell.textContent = label;
      line.append(cell);
    }
    head.append(line);
    this.body = part("tbody", "rowgroup");
    this.table.append(head, this.body);
    this.box.append(this.table);
    this.empty = element("p", "empty");
    this.more = element("button", "more");
    this.more.type = "button";
    this.more.addEventListener("click", () => this.showAll());
    this.box.hidden = this.more.hidden = true;
    this.empty.textContent = "Waiting for the first answer of belljar.";
    this.place.append(this.empty, this.box, this.more);
  }

  /** True while the operator may be about to press a button of a row: then no row moves. */
  isHeld() {
    return this.body.matches(":hover") || this.body.contains(document.activeElement);
  }

  /** Shows `items`. Changes only rows and cells that differ. `isAsked`: the operator asked for these items just now. */
  update(items, emptyText, isAsked = false) {
    this.items = items;
    this.empty.hidden = items.length > 0;
    this.box.hidden = items.length === 0;
    if (items.length === 0 && emptyText !== this.empty.textContent) this.empty.textContent = emptyText;
    const visible = items.slice(0, this.shown);
    const isHeld = !isAsked && this.isHeld();
    const keys = new Set();
    let next = this.body.firstElementChild;
    for (const item of visible) {
      let key = this.options.key(item);
      while (keys.has(key)) key += "\n";
      keys.add(key);
      let row = this.rows.get(key);
      if (row === undefined) {
        row = this.row();
        this.rows.set(key, row);
        this.body.insertBefore(row, isHeld ? null : next);
      } else if (row === next) {
        next = next.nextElementSibling;
      } else if (!isHeld) {
        this.body.insertBefore(row, next);
      }
      this.write(row, item);
    }
    if (!isHeld) {
      for (const [key, row] of this.rows) {
        if (!keys.has(key)) {
          row.remove();
          this.rows.delete(key);
        }
      }
    }
    this.more.hidden = items.length <= this.shown;
    const label = `Show all ${count.format(items.length)}`;
    if (this.more.textContent !== label) this.more.textContent = label;
  }

  row() {
    const row = part("tr", "row");
    for (const [label, style] of this.columns) {
      const cell = part("td", "cell", style);
      cell.setAttribute("data-label", label);
      row.append(cell);
    }
    return row;
  }

  write(row, item) {
    const mark = this.options.mark?.(item) ?? "";
    if (row.className !== mark) row.className = mark;
    for (const [index, [, , cell]] of this.columns.entries()) {
      const pieces = [cell(item)].flat();
      const signature = JSON.stringify(pieces);
      const node = row.children[index];
      if (node.signature === signature) continue;
      node.signature = signature;
      node.hidden = pieces.length === 0;
      if (!change(node, pieces)) node.replaceChildren(...pieces.map(show));
    }
  }

  /** Adds the other rows in idle time. */
  showAll() {
    const step = () => {
      this.shown += CHUNK;
      this.update(this.items, "");
      if (this.shown < this.items.length) idle(step);
      else this.shown = Infinity;
    };
    // The button goes away; the keyboard stays in this section.
    this.place.closest("section").focus({ preventScroll: true });
    step();
  }
}

const idle = (work) => (window.requestIdleCallback ? requestIdleCallback(work, { timeout: 500 }) : setTimeout(work, 16));

// --- Outcomes ---

const OF_CALLER = ["not-found", "bad-uri", "invalid", "bad-argument", "bad-answer", "bad-state", "cancelled"];
const REFUSALS = ["denied", "limit", "busy", "insufficient-scope", "unauthenticated"];

function severity(outcome) {
  if (outcome === "ok") return "good";
  if (REFUSALS.includes(outcome)) return "warn";
  return OF_CALLER.includes(outcome) ? "soft" : "bad";
}

function outcome(item) {
  const words = { denied: "refused", limit: "limit reached", trap: "crashed" };
  const text = asText(item.outcome) ?? "unknown";
  const first = given(Object.hasOwn(words, text) ? words[text] : text.replaceAll("-", " "), `word ${severity(text)}`);
  return num(item.denied) > 0 ? [first, own(`${count.format(num(item.denied))} refused`, "warn")] : [first];
}

const mark = (item) => ({ bad: "failed", warn: "refused" })[severity(item.outcome)] ?? "";

const requestCells = [
  ["Outcome", "", outcome],
  ["Mount", "", (item) => given(item.mount, "first")],
  ["Request", "", (item) => [given(item.reference ?? item.method ?? item.operation, "mono"), ...(item.reference ? [given(item.operation ?? item.method, "soft")] : [])]],
  ["Caller", "", (item) => [given(item.principal), ...(item.client || item.transport ? [given([item.client, item.transport].map(asText).filter(Boolean).join(", "), "soft")] : [])]],
  ["Time taken", "num", (item) => own(micros(item.micros))],
  ["Answer", "num", (item) => own(bytes(item.bytes))],
  ["Estimate", "num", (item) => own(tokens(item.bytes), "soft")],
];
const timeCell = ["Time", "", (item) => when(item.time)];

// --- The live requests ---

const live = {
  table: new Table("requests-table", "Finished requests", [["Time", "", timeCell[2]], ...requestCells], { first: LIVE, style: "scroll large", key: () => "", mark }),
  /** Rings: the last requests, and the last that failed or were refused. Newest last. */
  all: [],
  failed: [],
  /** The same requests, not on the page yet. */
  fresh: [],
  total: 0,
  skipped: 0,
  waiting: 0,
  recent: [],
  isPaused: false,
  onlyFailed: false,
  isScheduled: false,
  last: 0,
  cost: 0,

  isFailed: (item) => item.outcome !== "ok" || num(item.denied) > 0,

  take(message) {
    if (!Array.isArray(message)) {
      this.skipped += num(message?.skipped);
    } else {
      const items = list(message, 1000);
      this.total += items.length;
      this.recent.push([Date.now(), items.length]);
      if (this.recent.length > 200) this.recent.shift();
      const failed = items.filter(this.isFailed);
      this.all = this.all.concat(items).slice(-LIVE);
      this.failed = this.failed.concat(failed).slice(-LIVE);
      const fresh = this.onlyFailed ? failed : items;
      this.fresh = this.fresh.concat(fresh).slice(-LIVE);
      this.waiting += fresh.length;
    }
    this.schedule();
  },

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const [shortest, longest] = LIVE_PAUSE;
    const rest = Math.min(longest, Math.max(shortest, LIVE_REST * this.cost));
    setTimeout(() => requestAnimationFrame(() => {
      this.isScheduled = false;
      this.last = performance.now();
      this.draw();
      // A task after the frame: the time until then includes style, layout and paint.
      setTimeout(() => (this.cost = performance.now() - this.last));
    }), Math.max(0, this.last + rest - performance.now()));
  },

  /** Shows the fresh requests: the oldest rows move to the top and take the new text. */
  draw() {
    const { table } = this;
    if (!this.isPaused) {
      for (const item of this.fresh) {
        const row = table.body.childElementCount >= LIVE ? table.body.lastElementChild : table.row();
        table.write(row, item);
        table.body.prepend(row);
      }
      this.fresh = [];
      this.waiting = 0;
    }
    const hasRows = table.body.childElementCount > 0;
    table.box.hidden = !hasRows;
    table.empty.hidden = hasRows;
    setText(table.empty, this.onlyFailed
      ? "No request failed or was refused since this page opened."
      : "No request has finished since this page opened. Connect a client with \u201cbelljar connect\u201d, or attach a resource in one.");
    this.drawRate();
  },

  drawRate() {
    const window = Math.min(10000, Math.max(1000, performance.now()));
    const since = Date.now() - window;
    this.recent = this.recent.filter(([time]) => time >= since);
    const rate = this.recent.reduce((sum, [, size]) => sum + size, 0) / (window / 1000);
    const perSecond = rate > 0 && rate < 10 ? rate.toFixed(1) : count.format(rate);
    const words = [`${perSecond} requests per second.`];
    if (this.skipped > 0) words.push(`${count.format(this.skipped)} are not shown, because they came too fast.`);
    if (this.isPaused) words.push(`Paused: ${count.format(this.waiting)} new.`);
    setText(byId("rate"), words.join(" "));
    setText(byId("count-requests"), `${perSecond}/s`);
  },

  setPaused(isPaused) {
    this.isPaused = isPaused;
    byId("pause").setAttribute("aria-pressed", String(isPaused));
    this.draw();
  },

  setOnlyFailed(onlyFailed) {
    this.onlyFailed = onlyFailed;
    byId("failed-only").setAttribute("aria-pressed", String(onlyFailed));
    this.table.body.replaceChildren();
    this.fresh = onlyFailed ? this.failed : this.all;
    const { isPaused } = this;
    this.isPaused = false;
    this.draw();
    this.isPaused = isPaused;
    this.drawRate();
  },
};

// The rows scroll inside their box, so the keyboard needs to reach the box.
live.table.box.tabIndex = 0;
live.table.box.setAttribute("role", "region");
live.table.box.setAttribute("aria-label", "Finished requests, newest first");

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// --- The other tables ---

const pair = (a, b) => JSON.stringify([a, b]).slice(0, 4000);
const usage = [
  ["Answers", "num", (item) => [own(bytes(item.bytes)), own(tokens(item.bytes), "soft")]],
  ["Processor", "num", (item) => own(micros(item.cpu_micros))],
];
const times = ["Times", "num", (item) => number(item.times)];
const last = ["Last", "num", (item) => when(item.last)];

const refused = new Table("refused-table", "Refused", [
  ["Mount", "", (item) => given(item.mount, "first")],
  ["Grant", "", (item) => given(item.grant)],
  ["Asked for", "", (item) => given(item.what, "mono")],
  times,
  last,
  ["Command", "wide", (item) => (item.command ? command(item.command, "To allow it:") : own("No command allows this.", "soft"))],
], { first: 20, key: (item) => pair([item.mount, item.grant], item.what), mark: () => "refused" });

const STATES = { served: "good", compiling: "soft", quarantined: "bad", unserved: "bad" };
const isServed = (mount) => mount.state === "served";

const mounts = new Table("mounts-table", "Mounts", [
  ["Mount", "", (item) => [given(item.name, "first"), ...(item.base === `belljar://${item.name}/` ? [] : [given(item.base, "soft mono")])]],
  ["May", "", (item) => {
    const may = Array.isArray(item.may) ? item.may : [];
    if (may.length === 0) return own("compute only: no grants", "soft");
    return [...may.slice(0, 20).map((text) => given(text, "wrap")), ...(may.length > 20 ? [own(`and ${count.format(may.length - 20)} more`, "soft")] : [])];
  }],
  ["Component", "", (item) => [given(item.component), digest(item.digest)]],
  ["State", "", (item) => given(item.state, `word ${Object.hasOwn(STATES, item.state) ? STATES[item.state] : "soft"}`)],
  ["Calls", "num", (item) => number(item.calls)],
  ["Reused", "num", (item) => ({ ...number(item.served), title: "Reads that were answered without a call of their own" })],
  ["Failed", "num", (item) => number(item.failed, "bad")],
  ["Refused", "num", (item) => number(item.denied, "warn")],
  ...usage,
  ["Command", "wide", (item) => [
    ...(item.reason ? [given(item.reason, "wrap soft")] : []),
    ...(item.command ? [command(item.command, "To serve it:")] : []),
  ]],
], { first: matchMedia("(max-width: 40rem)").matches ? 25 : 100, style: "large", key: (item) => pair(item.name), mark: (item) => (["quarantined", "unserved"].includes(item.state) ? "failed" : "") });

/** The first 12 digits; the title has the whole digest. */
function digest(value) {
  const match = /^sha256:([0-9a-f]{64})$/.exec(asText(value) ?? "");
  if (match) return own(match[1].slice(0, 12), "soft mono", match[0]);
  return given(value, "soft mono");
}

const callers = new Table("callers-table", "Callers", [
  ["Caller", "", (item) => given(item.principal, "first")],
  ["Client", "", (item) => given(item.client)],
  ["Transport", "", (item) => given(item.transport)],
  ["Requests", "num", (item) => number(item.requests)],
  ["Failed", "num", (item) => number(item.failed, "bad")],
  ["Answers", "num", (item) => own(bytes(item.bytes))],
  ["Estimate", "num", (item) => own(tokens(item.bytes), "soft")],
  ["Processor", "num", usage[1][2]],
  last,
], { first: 20, key: (item) => pair(item.principal, [item.client, item.transport]) });

const limits = new Table("limits-table", "Limits reached", [
  ["Mount", "", (item) => given(item.mount, "first")],
  ["Limit", "", (item) => given(item.limit)],
  times,
  ["Used", "num", (item) => own(amount(item.limit, item.used))],
  ["Limit set", "num", (item) => own(amount(item.limit, item.cap))],
  last,
  ["Command", "wide", (item) => (item.command ? command(item.command, "To raise it:") : own("No setting raises this limit.", "soft"))],
], { first: 20, key: (item) => pair(item.mount, item.limit), mark: () => "refused" });

const readKey = (item) => pair([item.time, item.mount], [item.reference, item.micros]);
const slowest = new Table("slowest-table", "Slowest reads", [timeCell, ...requestCells], { first: 10, key: readKey, mark });
const largest = new Table("largest-table", "Largest reads", [timeCell, ...requestCells], { first: 10, key: readKey, mark });

const upstreams = new Table("upstreams-table", "Upstream requests", [
  ["Mount", "", (item) => given(item.mount, "first")],
  ["Request", "", (item) => given(item.what, "mono")],
  times,
  last,
], { first: 20, key: (item) => pair(item.mount, item.what) });

// --- The mounts, with their filter ---

let state = null;
let filter = "";
let onlyUnserved = false;

function drawMounts(isAsked = false) {
  if (state === null) return;
  const all = list(state.mounts, 1000);
  const wanted = all.filter((mount) => !(onlyUnserved && isServed(mount)) && matches(mount));
  const order = (mount) => (isServed(mount) ? 2 : mount.state === "compiling" ? 1 : 0);
  wanted.sort((a, b) => order(a) - order(b));
  const none = onlyUnserved && filter === "" ? "All mounts are served." : "No mount matches the filter. Clear it to see all.";
  mounts.update(wanted, all.length === 0 ? "There are no mounts. Run \u201cbelljar add FILE.wasm\u201d to add one." : none, isAsked);
}

function matches(mount) {
  if (filter === "") return true;
  const texts = [mount.name, mount.base, mount.component, mount.digest, mount.state, mount.reason, ...(Array.isArray(mount.may) ? mount.may : [])];
  return texts.some((text) => typeof text === "string" && text.slice(0, 2000).toLowerCase().includes(filter));
}

// --- The head ---

const figures = new Map();

/** Writes one figure of the head. `ratio` draws a bar. */
function figure(name, text, note = "", style = "", ratio = null, title = "") {
  let entry = figures.get(name);
  if (entry === undefined) {
    const place = element("div");
    entry = { value: element("span"), note: element("small"), bar: null };
    const line = element("dd");
    line.append(entry.value, " ", entry.note);
    if (ratio !== null) {
      const picture = drawing("svg", { "aria-hidden": "true", viewBox: "0 0 100 4", preserveAspectRatio: "none" });
      entry.bar = drawing("rect", { height: 4, width: 0 });
      picture.append(drawing("rect", { height: 4, width: 100 }), entry.bar);
      line.append(picture);
    }
    place.append(element("dt", "", name), line);
    if (title) place.title = title;
    byId("figures").append(place);
    figures.set(name, entry);
  }
  setText(entry.value, text);
  setText(entry.note, note);
  if (entry.value.className !== style) entry.value.className = style;
  if (entry.bar !== null) entry.bar.setAttribute("width", String(Math.round(Math.min(1, Math.max(0, ratio ?? 0)) * 100)));
}

function drawHead() {
  const memory = state.memory ?? {};
  const turns = state.turns ?? {};
  const styles = { ready: "word good", loading: "word warn", stopping: "word warn" };
  const word = segments(state.state, 40).shown;
  const ratio = (a, b) => (num(b) > 0 ? num(a) / num(b) : 0);
  figure("State", word, "", styles[word] ?? "word bad");
  figure("Version", segments(state.version, 40).shown);
  figure("Running for", span(num(state.now) - num(state.started)), "", "", null, `Since ${whole.format(dateOf(state.started))}`);
  figure("Memory", bytes(memory.used), num(memory.limit) > 0 ? `of ${bytes(memory.limit)}` : "", "", ratio(memory.used, memory.limit), "Memory of the sandboxes of all calls");
  figure("Turns", count.format(num(turns.used)), `of ${count.format(num(turns.limit))} in use`, "", ratio(turns.used, turns.limit), "Calls that run now, and the most that may run at once");
  figure("Subscribers", count.format(num(state.subscribers)), `to ${count.format(num(state.watched))} resources`);
  figure("Records waiting", count.format(num(state.records_waiting)), "", "", null, "Lines of the audit record that are not written yet");
  figure("Configuration", count.format(num(state.configuration)), "", "", null, "Grows by one with each change of the configuration");
}

function setCount(id, text, style = "") {
  const node = byId(id);
  setText(node, text);
  if (node.className !== style) node.className = style;
}

function drawCounts() {
  const all = list(state.mounts, 1000);
  const bad = all.filter((mount) => ["quarantined", "unserved"].includes(mount.state)).length;
  setCount("count-mounts", bad > 0 ? `${count.format(bad)} not served` : count.format(all.length), bad > 0 ? "bad" : "");
  for (const [id, items, max, style] of [
    ["count-refused", state.denials, 200, "warn"],
    ["count-callers", state.callers, 200, ""],
    ["count-limits", state.limits, 50, "warn"],
    ["count-upstreams", state.upstreams, 50, ""],
  ]) {
    const size = list(items, max).length;
    // belljar sends at most `max`, so there may be more.
    setCount(id, size === max ? `${max}+` : String(size), size > 0 ? style : "");
  }
}

// --- Plots ---

function drawing(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

const FRAME = { width: 400, height: 140, left: 58, right: 8, top: 8, bottom: 20 };

/** The smallest of 1, 2, 2.5, 5 times a power of ten (of two, for bytes) that is at least `value`. */
function ceiling(value, isBytes) {
  if (value <= 0) return 1;
  if (isBytes) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999);
}

class Plot {
  /** `value(point, step)` gives the height, `show(value)` its text. `sum` says that the points of an hour add up. */
  constructor(name, unit, value, showValue, { sum = false, isBytes = false, least = 0, style = "" } = {}) {
    Object.assign(this, { name, value, show: showValue, sum, isBytes, least, signature: "" });
    const { width, height, left, right, top, bottom } = FRAME;
    const place = element("figure", style);
    const caption = element("figcaption", "", `${name} `);
    caption.append(element("small", "", unit));
    this.svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    this.area = drawing("path", { class: "area" });
    this.curve = drawing("path", { class: "curve" });
    this.levels = [0, 0.5, 1].map((part) => {
      const y = height - bottom - part * (height - top - bottom);
      const label = drawing("text", { x: left - 6, y: y + 4, "text-anchor": "end" });
      this.svg.append(drawing("path", { class: "grid", d: `M${left} ${y}H${width - right}` }), label);
      return [part, label];
    });
    this.hours = [0, 1, 2, 3].map((part) => {
      const x = left + (part / 3) * (width - left - right);
      const label = drawing("text", { x, y: height - 4, "text-anchor": part === 3 ? "end" : "middle" });
      this.svg.append(label);
      return [part, label];
    });
    this.svg.append(this.area, this.curve);
    this.words = element("p");
    place.append(caption, this.svg, this.words);
    byId("plots").append(place);
  }

  update(points, step, now) {
    const { width, height, left, right, top, bottom } = FRAME;
    const heights = points.map((point) => this.value(point, step));
    const most = heights.reduce((a, b) => Math.max(a, b), 0);
    const max = Math.max(this.least, ceiling(most, this.isBytes));
    const x = (time) => (left + Math.max(0, 1 - (now - time) / HOUR) * (width - left - right)).toFixed(1);
    const y = (value) => (height - bottom - (value / max) * (height - top - bottom)).toFixed(1);
    let line = "";
    let area = "";
    let start = null;
    points.forEach((point, index) => {
      const at = `${x(num(point.t))} ${y(heights[index])}`;
      // A gap in the points is a gap in the line.
      const isGap = index === 0 || num(point.t) - num(points[index - 1].t) > 1.5 * step;
      if (isGap && start !== null) area += `V${y(0)}H${start}Z`;
      if (isGap) start = x(num(point.t));
      line += isGap ? `M${at}h0.1` : `L${at}`;
      area += isGap ? `M${start} ${y(0)}L${at}` : `L${at}`;
    });
    if (start !== null) area += `V${y(0)}H${start}Z`;
    this.curve.setAttribute("d", line);
    this.area.setAttribute("d", area);
    for (const [part, label] of this.levels) setText(label, this.show(part * max));
    for (const [part, label] of this.hours) setText(label, part === 3 ? "now" : minute.format(dateOf(now - HOUR + (part / 3) * HOUR)));
    const peak = heights.lastIndexOf(most);
    const words = [`Now ${this.show(heights.at(-1))}.`];
    if (most > 0) words.push(`Most ${this.show(most)}, at ${clock.format(dateOf(points[peak].t))}.`);
    if (this.sum) words.push(`${count.format(heights.reduce((a, b) => a + b, 0))} in the last hour.`);
    setText(this.words, words.join(" "));
    this.svg.setAttribute("aria-label", `${this.name} in the last hour. ${words.join(" ")}`);
  }
}

let plots = null;
let plotted = 0;
const percent = (value) => `${value < 1 && value > 0 ? value.toFixed(2) : short.format(value)} %`;

function drawHistory() {
  const step = num(state.history?.step) || 10000;
  const now = num(state.now);
  const points = list(state.history?.points, 360).filter((point) => num(point.t) > now - HOUR && num(point.t) <= now + step);
  if (points.length === 0) {
    if (plots === null) byId("plots").replaceChildren(element("p", "empty", `There are no points yet. The first comes ${span(step)} after the start.`));
    return;
  }
  const newest = num(points.at(-1).t);
  if (newest === plotted) return;
  plotted = newest;
  if (plots === null) {
    byId("plots").replaceChildren();
    const per = `per ${span(step)}`;
    const round = (value) => short.format(value);
    plots = [
      new Plot("Requests", per, (point) => num(point.requests), round, { sum: true }),
      new Plot("Failed requests", per, (point) => num(point.failed), round, { sum: true, style: "failures" }),
      new Plot("Processor time", "of one processor", (point, size) => num(point.cpu_micros) / size / 10, percent),
      new Plot("Memory", "of the sandboxes", (point) => num(point.memory), bytes, { isBytes: true }),
      new Plot("Turns", "in use", (point) => num(point.turns), round, { least: 2 }),
    ];
  }
  for (const plot of plots) plot.update(points, step, now);
}

// --- Frames ---

let jobs = [];

/** Runs the jobs over as many frames as they need. A newer state replaces the jobs of an older one. */
function runJobs() {
  const start = performance.now();
  while (jobs.length > 0 && performance.now() - start < FRAME_WORK) {
    try {
      jobs.shift()();
    } catch (error) {
      // One section that cannot be shown does not stop the others.
      console.error(error);
    }
  }
  if (jobs.length > 0) requestAnimationFrame(runJobs);
}

function drawState() {
  const isIdle = jobs.length === 0;
  jobs = [
    drawHead,
    drawCounts,
    () => refused.update(list(state.denials, 200), "Nothing was refused since the start."),
    () => drawMounts(),
    () => callers.update(list(state.callers, 200), "No caller has sent a request since the start. Connect one with \u201cbelljar connect\u201d."),
    () => limits.update(list(state.limits, 50), "No call reached a limit since the start."),
    () => slowest.update(list(state.slowest, 50), "Nothing was read since the start."),
    () => largest.update(list(state.largest, 50), "Nothing was read since the start."),
    () => upstreams.update(list(state.upstreams, 50), "No mount sent a request to another server. A mount needs a grant for HTTP to do so."),
    drawHistory,
    () => live.drawRate(),
  ];
  if (isIdle) requestAnimationFrame(runJobs);
}

// --- Connection ---

const links = { state: null, events: null };
let lost = 0;

function connected(link, isUp) {
  links[link] = isUp;
  const isLost = links.state === false || links.events === false;
  const isReady = links.state === true && links.events === true;
  if (!isLost) lost = 0;
  else if (lost === 0) lost = Date.now();
  const word = byId("connection").firstElementChild;
  setText(word, isLost ? `not connected since ${clock.format(new Date(lost))}; trying again` : isReady ? "connected" : "connecting");
  const style = `word ${isLost ? "bad" : isReady ? "good" : ""}`;
  if (word.className !== style) word.className = style;
}

let isAsking = false;

async function refresh() {
  if (document.hidden || isAsking) return;
  isAsking = true;
  try {
    const response = await fetch("api/state", { cache: "no-store", signal: AbortSignal.timeout(15000) });
    if (!response.ok) throw new Error(String(response.status));
    const answer = await response.json();
    if (answer === null || typeof answer !== "object") throw new Error("not a state");
    state = answer;
    connected("state", true);
    drawState();
  } catch {
    connected("state", false);
  } finally {
    isAsking = false;
  }
}

function listen() {
  const source = new EventSource("api/events");
  source.addEventListener("open", () => connected("events", true));
  source.addEventListener("message", (message) => {
    try {
      live.take(JSON.parse(message.data));
    } catch {
      // A message that is not JSON has nothing to show.
    }
  });
  source.addEventListener("error", () => {
    connected("events", false);
    // After an answer that is not a stream, the browser does not try again by itself.
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, REFRESH);
  });
}

// --- Controls ---

byId("pause").addEventListener("click", () => live.setPaused(!live.isPaused));
byId("failed-only").addEventListener("click", () => live.setOnlyFailed(!live.onlyFailed));
byId("filter").addEventListener("input", (event) => {
  filter = event.target.value.trim().toLowerCase();
  requestAnimationFrame(() => drawMounts(true));
});
byId("unserved-only").addEventListener("click", (event) => {
  onlyUnserved = !onlyUnserved;
  event.target.setAttribute("aria-pressed", String(onlyUnserved));
  requestAnimationFrame(() => drawMounts(true));
});
byId("whole").addEventListener("click", (event) => {
  const isFull = document.body.classList.toggle("full");
  event.target.setAttribute("aria-pressed", String(isFull));
});
document.addEventListener("visibilitychange", refresh);

function start() {
  setInterval(refresh, REFRESH);
  live.draw();
  refresh();
  listen();
}

// The page itself is painted first. A hidden page has no frames.
if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
