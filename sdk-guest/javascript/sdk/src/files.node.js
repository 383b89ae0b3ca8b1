// Granted directories in Node, for unit tests. The same functions as files.wasi.js. Nothing is granted until a test
// calls `grant`.
import { isUtf8 } from "node:buffer";
import fs from "node:fs";
import path from "node:path";

import { Denied, Failed, NotFound, Unavailable } from "./errors.js";
import { compareText } from "./text.js";

const grants = new Map();

/** Grants a directory of this machine under a guest path. */
export function grant(guestPath, hostPath) {
  grants.set(guestPath, path.resolve(hostPath));
}

/** Removes all grants. */
export function revokeAll() {
  grants.clear();
}

/** The granted guest paths. */
export function granted() {
  return [...grants.keys()];
}

/** The kind, size and modification time of a path. Follows links. */
export function stat(guestPath) {
  const found = attempt(guestPath, (file) => fs.statSync(file));
  return { kind: kindOf(found), size: found.size, modified: found.mtime };
}

/** The entries of a directory, sorted by name, and the number of those whose names are not UTF-8. Links are not followed. */
export function list(guestPath) {
  const all = attempt(guestPath, (directory) => fs.readdirSync(directory, { withFileTypes: true, encoding: "buffer" }));
  const entries = all.filter(({ name }) => isUtf8(name)).map((entry) => ({ name: String(entry.name), kind: kindOf(entry) }));
  entries.sort((a, b) => compareText(a.name, b.name));
  return Object.assign(entries, { unreadable: all.length - entries.length });
}

/** The bytes of a file: all, or at most `length` from `offset`. */
export function read(guestPath, { offset = 0, length = Number.MAX_SAFE_INTEGER } = {}) {
  const { kind, size } = stat(guestPath);
  if (kind !== "file") throw new NotFound();
  return attempt(guestPath, (file) => {
    const handle = fs.openSync(file, "r");
    try {
      const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
      return bytes.subarray(0, bytes.length === 0 ? 0 : fs.readSync(handle, bytes, 0, bytes.length, offset));
    } finally {
      fs.closeSync(handle);
    }
  });
}

function kindOf(found) {
  if (found.isFile()) return "file";
  if (found.isDirectory()) return "directory";
  return found.isSymbolicLink() ? "link" : "other";
}

function locate(guestPath) {
  let found;
  for (const [guest, host] of grants) {
    const base = guest.endsWith("/") ? guest : `${guest}/`;
    if (guestPath !== guest && !guestPath.startsWith(base)) continue;
    if (!found || guest.length > found[0].length) found = [guest, path.join(host, guestPath.slice(base.length)), host];
  }
  if (!found) throw new Denied(`this needs ${JSON.stringify(guestPath)}, which was not granted`);
  const [, file, host] = found;
  // Like the sandbox, refuses paths that lead out of the directory.
  if (file !== host && !file.startsWith(`${host}${path.sep}`)) throw new Denied(`${JSON.stringify(guestPath)}: not permitted`);
  return file;
}

function attempt(guestPath, call) {
  const file = locate(guestPath);
  try {
    return call(file);
  } catch (error) {
    const message = `${JSON.stringify(guestPath)}: ${error.code}`;
    switch (error.code) {
      case "ENOENT":
      case "ENOTDIR":
      case "ENAMETOOLONG":
      case "ERR_INVALID_ARG_VALUE":
        throw new NotFound(message);
      case "EACCES":
      case "EPERM":
        throw new Denied(message);
      case "EBUSY":
      case "EAGAIN":
      case "EINTR":
        throw new Unavailable(message);
      default:
        throw new Failed(message, { cause: error });
    }
  }
}
