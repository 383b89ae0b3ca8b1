// Code that both TypeScript clients share: for each notification, prints the notification, reads or lists again, and
// prints the result.
//
// Each line of the output and of the input is one JSON object. `tests/integration/clients/subscriptions.rs` documents
// them.

import { createInterface } from "node:readline";

/** The request of the test. */
export const request = JSON.parse(process.argv[2]);

/** Prints one line of JSON. */
function print(object) {
  process.stdout.write(`${JSON.stringify(object)}\n`);
}

/** Reads a resource. Returns its text, or the code of the server's error. */
async function read(client, uri) {
  try {
    return { text: (await client.readResource({ uri })).contents[0].text };
  } catch (failure) {
    // An error without a numeric code is an error of the client.
    if (typeof failure.code !== "number") throw failure;
    return { code: failure.code };
  }
}

/** Lists all resources. Returns their URIs. */
async function uris(client) {
  const found = [];
  let cursor;
  do {
    const page = await client.listResources(cursor === undefined ? {} : { cursor });
    found.push(...page.resources.map((resource) => resource.uri));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

/** The handlers of notifications: `updated` for a changed resource, `list` for a changed list. */
export function handlers(client) {
  return {
    async updated({ params }) {
      print({ told: "updated", uri: params.uri });
      print({ read: params.uri, ...(await read(client, params.uri)) });
    },
    async list() {
      print({ told: "list" });
      print({ listed: await uris(client) });
    },
  };
}

/** Watches the URIs of the request. Each line of the input ends the watch of one URI. Returns at the end of the input. */
export async function follow(client, protocol, watch, unwatch) {
  await uris(client);
  for (const uri of request.watches) {
    await read(client, uri);
    await watch(uri);
  }
  print({ ready: protocol() });
  for await (const line of createInterface({ input: process.stdin })) {
    const uri = JSON.parse(line).unwatch;
    await unwatch(uri);
    print({ unwatched: uri });
  }
}
