/** The kind of an entry. Only `list` returns `link`. */
export type Kind = "file" | "directory" | "link" | "other";

/** The granted guest paths. */
export function granted(): string[];
/** The kind, size and modification time of a path. Follows links. */
export function stat(path: string): { kind: Kind; size: number; modified: Date | undefined };
/** The entries of a directory, sorted by name, and the number of those whose names are not UTF-8. Links are not followed. */
export function list(path: string): { name: string; kind: Kind }[] & { unreadable: number };
/** The bytes of a file: all, or at most `length` from `offset`. Throws `NotFound` if the path is not a file. */
export function read(path: string, range?: { offset?: number; length?: number }): Uint8Array;
