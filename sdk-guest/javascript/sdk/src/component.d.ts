import type { Completing, Provider, Revising } from "./index.js";

/** An interface as the component exports it. */
export type Exported = Record<string, (...values: never[]) => unknown>;

/** The exports of a component for its provider. `completion` and `revisions` exist if the provider has their methods. */
export function component<P extends Provider>(
  provider: P,
): { resourceProvider: Exported } & (P extends Completing ? { completion: Exported } : unknown) &
  (P extends Revising ? { revisions: Exported } : unknown);
