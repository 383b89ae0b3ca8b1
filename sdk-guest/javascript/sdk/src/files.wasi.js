// Granted directories, through wasi:filesystem. The same functions as files.node.js.
import preopens from "wasi:filesystem/preopens@0.2.12";

import { Denied, Failed, NotFound, Unavailable } from "./errors.js";
import { sortTexts } from "./text.js";

const FOLLOW = { symlinkFollow: true };
const CHUNK = 1 << 20;
const KINDS = { "regular-file": "file", directory: "directory", "symbolic-link": "link" };

/** The granted directories with their guest paths. Each question to the host opens all of them again. */
let directories = [];

/** The granted guest paths. */
export function granted() {
  return grants().map(([, path]) => path);
}

/** The kind, size and modification time of a path. Follows links. */
export function stat(path) {
  const [directory, rest] = locate(path);
  const { type, size, dataModificationTimestamp: time } = attempt(path, () => directory.statAt(FOLLOW, rest));
  const modified = time ? new Date(time.seconds * 1000 + Math.trunc(time.nanoseconds / 1e6)) : undefined;
  return { kind: KINDS[type] ?? "other", size, modified };
}

/** The entries of a directory, sorted by name, and the number of those whose names are not UTF-8. Links are not followed. */
export function list(path) {
  const [directory, rest] = locate(path);
  const opened = attempt(path, () => directory.openAt(FOLLOW, rest, { directory: true }, { read: true }));
  return using(opened, () => using(attempt(path, () => opened.readDirectory()), (stream) => entries(path, stream)));
}

function entries(path, stream) {
  const found = [];
  let unreadable = 0;
  for (;;) {
    let entry;
    try {
      entry = stream.readDirectoryEntry();
    } catch (error) {
      if (code(error) !== "illegal-byte-sequence") throw failure(path, error);
      // A name that is not UTF-8: no reference can contain it.
      unreadable += 1;
      continue;
    }
    if (!entry) break;
    // Sorted as texts: a name contains no NUL, and NUL is before all other characters.
    found.push(`${entry.name}\0${KINDS[entry.type] ?? "other"}`);
  }
  const sorted = sortTexts(found).map((text) => {
    const at = text.lastIndexOf("\0");
    return { name: text.slice(0, at), kind: text.slice(at + 1) };
  });
  return Object.assign(sorted, { unreadable });
}

/** The bytes of a file: all, or at most `length` from `offset`. */
export function read(path, { offset = 0, length = Number.MAX_SAFE_INTEGER } = {}) {
  const [directory, rest] = locate(path);
  // Checked before the file is opened: opening a pipe would block for ever.
  const { type, size } = attempt(path, () => directory.statAt(FOLLOW, rest));
  if (type !== "regular-file") throw new NotFound();
  // Files of the kernel have the size 0, and contents.
  const most = size > 0 ? Math.min(length, Math.max(0, size - offset)) : length;
  const opened = attempt(path, () => directory.openAt(FOLLOW, rest, {}, { read: true }));
  return using(opened, (file) => {
    const pieces = [];
    let total = 0;
    for (let ended = false; !ended && total < most; ) {
      const [piece, end] = attempt(path, () => file.read(Math.min(CHUNK, most - total), offset + total));
      pieces.push(piece);
      total += piece.length;
      ended = end;
    }
    return joined(pieces, total);
  });
}

/** Calls `use` with a resource of the host, and drops the resource: a call may hold only some hundreds. */
function using(resource, use) {
  try {
    return use(resource);
  } finally {
    resource[Symbol.dispose]();
  }
}

function joined(pieces, total) {
  if (pieces.length === 1) return pieces[0];
  const bytes = new Uint8Array(total);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The granted directory of a path, and the path relative to it. The longest matching guest path wins. */
function locate(path) {
  let found;
  for (const [directory, guest] of grants()) {
    const base = guest.endsWith("/") ? guest : `${guest}/`;
    if (path !== guest && !path.startsWith(base)) continue;
    if (!found || guest.length > found[2]) found = [directory, path.slice(base.length) || ".", guest.length];
  }
  if (!found) throw new Denied(`this needs ${JSON.stringify(path)}, which was not granted`);
  return found;
}

/** Asks the host once. An instance lives for one call; during the build, nothing is granted, and nothing is kept. */
function grants() {
  if (directories.length === 0) directories = preopens.getDirectories();
  return directories;
}

function attempt(path, call) {
  try {
    return call();
  } catch (error) {
    throw failure(path, error);
  }
}

/** Engines throw WASI errors in two forms: the value itself, or an Error with the value as `payload`. */
function code(error) {
  return error?.payload ?? error;
}

function failure(path, error) {
  const name = code(error);
  const message = `${JSON.stringify(path)}: ${typeof name === "string" ? name : (error?.message ?? error)}`;
  switch (name) {
    // A path below a file does not exist.
    case "no-entry":
    case "not-directory":
    case "illegal-byte-sequence":
    case "name-too-long":
      return new NotFound(message);
    case "access":
    case "not-permitted":
      return new Denied(message);
    case "busy":
    case "would-block":
    case "interrupted":
    case "in-progress":
      return new Unavailable(message);
    default:
      return new Failed(message, { cause: error });
  }
}
