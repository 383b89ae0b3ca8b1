// A client with the TypeScript SDK 1.32. Connects to a server, lists and reads its resources, and prints one report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/clients/programs.rs` documents both.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { report, request } from "./report.mjs";

const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
// This SDK does not expose the agreed protocol version. But it calls this method of the transport, so store the version
// here.
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
