// A client with the TypeScript SDK 1.32. Watches resources with `resources/subscribe`.
//
// argv[2] is a JSON request, which `tests/integration/clients/subscriptions.rs` documents.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { follow, handlers, request } from "./watch.mjs";

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
const { updated, list } = handlers(client);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
client.setNotificationHandler(ResourceListChangedNotificationSchema, list);
await client.connect(transport);
await follow(
  client,
  () => protocol,
  (uri) => client.subscribeResource({ uri }),
  (uri) => client.unsubscribeResource({ uri }),
);
await client.close();
