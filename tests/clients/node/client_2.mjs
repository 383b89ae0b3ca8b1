// A client with the TypeScript client package 2.4. Connects to a server, lists and reads its resources, and prints one
// report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/clients/programs.rs` documents both.
// The request's `mode` is a mode of `versionNegotiation`, or "default": no setting, as in most programs.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { report, request } from "./report.mjs";

const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const options = request.mode === "default" ? {} : { versionNegotiation: { mode: request.mode } };

// The questions of the server so far. `request.answers` has one answer for each: "decline", "cancel", or a choice to
// accept.
const questions = [];
if (request.answers) options.capabilities = { elicitation: { form: {} } };
const client = new Client({ name: "belljar-tests", version: "0" }, options);
if (request.answers) {
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    questions.push(params);
    const choice = request.answers[questions.length - 1];
    if (["decline", "cancel"].includes(choice)) return { action: choice };
    return { action: "accept", content: { consent: choice } };
  });
}
await client.connect(transport);
await report("@modelcontextprotocol/client", client, () => client.getNegotiatedProtocolVersion(), questions);
await client.close();
