// A real authorization server (`oidc-provider`) on loopback, for tests of belljar as OAuth resource server.
//
// argv[2] is a JSON request; `tests/integration/auth/oauth/authorization_server.rs` documents the request, the line that this
// program prints when it listens, and the endpoints below `/test/`, which only tests use. Ends when its input ends.
//
// Two things differ from a server on the internet. No person logs in: each login ends at once, as the account that
// `login_hint` names. And the metadata document of the client does not come from the network, because its URL must be
// `https` and public: `fetch` below returns the document.

import { Buffer } from "node:buffer";
import { createHmac, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import Provider, { errors } from "oidc-provider";
import { createMemoryAdapter } from "oidc-provider/lib/adapters/memory_adapter.js";

const request = { account: "alice", scopes: [], refused: [], opaque: false, ...JSON.parse(process.argv[2]) };

/** The people who have an account, and their groups. */
const ACCOUNTS = { alice: ["staff", "oncall"], bob: ["staff"] };

/** A client that registered before the tests. */
const REGISTERED = { client_id: "registered-before", client_secret: randomUUID() };

/** The account of the resource server, for introspection. */
const RESOURCE_SERVER = { client_id: "resource-server", client_secret: randomUUID() };

/** The metadata document of the client that did not register, and its address. */
const DOCUMENT_URL = "https://client.example/metadata.json";

/** The metadata of every client. A native client may use any port of the loopback address. */
const CLIENT = {
  client_name: "belljar tests",
  redirect_uris: ["http://127.0.0.1/callback"],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  application_type: "native",
};

/** The seconds for which logins, consents and tokens are valid: longer than any test. `oidc-provider` wants to be told. */
const TTL = 3600;

/** The path of the key set, as the metadata of the server names it. */
const JWKS_PATH = "/jwks";

// Standard output is for the one line. `oidc-provider` writes its notices with this function.
console.info = console.error;

// Listen first: the issuer contains the port.
const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

/** Clients, grants and sessions. All providers share it, so that it survives a rotation of the keys. */
const storage = createMemoryAdapter();

// The keys, the newest first, and the provider with these keys.
let keys = [newKey()];
let provider = newProvider();

/** A test's answer to requests for the key set, in place of the key set. */
let jwksAnswer;

/** The number of requests for each path. */
const counts = {};

/** The scopes of each consent so far. */
const consents = [];

/** A new key pair for ES256. */
function newKey() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { kid: randomUUID(), privateKey, publicKey };
}

/** A provider that signs with the newest key. */
function newProvider() {
  const jwk = ({ kid, privateKey }) => ({ ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "ES256" });
  const created = new Provider(issuer, {
    adapter: storage,
    jwks: { keys: keys.map(jwk) },
    clients: [
      { ...CLIENT, ...REGISTERED, token_endpoint_auth_method: "client_secret_basic" },
      { ...RESOURCE_SERVER, redirect_uris: [], grant_types: [], response_types: [] },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    cookies: { keys: [RESOURCE_SERVER.client_secret] },
    routes: { jwks: JWKS_PATH },
    ttl: Object.fromEntries(
      ["AccessToken", "AuthorizationCode", "Grant", "IdToken", "Interaction", "RefreshToken", "Session"].map((name) => [
        name,
        TTL,
      ]),
    ),
    pkce: { required: () => true },
    rotateRefreshToken: true,
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) => (ACCOUNTS[id] ? { accountId: id, claims: () => ({ sub: id }) } : undefined),
    extraTokenClaims: (_, token) => ({ groups: ACCOUNTS[token.accountId] }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      introspection: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo(_, resource) {
          if (resource !== request.resource) throw new errors.InvalidTarget();
          return {
            scope: request.scopes.join(" "),
            audience: resource,
            accessTokenFormat: request.opaque ? "opaque" : "jwt",
            jwt: { sign: { alg: "ES256", kid: keys[0].kid } },
          };
        },
      },
    },
    fetch: (url) => {
      if (url !== DOCUMENT_URL) throw new Error(`no test needs ${url}`);
      return Response.json({ ...CLIENT, client_id: DOCUMENT_URL, token_endpoint_auth_method: "none" });
    },
  });
  created.on("server_error", (_, error) => console.error(error));
  return created;
}

/** Ends a login or a consent at once. Grants all requested scopes, except those that the request refuses. */
async function interact(req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  if (prompt.name === "login") {
    const accountId = params.login_hint ?? request.account;
    return provider.interactionFinished(req, res, { login: { accountId } });
  }
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ||
    new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  if (missingOIDCScope.length > 0) grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [resource, scopes] of Object.entries(missingResourceScopes)) {
    for (const scope of scopes) {
      if (request.refused.includes(scope)) grant.rejectResourceScope(resource, scope);
      else grant.addResourceScope(resource, scope);
    }
  }
  consents.push({ client: params.client_id, account: session.accountId, scope: params.scope });
  return provider.interactionFinished(
    req,
    res,
    { consent: { grantId: await grant.save() } },
    { mergeWithLastSubmission: true },
  );
}

/** A registration without its `scope`. `oidc-provider` would take the scope as a limit, and so refuse every step-up. */
async function withoutScope(req) {
  const { scope: _, ...metadata } = JSON.parse(await text(req));
  req.body = metadata;
}

/**
 * Mints a token with any header and any claims. `claims` and `header` override the usual values; `null` removes one.
 * `key` is "current", "previous", "unknown" (in no key set), "forged" (the same, under the name of the current key), "none"
 * (no signature) or "public" (HMAC with the text of the public key).
 */
function mint({ claims = {}, header = {}, key = "current" }) {
  const now = Math.floor(Date.now() / 1000);
  const usual = { iss: issuer, aud: request.resource, sub: "alice", client_id: REGISTERED.client_id };
  const payload = { ...usual, jti: randomUUID(), iat: now, exp: now + TTL, scope: request.scopes.join(" "), ...claims };
  const [current, previous] = keys;
  const forged = { ...newKey(), kid: current.kid };
  const pair = { current, previous, unknown: newKey(), forged, none: current, public: current }[key];
  if (pair === undefined) throw new Error(`no key "${key}"`);
  const alg = { none: "none", public: "HS256" }[key] ?? "ES256";
  const parts = [{ alg, typ: "at+jwt", kid: pair.kid, ...header }, payload].map((part) => {
    const present = Object.entries(part).filter(([, value]) => value !== null);
    return Buffer.from(JSON.stringify(Object.fromEntries(present))).toString("base64url");
  });
  const signed = parts.join(".");
  const pem = () => pair.publicKey.export({ type: "spki", format: "pem" });
  const signature = {
    none: () => Buffer.alloc(0),
    public: () => createHmac("sha256", pem()).update(signed).digest(),
  }[key] ?? (() => sign("sha256", Buffer.from(signed), { key: pair.privateKey, dsaEncoding: "ieee-p1363" }));
  return { token: `${signed}.${signature().toString("base64url")}` };
}

/** The endpoints of the tests: each takes a JSON body, and returns what it prints as JSON. */
const TEST_ENDPOINTS = {
  // Makes a new key. The key set keeps the old ones if `keep` is true.
  rotate({ keep = false }) {
    keys = [newKey(), ...(keep ? keys : [])];
    provider = newProvider();
    return { kid: keys[0].kid };
  },
  // Sets the answer to requests for the key set: `status`, `headers`, `body`, `bytes` (spaces after the body), and
  // `delay` in milliseconds. An empty object: the key set again.
  jwks(answer) {
    jwksAnswer = Object.keys(answer).length > 0 ? answer : undefined;
    return {};
  },
  token: mint,
  counts: () => counts,
  consents: () => consents,
};

/** Answers a request for the key set as a test wants it. */
async function answerJwks(res) {
  const { status = 200, headers = {}, body = "", bytes = 0, delay = 0 } = jwksAnswer;
  await new Promise((done) => setTimeout(done, delay));
  res.writeHead(status, { "content-type": "application/jwk-set+json", ...headers });
  res.end(body + " ".repeat(bytes));
}

async function answer(req, res) {
  const path = new URL(req.url, issuer).pathname;
  if (path.startsWith("/test/")) {
    const endpoint = TEST_ENDPOINTS[path.slice("/test/".length)];
    const body = await text(req);
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify(endpoint(JSON.parse(body || "{}"))));
    return;
  }
  counts[path] = (counts[path] ?? 0) + 1;
  if (path === JWKS_PATH && jwksAnswer !== undefined) return answerJwks(res);
  if (path.startsWith("/interaction/")) return interact(req, res);
  if (path === "/reg" && req.method === "POST") await withoutScope(req);
  return provider.callback()(req, res);
}

server.on("request", (req, res) => {
  answer(req, res).catch((error) => {
    console.error(error);
    if (!res.headersSent) res.writeHead(500, { "content-type": "application/json" });
    res.end(JSON.stringify({ error: String(error) }));
  });
});

process.stdin.resume().on("end", () => process.exit(0));
console.log(
  JSON.stringify({
    issuer,
    jwks: issuer + JWKS_PATH,
    introspection: `${issuer}/token/introspection`,
    registered: { ...REGISTERED, issuer },
    document: DOCUMENT_URL,
    resource_server: RESOURCE_SERVER,
  }),
);
