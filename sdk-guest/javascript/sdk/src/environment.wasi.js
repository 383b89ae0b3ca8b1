// Granted settings, through wasi:cli. The same function as environment.node.js.
import environment from "wasi:cli/environment@0.2.12";

/** The value of a setting, or undefined if the operator did not set it. */
export function get(name) {
  return environment.getEnvironment().find(([key]) => key === name)?.[1];
}
