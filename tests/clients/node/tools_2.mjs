// A client with the TypeScript client package 2.4. Calls tools, completes arguments, and prints one report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/clients/tools.rs` documents both.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { report } from "./tools.mjs";

const request = JSON.parse(process.argv[2]);
const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const options = { versionNegotiation: { mode: request.mode } };
const client = new Client({ name: "belljar-tests", version: "0" }, options);
await client.connect(transport);
await report(client, () => client.getNegotiatedProtocolVersion(), request);
await client.close();
