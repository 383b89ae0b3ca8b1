// Looks at the operator's console in a real browser, and prints one JSON report.
// Usage: node console.mjs URL CHROMIUM OUTDIR

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const [url, executablePath, directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: node console.mjs URL CHROMIUM OUTDIR");
const origin = new URL(url).origin;

/** The tallest screenshot. Chromium repeats the picture below 16,384 pixels. */
const MAX_HEIGHT = 16000;
/** The most stops of the Tab key in the report. */
const MAX_STOPS = 150;
const NARROW = 400;
const WIDE = 1400;
const HEIGHT = 900;

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Runs in the page: the visible texts with a contrast below 4.5:1. */
function contrastFailures() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  const parse = (text) => {
    if (!colours.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colours.set(text, [r, g, b, a / 255]);
    }
    return colours.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const grounds = new Map();
  const ground = (element) => {
    if (element === null) return parse(getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#ffffff");
    if (!grounds.has(element)) grounds.set(element, over(parse(getComputedStyle(element).backgroundColor), ground(element.parentElement)));
    return grounds.get(element);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const failures = [];
  let checked = 0;
  const check = (element, colour, text) => {
    let opacity = 1;
    for (let at = element; at !== null; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const below = ground(element);
    const [r, g, b, a] = parse(colour);
    const [high, low] = [light(over([r, g, b, a * opacity], below)), light(below)].sort((x, y) => y - x);
    const ratio = (high + 0.05) / (low + 0.05);
    checked += 1;
    if (ratio < 4.5) failures.push({ text: text.trim().slice(0, 60), ratio: Number(ratio.toFixed(2)), element: `${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""}` });
  };
  const isVisible = (element) => {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false;
    for (let at = element; at !== null; at = at.parentElement) if (getComputedStyle(at).clipPath !== "none") return false;
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() === "" || !isVisible(element)) continue;
    const style = getComputedStyle(element);
    check(element, element instanceof SVGElement ? style.fill : style.color, walker.currentNode.data);
  }
  for (const element of document.body.querySelectorAll("*")) {
    for (const pseudo of ["::before", "::after", "::placeholder"]) {
      const style = getComputedStyle(element, pseudo);
      const isText = pseudo === "::placeholder" ? element.matches("input") && element.value === "" : !["none", "normal", '""'].includes(style.content);
      if (isText && isVisible(element)) check(element, style.color, `${pseudo} ${style.content}`);
    }
  }
  return { failures: failures.length, worst: failures.sort((a, b) => a.ratio - b.ratio).slice(0, 20), checked };
}

/** Runs in the page: what scrolls sideways. */
function sideways() {
  const root = document.scrollingElement;
  const boxes = [...document.body.querySelectorAll("*")].filter((element) => {
    const { overflowX } = getComputedStyle(element);
    return ["auto", "scroll"].includes(overflowX) && element.scrollWidth > element.clientWidth + 1;
  });
  return { document: root.scrollWidth > document.documentElement.clientWidth, boxes: boxes.map((box) => `${box.tagName.toLowerCase()}.${box.className}`).slice(0, 10) };
}

/** Runs in the page: the texts of each section, one text node a line. */
function sectionTexts() {
  const all = {};
  for (const section of document.querySelectorAll("section")) {
    const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest("[hidden]") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    const texts = [];
    while (walker.nextNode()) if (walker.currentNode.data.trim() !== "") texts.push(walker.currentNode.data.trim());
    all[section.querySelector("h2").textContent] = texts.join("\n");
  }
  return all;
}

/** Runs in the page: true if a bidirectional control is in a text or in an attribute. */
function hasRawControls() {
  const controls = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
  const attributes = [...document.querySelectorAll("*")].flatMap((element) => [...element.attributes].map(({ value }) => value));
  return [document.documentElement.textContent, ...attributes].some((text) => controls.test(text));
}

/** Opens the page and waits for the first state. */
async function open(browser, counts, { width, scheme = "light", throttle = 1 }) {
  const page = await browser.newPage();
  page.on("dialog", (dialog) => {
    counts.dialogs += 1;
    dialog.dismiss();
  });
  page.on("console", (message) => message.type() === "error" && counts.errors.push(message.text()));
  page.on("pageerror", (error) => counts.errors.push(String(error)));
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.protocol !== "data:" && target.origin !== origin) counts.foreign.push(request.url());
  });
  await page.evaluateOnNewDocument(() => {
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.__violations.push(`${event.effectiveDirective} ${event.blockedURI}`));
  });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: HEIGHT });
  if (throttle !== 1) await page.emulateCPUThrottling(throttle);
  await page.goto(url, { waitUntil: "load", timeout: 30000 });
  await page.waitForFunction(() => document.querySelectorAll("#figures dd").length > 0, { timeout: 15000 });
  await pause(2500);
  return page;
}

async function view(browser, scheme, width) {
  const counts = { dialogs: 0, errors: [], foreign: [] };
  const page = await open(browser, counts, { width, scheme });
  const file = join(directory, `console-${scheme}-${width}.png`);
  const scrolls = await page.evaluate(sideways);
  // The whole page becomes the window, because the browser does not paint long tables outside of it. Rows get their real
  // height in the window, so the page grows meanwhile.
  let height = HEIGHT;
  for (let round = 0; round < 3; round += 1) {
    height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.setViewport({ width, height: Math.min(height, MAX_HEIGHT) });
    await pause(1000);
  }
  await page.screenshot({ path: file, captureBeyondViewport: false });
  const contrast = await page.evaluate(contrastFailures);
  const violations = await page.evaluate(() => window.__violations);
  const pwned = await page.evaluate(() => window.__pwned ?? null);
  const raw = await page.evaluate(hasRawControls);
  await page.close();
  return { scheme, width, height, screenshot: file, scrolls_sideways: scrolls.document, boxes_that_scroll_sideways: scrolls.boxes, contrast, console_errors: counts.errors, csp_violations: violations, foreign_requests: counts.foreign, dialogs: counts.dialogs, pwned, raw_bidi_controls: raw };
}

/** Presses Tab until the focus comes back. Returns role, accessible name, and whether the focus is visible. */
async function tabOrder(page) {
  const session = await page.createCDPSession();
  const stops = [];
  await page.evaluate(() => (window.__seen = new Set()));
  while (stops.length < MAX_STOPS) {
    await page.keyboard.press("Tab");
    const { result } = await session.send("Runtime.evaluate", { expression: "document.activeElement" });
    const facts = await page.evaluate(() => {
      const element = document.activeElement;
      const isNew = element !== document.body && !window.__seen.has(element);
      window.__seen.add(element);
      return { isNew, isShown: getComputedStyle(element).outlineStyle !== "none" };
    });
    if (!facts.isNew) break;
    const { nodes } = await session.send("Accessibility.getPartialAXTree", { objectId: result.objectId, fetchRelatives: false });
    stops.push({ role: nodes[0]?.role?.value ?? "", name: nodes[0]?.name?.value ?? "", focus_is_visible: facts.isShown });
  }
  return stops;
}

/** The share of one processor that the page's main thread takes. */
async function taskShare(page, time) {
  const session = await page.createCDPSession();
  await session.send("Performance.enable");
  const read = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  const before = await read();
  await pause(time);
  const after = await read();
  return Number(((after.TaskDuration - before.TaskDuration) / (after.Timestamp - before.Timestamp)).toFixed(4));
}

const firstPaint = (page) => page.evaluate(() => Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1));

/** True if the Pause button, pressed by the keyboard, stops the live requests. */
async function pauseStops(page) {
  const top = () => page.evaluate(() => document.querySelector("#requests-table tbody")?.textContent);
  await page.focus("#pause");
  await page.keyboard.press("Space");
  await pause(300);
  const before = await top();
  await pause(2500);
  const stopped = before === (await top());
  await page.keyboard.press("Space");
  return stopped;
}

mkdirSync(directory, { recursive: true });
const browser = await puppeteer.launch({ executablePath, headless: true, args: ["--no-sandbox", "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--no-first-run"] });
try {
  const views = [];
  for (const scheme of ["light", "dark"]) for (const width of [NARROW, WIDE]) views.push(await view(browser, scheme, width));
  const counts = { dialogs: 0, errors: [], foreign: [] };
  const slow = await open(browser, counts, { width: WIDE, throttle: 4 });
  const slowPaint = await firstPaint(slow);
  await slow.close();
  const page = await open(browser, counts, { width: WIDE });
  const paint = await firstPaint(page);
  const share = await taskShare(page, 5000);
  const sections = await page.evaluate(sectionTexts);
  const header = await page.evaluate(() => document.querySelector("header").innerText);
  const paused = await pauseStops(page);
  await page.reload({ waitUntil: "load" });
  await pause(2500);
  const tabs = await tabOrder(page);
  const report = {
    browser: await browser.version(),
    dialogs: views.reduce((sum, each) => sum + each.dialogs, counts.dialogs),
    pwned: [...views.map((each) => each.pwned), await page.evaluate(() => window.__pwned ?? null)].find((each) => each !== null) ?? null,
    raw_bidi_controls: views.some((each) => each.raw_bidi_controls) || (await page.evaluate(hasRawControls)),
    first_contentful_paint_ms: paint,
    first_contentful_paint_slow_ms: slowPaint,
    renderer_share: share,
    pause_stops: paused,
    console_errors: views.reduce((all, each) => all.concat(each.console_errors), counts.errors),
    csp_violations: views.flatMap((each) => each.csp_violations).concat(await page.evaluate(() => window.__violations)),
    foreign_requests: views.reduce((all, each) => all.concat(each.foreign_requests), counts.foreign),
    header,
    tab_order: tabs,
    sections,
    views,
  };
  console.log(JSON.stringify(report, null, 1));
} finally {
  await browser.close();
}
