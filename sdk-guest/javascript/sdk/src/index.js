// What a provider is written with. Nothing here needs belljar: it runs in Node as it does in a component.
export { ProviderError, NotFound, Invalid, Denied, Unavailable, Failed } from "./errors.js";
export { text, json, blob, fromBytes, page } from "./model.js";
export { encodeSegment, encodePath, decode, split } from "./reference.js";
export { decodeUtf8, encodeUtf8, compareText } from "./text.js";
