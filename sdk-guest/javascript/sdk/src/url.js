// URLs of requests, as RFC 3986 has them: the engine has no class URL.
const PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s;

/** The parts of an absolute http or https URL, or of a reference relative to `base`. Throws a TypeError that names the text. */
export function parseUrl(text, base) {
  const [, scheme, authority, path, query] = PARTS.exec(String(text).trim()) ?? [];
  if (scheme === undefined && !base) throw unfit(text, "it does not begin with http:// or https://");
  const url = { scheme: (scheme ?? base.scheme).toLowerCase(), authority, path, query };
  if (url.scheme !== "http" && url.scheme !== "https") throw unfit(text, "only http and https can be requested");
  if (authority === undefined) {
    if (scheme !== undefined) throw unfit(text, "it has no host");
    url.authority = base.authority;
    url.query = path === "" ? (query ?? base.query) : query;
    if (path === "") url.path = base.path;
    else if (!path.startsWith("/")) url.path = base.path.slice(0, base.path.lastIndexOf("/") + 1) + path;
  }
  if (url.authority === "") throw unfit(text, "it has no host");
  if (url.authority.includes("@")) throw unfit(text, "it has a user name; credentials come from the grant, or from a header");
  url.authority = url.authority.toLowerCase();
  url.path = encode(withoutDots(url.path));
  url.query = url.query === undefined ? undefined : encode(url.query);
  return url;
}

/** The origin, by which credentials are kept apart. */
export function originOf({ scheme, authority }) {
  const port = scheme === "https" ? ":443" : ":80";
  return `${scheme}://${authority.endsWith(port) ? authority.slice(0, -port.length) : authority}`;
}

/** The path with the query. */
export function targetOf({ path, query }) {
  return query === undefined ? path : `${path}?${query}`;
}

export function toText(url) {
  return `${url.scheme}://${url.authority}${targetOf(url)}`;
}

/** A URL for messages: without its query, which may hold values of a client. */
export function shown({ scheme, authority, path }) {
  return JSON.stringify(`${scheme}://${authority}${path}`);
}

function unfit(text, why) {
  return new TypeError(`${JSON.stringify(String(text))} cannot be requested: ${why}`);
}

/** Encodes what a URL cannot hold. Leaves what is encoded already. */
function encode(text) {
  return text.toWellFormed().replace(/[^!#$%&'()*+,\-./0-9:;=?@A-Z_a-z~[\]]+/g, encodeURIComponent);
}

function withoutDots(path) {
  const kept = [];
  const segments = path.split("/").slice(1);
  for (const [at, segment] of segments.entries()) {
    const isLast = at === segments.length - 1;
    const plain = segment.replace(/%2e/gi, ".");
    if (plain === "..") kept.pop();
    if (plain !== "." && plain !== "..") kept.push(segment);
    else if (isLast) kept.push("");
  }
  return `/${kept.join("/")}`;
}
