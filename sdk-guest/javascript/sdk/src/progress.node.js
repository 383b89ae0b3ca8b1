// Progress in Node, for unit tests: there is no caller. The same function as progress.wasi.js.

/** Does nothing. */
export function report() {}
