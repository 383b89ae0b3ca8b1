// A client with the TypeScript SDK 1.32. Calls tools, completes arguments, and prints one report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/clients/tools.rs` documents both.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { report } from "./tools.mjs";

const request = JSON.parse(process.argv[2]);
const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const client = new Client({ name: "belljar-tests", version: "0" });
await client.connect(transport);
await report(client, () => "2025-11-25", request);
await client.close();
