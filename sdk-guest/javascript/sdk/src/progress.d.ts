/**
 * Tells the caller that `done` of `total` is done, in whatever unit. `done` must grow. `note` says what is being done, in
 * at most 200 characters. Does nothing in unit tests, or without a caller who wants to know.
 *
 * The world of the component must have `import belljar:provider/progress@0.1.1;`.
 */
export function report(done: number, total?: number, note?: string): void;
