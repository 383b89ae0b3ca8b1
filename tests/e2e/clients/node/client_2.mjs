// The TypeScript client 2.4: prints, as one JSON line, what it saw of a server.
//
// argv[2] is the JSON request that `tests/e2e/clients.rs` documents; the report has the shape documented there too.
// Its `mode` is "default" (nothing said about versions, as most programs leave it) or a mode of `versionNegotiation`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { report, request } from "./report.mjs";

const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const options = request.mode === "default" ? {} : { versionNegotiation: { mode: request.mode } };

// Who answers questions, one after the other: an action, or a choice that is accepted.
const questions = [];
if (request.answers) options.capabilities = { elicitation: { form: {} } };
const client = new Client({ name: "belljar-tests", version: "0" }, options);
if (request.answers) {
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    questions.push(params);
    const word = request.answers[questions.length - 1];
    return ["decline", "cancel"].includes(word) ? { action: word } : { action: "accept", content: { consent: word } };
  });
}
await client.connect(transport);
await report("@modelcontextprotocol/client", client, () => client.getNegotiatedProtocolVersion(), questions);
await client.close();
