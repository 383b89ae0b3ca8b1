// A client with the TypeScript client package 2.4. Watches resources. With protocol revision 2026-07-28, it opens one
// `subscriptions/listen` for each resource, and one for the list. With the older revision, it uses `resources/subscribe`.
//
// argv[2] is a JSON request, which `tests/integration/clients/subscriptions.rs` documents. Its `mode` is a mode of
// `versionNegotiation`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { follow, handlers, request } from "./watch.mjs";

const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const options = { versionNegotiation: { mode: request.mode } };
const client = new Client({ name: "belljar-tests", version: "0" }, options);
const { updated, list } = handlers(client);
client.setNotificationHandler("notifications/resources/updated", updated);
client.setNotificationHandler("notifications/resources/list_changed", list);
await client.connect(transport);

const listens = new Map();
const isOlder = request.mode === "legacy";
if (!isOlder) listens.set("", await client.listen({ resourcesListChanged: true }));
await follow(
  client,
  () => client.getNegotiatedProtocolVersion(),
  async (uri) => {
    if (isOlder) await client.subscribeResource({ uri });
    else listens.set(uri, await client.listen({ resourceSubscriptions: [uri] }));
  },
  async (uri) => {
    if (isOlder) await client.unsubscribeResource({ uri });
    else await listens.get(uri).close();
  },
);
for (const listen of listens.values()) await listen.close();
await client.close();
