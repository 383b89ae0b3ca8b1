import type { Completing, Provider, Revising } from "./index.js";

/** An interface as the component exports it. */
export type Exported = Record<string, (...values: never[]) => unknown>;

/** What a component exports for its provider; `completion` and `revisions` for one that has their methods. */
export function component<P extends Provider>(
  provider: P,
): { resourceProvider: Exported } & (P extends Completing ? { completion: Exported } : unknown) &
  (P extends Revising ? { revisions: Exported } : unknown);
