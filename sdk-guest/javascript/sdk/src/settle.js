// What a provider's function returns: a value, or a promise of one. The engine runs no promises, and the exports of a
// component are synchronous, so a promise needs the queue of `promise.js`. Only `@belljar/guest/fetch` brings it.
let wait = (promise) => {
  throw new TypeError(
    `the provider returned a ${promise.constructor?.name ?? "promise"}, and a component waits only for requests: import { fetch } from "@belljar/guest/fetch"`,
  );
};

/** The value of a promise, or the value itself. */
export function settle(value) {
  return typeof value?.then === "function" ? wait(value) : value;
}

/** Sets the function that waits for a promise. */
export function settleWith(waiter) {
  wait = waiter;
}
