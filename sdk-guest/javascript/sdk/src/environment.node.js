// Settings in Node, for unit tests. The same function as environment.wasi.js.

/** The value of a setting, or undefined if it is not set. */
export function get(name) {
  return process.env[name];
}
