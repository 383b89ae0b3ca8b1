// Converts the data of a provider to the plain values that the generated world takes.

/**
 * The key of the functions of a tool or a prompt for the host. They are part of the definition, so that a component without
 * tools and prompts does not contain them.
 */
export const HOST = Symbol("host");

export function resourcePage({ resources = [], nextCursor }) {
  return { resources: [...resources].map(resourceInfo), nextCursor: optional(nextCursor) };
}

function resourceInfo(resource) {
  if (typeof resource.reference !== "string") throw new TypeError("an entry of the list has no reference");
  return { reference: resource.reference.toWellFormed(), size: size(resource.size), ...described(resource, resource.reference) };
}

export function templateInfo(template) {
  if (typeof template.template !== "string") throw new TypeError("an entry of the templates has no template");
  return { template: template.template.toWellFormed(), ...described(template, template.template) };
}

function described({ name, title, description, mimeType, annotations, icons = [], meta }, otherwise) {
  return {
    name: String(name ?? otherwise).toWellFormed(),
    title: optional(title),
    description: optional(description),
    mimeType: optional(mimeType),
    annotations: hints(annotations),
    icons: pictures(icons),
    meta: pairs(meta),
  };
}

export function hints(annotations) {
  if (!annotations) return null;
  const { audience = [], priority = null, lastModified } = annotations;
  return { audience, priority, lastModified: time(lastModified) };
}

export function pictures(icons = []) {
  return icons.map((icon) => ({ src: icon.src, mimeType: optional(icon.mimeType), sizes: icon.sizes ?? [] }));
}

export function reading({ contents, freshFor }) {
  return { contents: contents.map(content), freshFor: freshFor === undefined ? null : Math.trunc(freshFor) };
}

export function partialReading(given) {
  return { ...reading(given), extent: given.extent ? extentOf(given.extent) : null };
}

function extentOf({ unit, start, end, total, more }) {
  return { unit, start: size(start), end: size(end), total: size(total), more: Boolean(more) };
}

/** The range of a caller. */
export function rangeOf(range) {
  if (!range) return undefined;
  const { unit, positions } = range;
  if (positions.tag === "last") return { unit, last: Number(positions.val) };
  const { start, end } = positions.val;
  return { unit, start: Number(start), end: end === undefined || end === null ? undefined : Number(end) };
}

export function content({ reference, mimeType, text, blob, meta }) {
  const body = blob === undefined ? { tag: "text", val: String(text).toWellFormed() } : { tag: "blob", val: blob };
  return { reference, mimeType: optional(mimeType), body, meta: pairs(meta) };
}

export function suggestions(given) {
  const { values, total } = Array.isArray(given) ? { values: given } : given;
  return { values: values.map((value) => value.toWellFormed()), total: total ?? null };
}

export function skillPage({ skills, nextCursor }) {
  return { skills: skills.map(skill), nextCursor: optional(nextCursor) };
}

export function skill({ root, files }) {
  return { root: root.toWellFormed(), files: files.map((file) => file.toWellFormed()) };
}

export function optional(value) {
  return value === undefined || value === null ? null : String(value).toWellFormed();
}

export function size(value) {
  if (value === undefined || value === null) return null;
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new TypeError(`a size is a whole number of bytes, not ${value}`);
  return number;
}

function time(value) {
  return value instanceof Date ? value.toISOString() : optional(value);
}

export function pairs(meta) {
  return Object.entries(meta ?? {}).map(([key, value]) => [key.toWellFormed(), toJson(value ?? null)]);
}

/** The JSON text of a value. */
export function toJson(value) {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError("a value has no JSON form");
  // JSON.stringify escapes lone surrogates, and the host refuses these escapes.
  return text.includes("\\ud") ? JSON.stringify(value, wellFormed) : text;
}

function wellFormed(_, value) {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.toWellFormed(), one]));
}
