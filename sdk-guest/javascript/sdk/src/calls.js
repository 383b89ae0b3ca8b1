// Tools, prompts and questions: what an author defines, and its conversion to the values that the generated world takes.
import { HOST, content, hints, optional, pairs, pictures, size, suggestions, toJson } from "./convert.js";
import { Invalid } from "./errors.js";
import * as schema from "./schema.js";
import { settle } from "./settle.js";

const NAME = /^[A-Za-z0-9_-]{1,48}$/;

/** Defines a tool. Its `run` stays callable, so that tests can call it. */
export function tool({ input = schema.object({}), ...definition }) {
  checkName("tool", definition);
  for (const [key, one] of Object.entries({ input, output: definition.output })) {
    if (one && one.json?.type !== "object") {
      throw new TypeError(`the ${key} of the tool "${definition.name}" must be an object: use schema.object({ ... })`);
    }
  }
  const run = (values, context = noContext) => definition.run(values, context);
  const made = { ...definition, input, run };
  made[HOST] = {
    info: () => toolInfo(made),
    call: (values, given) => outcome(settle(run(JSON.parse(values), fromHost(given))), toolResult),
  };
  return made;
}

/** Defines a prompt. Its `run` stays callable, so that tests can call it. */
export function prompt({ arguments: all = {}, suggest = {}, ...definition }) {
  checkName("prompt", definition);
  for (const [name, one] of Object.entries(all)) {
    if (one.json?.type !== "string") {
      throw new TypeError(`the argument "${name}" of the prompt "${definition.name}" must be a text: use schema.string()`);
    }
  }
  for (const name of Object.keys(suggest)) {
    if (!Object.hasOwn(all, name)) {
      throw new TypeError(`the prompt "${definition.name}" has suggestions for "${name}", which is not one of its arguments`);
    }
  }
  const run = (values, context = noContext) => definition.run(values, context);
  const complete = (name, text, resolved = new Map()) => {
    const known = Object.hasOwn(all, name) ? (suggest[name] ?? all[name].json.enum ?? []) : [];
    if (typeof known !== "function") return startingWith(text, known);
    const given = known(text, resolved);
    return Array.isArray(given) ? { values: given } : given;
  };
  const made = { ...definition, arguments: all, suggest, run, complete };
  made[HOST] = {
    info: () => promptInfo(made),
    get: (given, from) => outcome(settle(run(promptValues(made, given), fromHost(from))), promptResult),
    complete: ({ name, value }, resolved) => suggestions(complete(name, value, resolved)),
  };
  return made;
}

/** One to eight questions, instead of a result. */
export function ask(questions, state) {
  return { questions: Array.isArray(questions) ? questions : [questions], state };
}

/** What a call knows of its client. Tests make one; a component gets one from the host. */
export function context({ canAsk = false, answers = [], state } = {}) {
  const known = new Map(answers instanceof Map ? answers : Object.entries(answers));
  const accepted = (key) => (known.get(key)?.action === "accept" ? known.get(key).content : undefined);
  return { canAsk, answers: known, state, accepted };
}

const noContext = context();

/** The values that start with a text in any case, at most 100, with their total number. */
export function startingWith(text, values) {
  const start = text.toLowerCase();
  const found = [...values].filter((value) => value.toLowerCase().startsWith(start));
  return found.length > 100 ? { values: found.slice(0, 100), total: found.length } : { values: found };
}

function toolInfo({ input, output, effect, idempotent, openWorld, view, ...described }) {
  return {
    ...info(described),
    // A misspelled argument is an error that the model can correct.
    input: toJson({ additionalProperties: false, ...input.json }),
    output: output ? toJson(output.json) : null,
    // Without hints, a tool claims the worst, as in MCP.
    effect: effect ?? "destroys",
    idempotent: idempotent ?? false,
    openWorld: openWorld ?? true,
    view: view ? { page: view.page, appOnly: view.appOnly ?? false } : null,
  };
}

function promptInfo({ arguments: definitions, ...described }) {
  const list = Object.entries(definitions).map(([name, { json, optional: isOptional }]) => ({
    name,
    title: optional(json.title),
    description: optional(json.description),
    required: !isOptional,
  }));
  return { ...info(described), arguments: list };
}

/** The arguments of a prompt. The host checks that they are texts, but not which texts. */
function promptValues({ name, arguments: all }, given) {
  const values = Object.fromEntries(given.map((argument) => [argument.name, argument.value]));
  for (const [key, { json, optional: isOptional }] of Object.entries(all)) {
    if (!Object.hasOwn(values, key)) {
      if (!isOptional) throw new Invalid(`the prompt "${name}" needs the argument "${key}"`);
    } else if (json.enum && !json.enum.includes(values[key])) {
      throw new Invalid(`"${key}" must be one of ${json.enum.join(", ")}, not "${values[key]}"`);
    }
  }
  return values;
}

function checkName(kind, { name, description }) {
  if (!NAME.test(name)) {
    throw new TypeError(`the name of the ${kind} "${name}" must be 1 to 48 of the characters A-Z a-z 0-9 _ -`);
  }
  if (!description) throw new TypeError(`the ${kind} "${name}" has no description`);
}

function info({ name, title, description, icons, meta }) {
  return { name, title: optional(title), description: description.toWellFormed(), icons: pictures(icons), meta: pairs(meta) };
}

function fromHost({ canAsk, answers, state }) {
  const pairs = answers.map(({ key, action, content }) => [
    key,
    { action, content: content === null || content === undefined ? undefined : JSON.parse(content) },
  ]);
  return context({ canAsk, answers: new Map(pairs), state: state ?? undefined });
}

function outcome(value, convert) {
  if (!value?.questions) return { tag: "done", val: convert(value) };
  const questions = value.questions.map(({ key, message, form }) => ({
    key,
    message: message.toWellFormed(),
    form: toJson(form.json),
  }));
  return { tag: "ask", val: { questions, state: optional(value.state) } };
}

function toolResult(value) {
  const isResult = ["content", "structured", "isError"].some((key) => isObject(value) && key in value);
  const { content, structured, isError = false, meta } = isResult ? value : { content: value ?? "Done." };
  if (structured !== undefined && (!isObject(structured) || Array.isArray(structured))) {
    throw new TypeError("a structured result must be an object");
  }
  const json = structured === undefined ? null : toJson(structured);
  // Some clients show their model only the content, and others only the structured result.
  return { content: list(content ?? json ?? []).map(block), structured: json, isError, meta: pairs(meta) };
}

function promptResult(value) {
  const { messages, description } = isObject(value) && "messages" in value ? value : { messages: value };
  const all = list(messages ?? []).map((one) => {
    const { role = "user", content } = isObject(one) && "content" in one ? one : { content: one };
    return { role, block: block(content) };
  });
  if (all.length === 0) throw new TypeError("a prompt must return at least one message");
  return { description: optional(description), messages: all };
}

function block(value) {
  if (typeof value === "string") return { body: { tag: "text", val: value.toWellFormed() }, annotations: null };
  return { body: body(value), annotations: hints(value?.annotations) };
}

function body(value) {
  if (isObject(value)) {
    if ("text" in value) return { tag: "text", val: String(value.text).toWellFormed() };
    for (const tag of ["image", "audio"]) {
      if (tag in value) return { tag, val: { mimeType: value.mimeType, data: value[tag] } };
    }
    if ("embedded" in value) return { tag: "embedded", val: content(value.embedded) };
    if ("link" in value) {
      const { link: reference, name, title, description, mimeType, size: bytes } = value;
      const shown = { title: optional(title), description: optional(description), mimeType: optional(mimeType) };
      return { tag: "link", val: { reference, name: name ?? reference, ...shown, size: size(bytes) } };
    }
  }
  throw new TypeError("a piece of content must be a text, or an object with text, image, audio, link or embedded");
}

function list(value) {
  return Array.isArray(value) ? value : [value];
}

function isObject(value) {
  return typeof value === "object" && value !== null;
}
