// Connects a provider with the interfaces that a component exports. The generated world calls plain functions with plain
// values. Every value that a provider throws becomes an error of the interface, never a trap.
import stderr from "wasi:cli/stderr@0.2.12";

import { HOST, optional, partialReading, rangeOf, reading, resourcePage, skill, skillPage, suggestions, templateInfo } from "./convert.js";
import { NotFound, ProviderError } from "./errors.js";
import { settle } from "./settle.js";
import { encodeUtf8 } from "./text.js";

/**
 * The exports of a component for a provider: `resourceProvider`, and also `completion`, `revisions`, `parts` and
 * `skillProvider` if the provider has their methods, `toolProvider` if it has `tools`, and `promptProvider` if it has `prompts`.
 */
export function component(provider) {
  const exports = {
    resourceProvider: {
      describe: () => describe(provider),
      listResources: (cursor) => answer(() => resourcePage(settle(provider.listResources?.(cursor ?? undefined)) ?? {})),
      listTemplates: () => answer(() => (settle(provider.listTemplates?.()) ?? []).map(templateInfo)),
      read: (reference) => answer(() => reading(settle(provider.read(reference)))),
    },
  };
  if (provider.complete) {
    exports.completion = {
      complete: (template, argument, resolved) =>
        answer(() => suggestions(settle(provider.complete(template, argument, toMap(resolved))))),
    };
  }
  if (provider.catalogRevision) {
    exports.revisions = {
      catalogRevision: () => answer(() => String(settle(provider.catalogRevision()))),
      resourceRevisions: (references) => references.map((reference) => revision(provider, reference)),
    };
  }
  if (provider.readPart) {
    exports.parts = {
      readPart: (reference, range, most) => answer(() => partialReading(settle(provider.readPart(reference, rangeOf(range), Number(most))))),
      listBelow: (reference, cursor) => answer(() => resourcePage(below(provider, reference, cursor ?? undefined))),
    };
  }
  // A list is checked now, so that a mistake is an error of the build.
  for (const list of [provider.tools, provider.prompts]) if (Array.isArray(list)) all(list);
  if (provider.tools) {
    exports.toolProvider = {
      listTools: () => answer(() => all(provider.tools).map((one) => one[HOST].info())),
      call: (name, values, context) => answer(() => find("tool", provider.tools, name).call(values, context)),
    };
  }
  if (provider.prompts) {
    exports.promptProvider = {
      listPrompts: () => answer(() => all(provider.prompts).map((one) => one[HOST].info())),
      get: (name, values, context) => answer(() => find("prompt", provider.prompts, name).get(values, context)),
      complete: (name, argument, resolved) =>
        answer(() => find("prompt", provider.prompts, name).complete(argument, toMap(resolved))),
    };
  }
  if (provider.listSkills) {
    exports.skillProvider = {
      listSkills: (cursor) => answer(() => skillPage(settle(provider.listSkills(cursor ?? undefined)))),
      getSkill: (root) => answer(() => skill(provider.getSkill ? settle(provider.getSkill(root)) : listed(provider, root))),
    };
  }
  return exports;
}

function below(provider, reference, cursor) {
  if (!provider.listBelow) throw new NotFound(`there is no directory "${reference}"`);
  return settle(provider.listBelow(reference, cursor));
}

/** All tools or prompts: a list, or a function that makes one. */
function all(definitions) {
  const list = typeof definitions === "function" ? definitions() : definitions;
  list.forEach((one, at) => {
    if (!one?.[HOST]) throw new TypeError("an entry of the tools or prompts was not made by tool() or prompt()");
    if (list.findIndex(({ name }) => name === one.name) !== at) {
      throw new TypeError(`there are two definitions with the name "${one.name}": rename one`);
    }
  });
  return list;
}

function find(kind, definitions, name) {
  const found = all(definitions).find((one) => one.name === name);
  if (!found) throw new NotFound(`there is no ${kind} "${name}"`);
  return found[HOST];
}

/** A skill of the list. */
function listed(provider, root) {
  let cursor;
  do {
    const { skills, nextCursor } = settle(provider.listSkills(cursor));
    const found = skills.find((skill) => skill.root === root);
    if (found) return found;
    cursor = nextCursor;
  } while (cursor !== undefined && cursor !== null);
  throw new NotFound(`there is no skill "${root}"`);
}

/** Writes a line to the host's log. */
function log(...values) {
  const line = values.map((value) => (value instanceof Error ? `${value}\n${value.stack.trimEnd()}` : String(value))).join(" ");
  const bytes = encodeUtf8(`${line}\n`);
  const stream = stderr.getStderr();
  try {
    // A stream takes at most 4096 bytes at a time.
    for (let at = 0; at < bytes.length; at += 4096) stream.blockingWriteAndFlush(bytes.subarray(at, at + 4096));
  } finally {
    stream[Symbol.dispose]();
  }
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
    const { title, version, description } = settle(provider.describe?.()) ?? {};
    return { title: optional(title), version: optional(version), description: optional(description) };
  } catch (error) {
    // In the interface, describe has no error.
    console.error(error);
    return { title: null, version: null, description: null };
  }
}

function revision(provider, reference) {
  try {
    return { tag: "ok", val: String(settle(provider.resourceRevision(reference))) };
  } catch (error) {
    return { tag: "err", val: failure(error) };
  }
}

function toMap(resolved) {
  return new Map(resolved.map(({ name, value }) => [name, value]));
}
