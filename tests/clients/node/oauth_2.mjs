// A client with the TypeScript client package 2.4, and OAuth. Reads resources of a protected server: registers, logs in,
// takes a token, and takes a further token when a read needs more scopes. Prints one report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/auth/oauth/clients.rs` documents both.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { authorize, recording } from "./browser.mjs";

const NAME = "@modelcontextprotocol/client";
const REDIRECT = "http://127.0.0.1/callback";
const request = JSON.parse(process.argv[2]);

/** The HTTP exchanges of the SDK, and the authorizations in the browser, in order. */
const exchanges = [];
const authorizations = [];

/** What a program keeps: the registration, the tokens, the PKCE verifier, and the authorization in progress. */
class Credentials {
  redirectUrl = REDIRECT;
  accessTokens = [];
  clientMetadata = {
    client_name: "belljar tests",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };

  constructor() {
    if (request.registration === "pre") this.client = request.registered;
    if (request.registration === "cimd") this.clientMetadataUrl = request.document;
  }

  state() {
    this.expectedState = randomUUID();
    return this.expectedState;
  }

  clientInformation() {
    return this.client;
  }

  saveClientInformation(client) {
    this.client = client;
  }

  tokens() {
    return this.stored;
  }

  saveTokens(tokens) {
    this.stored = tokens;
    this.accessTokens.push(tokens.access_token);
  }

  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }

  codeVerifier() {
    return this.verifier;
  }

  saveDiscoveryState(state) {
    this.discovery = state;
  }

  discoveryState() {
    return this.discovery;
  }

  async redirectToAuthorization(url) {
    const { answer, seen } = await authorize(url, request.account, REDIRECT);
    authorizations.push(seen);
    if (answer.get("state") !== this.expectedState) throw new Error("the answer has another state");
    this.answer = answer;
  }
}

const credentials = new Credentials();

/** A transport. After an authorization, a connection that failed needs a new one. */
function newTransport() {
  return new StreamableHTTPClientTransport(new URL(request.url), {
    authProvider: credentials,
    fetch: recording(exchanges),
  });
}

/** Runs `work`. If it needs an authorization, finishes the authorization, and runs `again`. */
async function authorized(transport, work, again) {
  try {
    return await work();
  } catch (failure) {
    if (!(failure instanceof UnauthorizedError) || credentials.answer === undefined) throw failure;
    const answer = credentials.answer;
    credentials.answer = undefined;
    await transport.finishAuth(answer);
    return again();
  }
}

/** Reads a resource. Returns its contents, the error of the server, or the failure of the client. */
async function read(client, transport, uri) {
  try {
    const once = () => client.readResource({ uri });
    return { contents: (await authorized(transport, once, once)).contents };
  } catch (failure) {
    if (typeof failure.code === "number") {
      return { error: { code: failure.code, message: failure.message, data: failure.data } };
    }
    return { failure: `${failure.name}: ${failure.message}` };
  }
}

const newClient = () =>
  new Client({ name: "belljar-tests", version: "0" }, { versionNegotiation: { mode: request.mode } });
let client = newClient();
let transport = newTransport();
await authorized(
  transport,
  () => client.connect(transport),
  async () => {
    client = newClient();
    transport = newTransport();
    await client.connect(transport);
  },
);
const reads = {};
for (const uri of request.reads) reads[uri] = await read(client, transport, uri);
const manifest = new URL(`./node_modules/${NAME}/package.json`, import.meta.url);
const report = {
  client: `${NAME} ${JSON.parse(readFileSync(manifest)).version}`,
  protocol: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion().name,
  reads,
  authorizations,
  exchanges,
  client_id: credentials.client.client_id,
  scope: credentials.stored.scope,
  access_tokens: credentials.accessTokens,
};
await new Promise((done) => process.stdout.write(`${JSON.stringify(report)}\n`, done));
await client.close();
