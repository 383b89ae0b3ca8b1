// Progress in a component. The world must import the interface: the tools link every interface that a world imports.
import progress from "belljar:provider/progress@0.1.1";

/** Reports that `done` of `total` is done. */
export function report(done, total, note) {
  progress.report(done, total ?? null, note === undefined || note === null ? null : String(note).toWellFormed());
}
