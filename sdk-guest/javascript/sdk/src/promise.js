// Promises for an engine that runs none: their jobs wait in a queue, which `settle` works off while an export runs. The build
// turns `async` functions into generators, which use the global `Promise`. When no job is left, `settle` waits for the host.
import { settleWith } from "./settle.js";

const PENDING = 0;
const FULFILLED = 1;
const REJECTED = 2;

/** Functions that run in this order, once the running function has returned. */
let jobs = [];

/** Operations of the host: the pollable of each, and the function that ends the wait. */
let waiting = [];

/** Waits for all pollables of a list, until one is ready. Returns the positions of those that are. */
let poll;

/** A promise that is fulfilled when the host has made progress. The pollable is dropped then. */
export function ready(pollable) {
  return new QueuedPromise((resolve) => waiting.push([pollable, resolve]));
}

/** Sets the function of the host that waits. */
export function pollWith(waiter) {
  poll = waiter;
}

export function enqueue(job) {
  if (typeof job !== "function") throw new TypeError("a job is a function");
  jobs.push(job);
}

/** Runs jobs, and waits for the host when there are none, until `isOver` is true or nothing is left to wait for. */
function runUntil(isOver) {
  for (;;) {
    while (jobs.length > 0) {
      const batch = jobs;
      jobs = [];
      for (const job of batch) job();
    }
    if (isOver() || waiting.length === 0) return;
    const done = poll(waiting.map(([pollable]) => pollable));
    const all = waiting;
    waiting = all.filter((_, at) => !done.includes(at));
    for (const at of done) {
      const [pollable, resolve] = all[at];
      pollable[Symbol.dispose]();
      resolve();
    }
  }
}

settleWith((promise) => {
  let outcome;
  const settled = (isError) => (value) => {
    outcome = { isError, value };
  };
  QueuedPromise.resolve(promise).then(settled(false), settled(true));
  runUntil(() => outcome !== undefined);
  if (!outcome) throw new Error("a promise of the provider is never settled: what it waits for does not happen in a component");
  if (outcome.isError) throw outcome.value;
  return outcome.value;
});

/** The global `Promise` of a component. */
export class QueuedPromise {
  #state = PENDING;
  #value;
  #reactions = [];

  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError("the argument of a new promise is a function");
    const { resolve, reject } = this.#resolvers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  /** The functions that settle this promise. Only the first call of either counts. */
  #resolvers() {
    let isResolved = false;
    const once = (action) => (value) => {
      if (isResolved) return;
      isResolved = true;
      action(value);
    };
    return { resolve: once((value) => this.#resolve(value)), reject: once((error) => this.#settle(REJECTED, error)) };
  }

  #resolve(value) {
    if (value === this) return this.#settle(REJECTED, new TypeError("a promise cannot be resolved with itself"));
    if ((typeof value !== "object" || value === null) && typeof value !== "function") return this.#settle(FULFILLED, value);
    let then;
    try {
      then = value.then;
    } catch (error) {
      return this.#settle(REJECTED, error);
    }
    if (typeof then !== "function") return this.#settle(FULFILLED, value);
    enqueue(() => {
      const { resolve, reject } = this.#resolvers();
      try {
        then.call(value, resolve, reject);
      } catch (error) {
        reject(error);
      }
    });
  }

  #settle(state, value) {
    this.#state = state;
    this.#value = value;
    for (const reaction of this.#reactions) enqueue(reaction);
    this.#reactions = [];
  }

  then(onFulfilled, onRejected) {
    return new this.constructor((resolve, reject) => {
      const react = () => {
        const handler = this.#state === FULFILLED ? onFulfilled : onRejected;
        if (typeof handler !== "function") return this.#state === FULFILLED ? resolve(this.#value) : reject(this.#value);
        try {
          resolve(handler(this.#value));
        } catch (error) {
          reject(error);
        }
      };
      if (this.#state === PENDING) this.#reactions.push(react);
      else enqueue(react);
    });
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(action) {
    if (typeof action !== "function") return this.then(action, action);
    const after = (result) => (value) => this.constructor.resolve(action()).then(() => result(value));
    return this.then(
      after((value) => value),
      after((error) => {
        throw error;
      }),
    );
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }

  static get [Symbol.species]() {
    return this;
  }

  static resolve(value) {
    return value instanceof QueuedPromise && value.constructor === this ? value : new this((resolve) => resolve(value));
  }

  static reject(error) {
    return new this((_, reject) => reject(error));
  }

  static withResolvers() {
    let resolvers;
    const promise = new this((resolve, reject) => {
      resolvers = { resolve, reject };
    });
    return { promise, ...resolvers };
  }

  static try(action, ...values) {
    return new this((resolve) => resolve(action(...values)));
  }

  static all(promises) {
    return collect(this, promises, (value) => value, undefined);
  }

  static allSettled(promises) {
    const rejected = (reason) => ({ status: "rejected", reason });
    return collect(this, promises, (value) => ({ status: "fulfilled", value }), rejected);
  }

  static any(promises) {
    const swapped = [...promises].map((promise) => swap(this.resolve(promise)));
    return swap(
      this.all(swapped).then((errors) => new AggregateError(errors, "all promises were rejected")),
    );
  }

  static race(promises) {
    return new this((resolve, reject) => {
      for (const promise of promises) this.resolve(promise).then(resolve, reject);
    });
  }
}

/** A promise of all results, in order. Without `onRejected`, the first rejection rejects it. */
function collect(Made, promises, onFulfilled, onRejected) {
  return new Made((resolve, reject) => {
    const results = [];
    let left = 1;
    const done = () => {
      left -= 1;
      if (left === 0) resolve(results);
    };
    for (const [at, promise] of [...promises].entries()) {
      left += 1;
      const keep = (convert) => (value) => {
        results[at] = convert(value);
        done();
      };
      Made.resolve(promise).then(keep(onFulfilled), onRejected ? keep(onRejected) : reject);
    }
    done();
  });
}

/** Exchanges the two results of a promise. */
function swap(promise) {
  return promise.then(
    (value) => {
      throw value;
    },
    (error) => error,
  );
}
