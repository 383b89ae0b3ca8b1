// Requests in Node, for unit tests: the function of Node. A test sets `globalThis.fetch` to answer them itself.
const { Headers, Response } = globalThis;

export { Headers, Response };

/** Sends a request, and follows redirects. */
export function fetch(input, init) {
  return globalThis.fetch(input, init);
}
