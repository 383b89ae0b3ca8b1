// The TypeScript client 2.4 calling tools and completing: prints, as one JSON line, what it saw of a server.
//
// argv[2] is the JSON request that `tests/e2e/tools.rs` documents; the report has the shape documented there too.

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
