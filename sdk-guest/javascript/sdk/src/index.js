// The SDK's functions. They do not need belljar, and work in Node as in a component.
export { ProviderError, NotFound, Invalid, Denied, Unavailable, Failed } from "./errors.js";
export { text, json, blob, fromBytes, page } from "./model.js";
export { cut, extent, within } from "./parts.js";
export { tool, prompt, ask, context, startingWith } from "./calls.js";
export * as schema from "./schema.js";
export { encodeSegment, encodePath, decode, split } from "./reference.js";
export { decodeUtf8, decodeLatin1, encodeUtf8, compareText } from "./text.js";
