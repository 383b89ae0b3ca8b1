// The function `fetch` of a component, through wasi:http. The host decides about every request, a redirect included.
import outgoing from "wasi:http/outgoing-handler@0.2.12";
import types from "wasi:http/types@0.2.12";
import io from "wasi:io/poll@0.2.12";

import { Denied, Failed, Unavailable } from "./errors.js";
import { Body, Headers, Response, toBytes } from "./http.js";
import { QueuedPromise, enqueue, pollWith, ready } from "./promise.js";
import { decodeLatin1, encodeUtf8 } from "./text.js";
import { originOf, parseUrl, shown, targetOf, toText } from "./url.js";

export { Headers, Response };

const { Fields, OutgoingBody, OutgoingRequest, RequestOptions } = types;

/** The most redirects of one request, as in the Fetch standard. */
const REDIRECTS = 20;

/** The bytes of a body that are requested at once. The host may give fewer. */
const CHUNK = 64 * 1024;

/** The statuses whose answer has no body. */
const WITHOUT_BODY = [101, 103, 204, 205, 304];

/** The headers that a redirect takes to another origin. Any other may hold a credential. */
const TRAVELS = ["accept", "accept-language", "content-type", "user-agent"];

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];

pollWith((pollables) => io.poll(pollables));

/** Sends a request, and follows redirects. */
export async function fetch(input, { method = "GET", headers, body = null, redirect = "follow", signal } = {}) {
  const request = { url: parseUrl(input), method: methodOf(method), headers: new Headers(headers ?? []), body };
  if (body !== null && ["GET", "HEAD"].includes(request.method)) throw new TypeError(`a ${request.method} request has no body`);
  if (typeof body === "string" && !request.headers.has("content-type")) {
    request.headers.set("content-type", "text/plain;charset=UTF-8");
  }
  const until = signal ? (signal[DEADLINE] ?? unknownSignal()) : undefined;
  for (let redirects = 0; ; redirects += 1) {
    const response = await exchange(request, until);
    const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && response.headers.has("location");
    if (redirect === "manual" || !isRedirect) {
      return made(request, response, redirects > 0);
    }
    response.drop();
    if (redirect === "error") throw new Failed(`${shown(request.url)} redirects to another address`);
    if (redirects === REDIRECTS) throw new Failed(`${shown(request.url)} redirects once more after ${REDIRECTS} redirects`);
    follow(request, response);
  }
}

const DEADLINE = Symbol("deadline");

/** Ends a request after a time. The engine has no other signals. */
const AbortSignal = { timeout: (milliseconds) => ({ [DEADLINE]: Date.now() + milliseconds, aborted: false }) };

function unknownSignal() {
  throw new TypeError("the only signal in a component is AbortSignal.timeout(milliseconds)");
}

/** Turns a request into the one that a redirect asks for. */
function follow(request, { status, headers }) {
  const { url, method } = request;
  try {
    request.url = parseUrl(headers.get("location"), url);
  } catch (error) {
    throw new Failed(`${shown(url)} redirects: ${error.message}`);
  }
  request.from = url;
  if ((status === 303 && method !== "HEAD") || (status <= 302 && method === "POST")) {
    [request.method, request.body] = ["GET", null];
    for (const name of [...request.headers.keys()]) if (name.startsWith("content-")) request.headers.delete(name);
  } else if (isStream(request.body)) {
    throw new Failed(`${shown(url)} redirects a request whose body came in pieces, and they are gone: send it as one piece`);
  }
  if (originOf(request.url) !== originOf(url)) {
    for (const name of [...request.headers.keys()]) if (!TRAVELS.includes(name)) request.headers.delete(name);
  }
}

/** Sends one request. Returns the status, the headers, and the answer of the host. */
async function exchange(request, until) {
  const { url, method, headers, body } = request;
  const outgoingRequest = new OutgoingRequest(toFields(request));
  outgoingRequest.setMethod(METHODS.includes(method) ? { tag: method.toLowerCase() } : { tag: "other", val: method });
  outgoingRequest.setScheme({ tag: url.scheme === "https" ? "HTTPS" : "HTTP" });
  attempt(request, "the host", () => outgoingRequest.setAuthority(url.authority));
  attempt(request, "the path", () => outgoingRequest.setPathWithQuery(targetOf(url)));
  const sent = body === null ? undefined : outgoingRequest.body();
  let future;
  try {
    future = outgoing.handle(outgoingRequest, options(request, until));
  } catch (error) {
    throw failure(request, error);
  }
  try {
    if (sent) await send(sent, body);
    await ready(future.subscribe());
    const result = future.get();
    const inner = result.val;
    if (inner.tag === "err") throw failure(request, inner.val);
    return answer(inner.val);
  } finally {
    future[Symbol.dispose]();
  }
}

function toFields(request) {
  const { headers, body } = request;
  const fields = new Fields();
  for (const [name, value] of headers) attempt(request, `the header ${JSON.stringify(name)}`, () => fields.append(name, encodeUtf8(value)));
  if (body !== null && !isStream(body) && !headers.has("content-length")) {
    fields.append("content-length", encodeUtf8(String(toBytes(body).length)));
  }
  return fields;
}

/** The time that is left, for each step of the request. */
function options(request, until) {
  if (until === undefined) return undefined;
  const left = Math.trunc(until - Date.now());
  if (left <= 0) throw new Unavailable(`no answer from ${shown(request.url)}: it took too long`);
  const limits = new RequestOptions();
  const nanoseconds = left * 1e6;
  limits.setConnectTimeout(nanoseconds);
  limits.setFirstByteTimeout(nanoseconds);
  limits.setBetweenBytesTimeout(nanoseconds);
  return limits;
}

function isStream(body) {
  return body !== null && typeof body === "object" && !(body instanceof ArrayBuffer) && !ArrayBuffer.isView(body);
}

/** Sends a body in pieces. If the host no longer takes it, its answer says why. */
async function send(sent, body) {
  const stream = sent.write();
  let isTaken = true;
  const pieces = isStream(body) ? body : [body];
  if (!pieces[Symbol.iterator] && !pieces[Symbol.asyncIterator]) {
    throw new TypeError("a body is a text, an ArrayBuffer, a Uint8Array, or an iterable of these");
  }
  try {
    for await (const piece of pieces) if (!(isTaken = await write(stream, toBytes(piece)))) break;
    if (isTaken) isTaken = await write(stream, new Uint8Array());
  } finally {
    stream[Symbol.dispose]();
  }
  if (!isTaken) return;
  try {
    OutgoingBody.finish(sent, undefined);
  } catch {
    // The answer of the host has the reason.
  }
}

/** Writes bytes; without any, waits until all were sent. Returns false if the host takes no more. */
async function write(stream, bytes) {
  try {
    if (bytes.length === 0) stream.flush();
    for (let at = 0; ; ) {
      const room = stream.checkWrite();
      if (room > 0 && at === bytes.length) return true;
      if (room > 0) {
        stream.write(bytes.subarray(at, at + room));
        at = Math.min(at + room, bytes.length);
      } else {
        await ready(stream.subscribe());
      }
    }
  } catch (error) {
    if (payload(error)?.tag !== undefined) return false;
    throw error;
  }
}

function answer(incoming) {
  const headers = new Headers();
  using(incoming.headers(), (fields) => {
    for (const [name, value] of fields.entries()) headers.append(name, decodeLatin1(value));
  });
  return { status: incoming.status(), headers, incoming, drop: () => incoming[Symbol.dispose]() };
}

/** The response for the provider. */
function made({ url, method }, { status, headers, incoming, drop }, redirected) {
  if (method === "HEAD" || WITHOUT_BODY.includes(status)) {
    drop();
    return new Response(null, { status, headers, url: toText(url), redirected });
  }
  const held = [incoming];
  const close = () => {
    for (const resource of held.splice(0).reverse()) resource[Symbol.dispose]();
  };
  held.push(incoming.consume());
  held.push(held[1].stream());
  const body = new Body(pieces(url, held, close), close);
  return new Response(body, { status, headers, url: toText(url), redirected });
}

async function* pieces(url, held, close) {
  try {
    while (held.length > 0) {
      const piece = held[2].read(CHUNK);
      if (piece.length > 0) yield piece;
      else await ready(held[2].subscribe());
    }
  } catch (error) {
    const reason = payload(error);
    if (reason?.tag === "closed") return;
    if (reason?.tag !== "last-operation-failed") throw error;
    const code = using(reason.val, (cause) => types.httpErrorCode(cause));
    throw code ? failure({ url }, code) : new Unavailable(`no whole answer from ${shown(url)}: it ended too early`);
  } finally {
    close();
  }
}

function using(resource, use) {
  try {
    return use(resource);
  } finally {
    resource[Symbol.dispose]();
  }
}

/** Engines throw the errors of WASI in two forms: the value itself, or an Error with the value as `payload`. */
function payload(error) {
  return error?.payload ?? error;
}

function methodOf(method) {
  const upper = String(method).toUpperCase();
  return METHODS.includes(upper) ? upper : String(method);
}

function attempt({ url }, part, call) {
  try {
    return call();
  } catch {
    throw new Failed(`the request to ${shown(url)} cannot be sent: ${part} is malformed, or belljar does not let a provider set it`);
  }
}

/** The reasons after which the same request may succeed later. */
const LATER = {
  "DNS-timeout": "its name cannot be resolved",
  "DNS-error": "its name cannot be resolved",
  "destination-not-found": "its name cannot be resolved",
  "destination-unavailable": "it cannot be reached",
  "destination-IP-unroutable": "it cannot be reached",
  "connection-refused": "it refused the connection",
  "connection-terminated": "the connection was closed",
  "connection-limit-reached": "too many connections are open",
  "connection-timeout": "it took too long",
  "connection-read-timeout": "it took too long",
  "connection-write-timeout": "it took too long",
  "HTTP-response-timeout": "it took too long",
  "HTTP-response-incomplete": "its answer ended too early",
};

const NEVER = {
  "TLS-protocol-error": "TLS failed",
  "TLS-certificate-error": "its certificate is not trusted",
  "TLS-alert-received": "it refused TLS",
  "HTTP-response-body-size": "its answer is larger than the host allows",
  "HTTP-request-body-size": "the body of the request is larger than the host allows",
  "HTTP-protocol-error": "it does not speak HTTP as it should",
};

/** The error of a provider for an error code of the host. */
function failure({ url, from }, thrown) {
  const code = payload(thrown);
  const to = shown(url);
  switch (code?.tag) {
    case undefined:
      return thrown;
    case "HTTP-request-denied":
    case "destination-IP-prohibited":
      if (from) return new Denied(`${shown(from)} redirects to ${to}, and no request to there was granted`);
      return new Denied(`no request to ${to} was granted`);
    case "internal-error":
      return new Failed(`no answer from ${to}: the host failed: ${code.val ?? "it gives no reason"}`);
  }
  if (LATER[code.tag]) return new Unavailable(`no answer from ${to}: ${LATER[code.tag]}`);
  return new Failed(`no answer from ${to}: ${NEVER[code.tag] ?? code.tag}`);
}

// The engine has no promises that end within a call, and none of the other globals that libraries expect.
Object.assign(globalThis, { Promise: QueuedPromise, queueMicrotask: enqueue, fetch, Headers, Response, AbortSignal });
