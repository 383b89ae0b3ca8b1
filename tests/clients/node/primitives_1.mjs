// A client with the TypeScript SDK 1.32. Uses tools, prompts, questions and progress, and prints one report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/clients/primitives.rs` documents both.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { answer, report } from "./primitives.mjs";

const request = JSON.parse(process.argv[2]);
const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const client = new Client({ name: "belljar-tests", version: "0" }, { capabilities: { elicitation: {} } });
const questions = [];
client.setRequestHandler(ElicitRequestSchema, answer(request, questions));
request.callWithProgress = (client, call, options) => client.callTool(call, undefined, options);
await client.connect(transport);
await report(client, () => "2025-11-25", request, questions);
await client.close();
