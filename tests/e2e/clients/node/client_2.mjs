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

const client = new Client({ name: "belljar-tests", version: "0" }, options);
await client.connect(transport);
await report("@modelcontextprotocol/client", client, () => client.getNegotiatedProtocolVersion());
await client.close();
