// Connects a provider with the interfaces that a component exports. The generated world calls plain functions with plain
// values. Every value that a provider throws becomes an error of the interface, never a trap.
import stderr from "wasi:cli/stderr@0.2.12";

import { ProviderError } from "./errors.js";
import { encodeUtf8 } from "./text.js";

/**
 * The exports of a component for a provider: `resourceProvider`, and also `completion` and `revisions` if the provider
  * has their methods.
 */
export function component(provider) {
  const exports = {
    resourceProvider: {
      describe: () => describe(provider),
      listResources: (cursor) => answer(() => resourcePage(provider.listResources?.(cursor ?? undefined) ?? {})),
      listTemplates: () => answer(() => (provider.listTemplates?.() ?? []).map(templateInfo)),
      read: (reference) => answer(() => reading(provider.read(reference))),
    },
  };
  if (provider.complete) {
    exports.completion = {
      complete: (template, argument, resolved) =>
        answer(() => suggestions(provider.complete(template, argument, toMap(resolved)))),
    };
  }
  if (provider.catalogRevision) {
    exports.revisions = {
      catalogRevision: () => answer(() => String(provider.catalogRevision())),
      resourceRevisions: (references) => references.map((reference) => revision(provider, reference)),
    };
  }
  return exports;
}

/** Writes a line to the host's log. */
function log(...values) {
  const line = values.map((value) => (value instanceof Error ? `${value}\n${value.stack.trimEnd()}` : String(value))).join(" ");
  const stream = stderr.getStderr();
  // A stream takes at most 4096 bytes at a time.
  const bytes = encodeUtf8(`${line}\n`);
  for (let at = 0; at < bytes.length; at += 4096) stream.blockingWriteAndFlush(bytes.subarray(at, at + 4096));
}

// Libraries expect this global; the engine does not have it.
globalThis.console ??= { log, info: log, warn: log, error: log, debug: log, trace: log };

function answer(call) {
  try {
    return call();
  } catch (error) {
    throw failure(error);
  }
}

function failure(error) {
  if (!(error instanceof ProviderError)) console.error(error);
  const kind = error instanceof ProviderError ? error.kind : "failed";
  if (kind === "not-found") return { tag: kind };
  return { tag: kind, val: String(error?.message ?? error).toWellFormed() };
}

function describe(provider) {
  try {
    const { title, version, description } = provider.describe?.() ?? {};
    return { title: optional(title), version: optional(version), description: optional(description) };
  } catch (error) {
    // In the interface, describe has no error.
    console.error(error);
    return { title: null, version: null, description: null };
  }
}

function resourcePage({ resources = [], nextCursor }) {
  return { resources: [...resources].map(resourceInfo), nextCursor: optional(nextCursor) };
}

function resourceInfo(resource) {
  if (typeof resource.reference !== "string") throw new TypeError("an entry of the list has no reference");
  return { reference: resource.reference.toWellFormed(), size: size(resource.size), ...described(resource, resource.reference) };
}

function templateInfo(template) {
  if (typeof template.template !== "string") throw new TypeError("an entry of the templates has no template");
  return { template: template.template.toWellFormed(), ...described(template, template.template) };
}

function described({ name, title, description, mimeType, annotations, icons = [], meta }, otherwise) {
  return {
    name: String(name ?? otherwise).toWellFormed(),
    title: optional(title),
    description: optional(description),
    mimeType: optional(mimeType),
    annotations: annotations
      ? {
          audience: annotations.audience ?? [],
          priority: annotations.priority ?? null,
          lastModified: time(annotations.lastModified),
        }
      : null,
    icons: icons.map((icon) => ({ src: icon.src, mimeType: optional(icon.mimeType), sizes: icon.sizes ?? [] })),
    meta: pairs(meta),
  };
}

function reading({ contents, freshFor }) {
  return { contents: contents.map(content), freshFor: freshFor === undefined ? null : Math.trunc(freshFor) };
}

function content({ reference, mimeType, text, blob, meta }) {
  const body = blob === undefined ? { tag: "text", val: String(text).toWellFormed() } : { tag: "blob", val: blob };
  return { reference, mimeType: optional(mimeType), body, meta: pairs(meta) };
}

function suggestions(given) {
  const { values, total } = Array.isArray(given) ? { values: given } : given;
  return { values: values.map((value) => value.toWellFormed()), total: total ?? null };
}

function revision(provider, reference) {
  try {
    return { tag: "ok", val: String(provider.resourceRevision(reference)) };
  } catch (error) {
    return { tag: "err", val: failure(error) };
  }
}

function toMap(resolved) {
  return new Map(resolved.map(({ name, value }) => [name, value]));
}

function optional(value) {
  return value === undefined || value === null ? null : String(value).toWellFormed();
}

function size(value) {
  if (value === undefined || value === null) return null;
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new TypeError(`a size is a whole number of bytes, not ${value}`);
  return number;
}

function time(value) {
  return value instanceof Date ? value.toISOString() : optional(value);
}

function pairs(meta) {
  return Object.entries(meta ?? {}).map(([key, value]) => [key, JSON.stringify(value ?? null)]);
}
