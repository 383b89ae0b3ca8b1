import type { Completing, Parting, Prompting, Provider, Revising, Skilled, Tooling } from "./index.js";

/** An interface as the component exports it. */
export type Exported = Record<string, (...values: never[]) => unknown>;

/**
 * The exports of a component for its provider. `completion`, `revisions`, `parts` and `skillProvider` exist if the provider
 * has their methods, `toolProvider` if it has `tools`, and `promptProvider` if it has `prompts`.
 */
export function component<P extends Provider>(
  provider: P,
): { resourceProvider: Exported } & (P extends Completing ? { completion: Exported } : unknown) &
  (P extends Revising ? { revisions: Exported } : unknown) &
  (P extends Parting ? { parts: Exported } : unknown) &
  (P extends Tooling ? { toolProvider: Exported } : unknown) &
  (P extends Prompting ? { promptProvider: Exported } : unknown) &
  (P extends Skilled ? { skillProvider: Exported } : unknown);
