// What both TypeScript clients do with changes once they are connected: say what they are told, look again, say what they
// see. Each line of the output is one JSON object, as `tests/e2e/watching.rs` documents them; so are the lines of the input.

import { createInterface } from "node:readline";

/** What the test asked for. */
export const request = JSON.parse(process.argv[2]);

function say(said) {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

async function read(client, uri) {
  try {
    return { text: (await client.readResource({ uri })).contents[0].text };
  } catch (failure) {
    // An error without a code did not come from the server.
    if (typeof failure.code !== "number") throw failure;
    return { code: failure.code };
  }
}

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

/** Called with what is told. */
export function handlers(client) {
  return {
    async updated({ params }) {
      say({ told: "updated", uri: params.uri });
      say({ read: params.uri, ...(await read(client, params.uri)) });
    },
    async list() {
      say({ told: "list" });
      say({ listed: await uris(client) });
    },
  };
}

/** Watches what it was asked to, and does what it is asked: ends watching a URI. Ends with its input. */
export async function follow(client, protocol, watch, unwatch) {
  await uris(client);
  for (const uri of request.watches) {
    await read(client, uri);
    await watch(uri);
  }
  say({ ready: protocol() });
  for await (const line of createInterface({ input: process.stdin })) {
    const uri = JSON.parse(line).unwatch;
    await unwatch(uri);
    say({ unwatched: uri });
  }
}
