/** What something is. A link is told as one by `list` alone. */
export type Kind = "file" | "directory" | "link" | "other";

/** The guest paths that were granted. */
export function granted(): string[];
/** What is at a path, following links. */
export function stat(path: string): { kind: Kind; size: number; modified: Date | undefined };
/** What is directly in a directory, sorted by name. Links are not followed. */
export function list(path: string): { name: string; kind: Kind }[];
/** The bytes of a file, or some of them: at most `length`, from `offset` on. Throws `NotFound` for anything else. */
export function read(path: string, range?: { offset?: number; length?: number }): Uint8Array;
