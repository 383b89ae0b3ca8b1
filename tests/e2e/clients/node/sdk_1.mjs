// The TypeScript SDK 1.32 as a client: prints, as one JSON line, what it saw of a server.
//
// argv[2] is the JSON request that `tests/e2e/clients.rs` documents; the report has the shape documented there too.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { report, request } from "./report.mjs";

const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
// The handshake's answer is not kept by this SDK: the transport is where the agreed version can be seen.
let protocol;
const agree = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocol = version;
  agree?.(version);
};

const client = new Client({ name: "belljar-tests", version: "0" });
await client.connect(transport);
await report("@modelcontextprotocol/sdk", client, () => protocol);
await client.close();
