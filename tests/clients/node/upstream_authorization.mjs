// A real authorization server (`oidc-provider`) on loopback, for tests of belljar as OAuth client.
//
// argv[2] is a JSON request; `tests/integration/grants/oauth/provider.rs` documents the request, the line that this program
// prints when it listens, and the endpoints below `/test/`, which only tests use. Ends when its input ends.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import Provider from "oidc-provider";

const request = { seconds: 3600, methods: ["client_secret_basic", "client_secret_post", "none"], ...JSON.parse(process.argv[2]) };

/** The client with a secret. */
const CONFIDENTIAL = { client_id: "belljar-service", client_secret: `s+${randomUUID()}/%` };

/** The client of a person. */
const PUBLIC = { client_id: "belljar-device" };

/** The scope that both clients may have. */
const SCOPE = "forecast:read";

// Standard output is for the one line. `oidc-provider` writes its notices with this function.
console.info = console.error;

// Listen first: the issuer contains the port.
const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

/** The lifetime of the next access tokens, in seconds. */
let seconds = request.seconds;

/** The grant types of the requests to the token endpoint, in order, each with the status of its answer. */
const asked = [];

/** The refresh tokens that were issued. */
const refreshTokens = [];

const method = request.methods.includes("client_secret_basic") ? "client_secret_basic" : "client_secret_post";
const provider = new Provider(issuer, {
  clients: [
    {
      ...CONFIDENTIAL,
      redirect_uris: [],
      response_types: [],
      grant_types: ["client_credentials"],
      token_endpoint_auth_method: method,
      scope: SCOPE,
    },
    {
      ...PUBLIC,
      redirect_uris: [],
      response_types: [],
      application_type: "native",
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
      token_endpoint_auth_method: "none",
    },
  ],
  clientAuthMethods: request.methods,
  scopes: ["openid", "offline_access", SCOPE],
  cookies: { keys: [randomUUID()] },
  ttl: {
    AccessToken: () => seconds,
    ClientCredentials: () => seconds,
    DeviceCode: 600,
    Grant: 3600,
    IdToken: 3600,
    Interaction: 3600,
    RefreshToken: 3600,
    Session: 3600,
  },
  rotateRefreshToken: true,
  issueRefreshToken: () => true,
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    deviceFlow: {
      enabled: true,
      userCodeInputSource(ctx, form, _, error) {
        ctx.body = `${form}${error ? "wrong code" : ""}<button form="op.deviceInputForm">Continue</button>`;
      },
      userCodeConfirmSource(ctx, form) {
        ctx.body = form;
      },
      successSource(ctx) {
        ctx.body = "the device may continue";
      },
    },
  },
});
provider.on("server_error", (_, error) => console.error(error));
provider.on("refresh_token.saved", (token) => refreshTokens.push(token));

/** Ends a login or a consent at once, or refuses it if `refused`. */
let refused = false;
async function interact(req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  if (refused) return provider.interactionFinished(req, res, { error: "access_denied" });
  if (prompt.name === "login") return provider.interactionFinished(req, res, { login: { accountId: "alice" } });
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ||
    new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(" "));
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(req, res, { consent }, { mergeWithLastSubmission: true });
}

/** A browser without scripts: it follows redirects and keeps cookies. */
async function browse(jar, url, form) {
  for (;;) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { cookie, ...(form && { "content-type": "application/x-www-form-urlencoded" }) };
    const answer = await fetch(url, { method: form ? "POST" : "GET", body: form, headers, redirect: "manual" });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      jar.set(name, value);
    }
    const next = answer.headers.get("location");
    if (next === null) return answer.text();
    [url, form] = [new URL(next, url).href, undefined];
  }
}

/** The hidden token of a form. */
const xsrf = (page) => /name="xsrf" value="([^"]+)"/.exec(page)?.[1] ?? "";

/** The endpoints of the tests: each takes a JSON body, and returns what it prints as JSON. */
const TEST_ENDPOINTS = {
  asked: () => asked,
  // Sets the lifetime of the next access tokens.
  seconds(body) {
    seconds = body.seconds;
    return {};
  },
  // True if the server issued this access token, and it is valid.
  async knows({ token }) {
    const found = (await provider.ClientCredentials.find(token)) ?? (await provider.AccessToken.find(token));
    return { valid: found !== undefined && found.isValid, scope: found?.scope };
  },
  // Revokes all refresh tokens.
  async revoke() {
    for (const token of refreshTokens) await token.destroy();
    return {};
  },
  // Does what a person does in a browser: opens the page, enters the code, logs in and agrees, or refuses.
  async enter({ page, code, refuse = false }) {
    refused = refuse;
    const jar = new Map();
    const first = await browse(jar, page);
    const second = await browse(jar, page, new URLSearchParams({ xsrf: xsrf(first), user_code: code }));
    if (refuse) return { shows: await browse(jar, page, new URLSearchParams({ xsrf: xsrf(second), user_code: code, abort: "yes" })) };
    return { shows: await browse(jar, page, new URLSearchParams({ xsrf: xsrf(second), user_code: code, confirm: "yes" })) };
  },
};

async function answer(req, res) {
  const path = new URL(req.url, issuer).pathname;
  if (path.startsWith("/test/")) {
    const endpoint = TEST_ENDPOINTS[path.slice("/test/".length)];
    const body = await text(req);
    const result = await endpoint(JSON.parse(body || "{}"));
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify(result));
    return;
  }
  if (path === "/token") {
    req.body = Object.fromEntries(new URLSearchParams(await text(req)));
    const one = { grant: req.body.grant_type, basic: req.headers.authorization !== undefined };
    asked.push(one);
    res.on("finish", () => {
      one.status = res.statusCode;
    });
  }
  if (path.startsWith("/interaction/")) return interact(req, res);
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
console.log(JSON.stringify({ issuer, confidential: CONFIDENTIAL, public: PUBLIC, scope: SCOPE }));
