// Code that both TypeScript clients share: requests all lists, reads the requested resources, and prints the report.

import { readFileSync } from "node:fs";

/** The request of the test. */
export const request = JSON.parse(process.argv[2]);

/** Requests all pages of a list. Returns all items and the number of pages. */
async function collect(fetch, key) {
  const items = [];
  let pages = 0;
  let cursor;
  do {
    // Without a cursor, client 2.4 requests all pages itself and returns them as one. SDK 1.32 returns the first page.
    const page = await fetch(cursor === undefined ? {} : { cursor });
    items.push(...page[key]);
    pages += 1;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { items, pages };
}

/** Reads a resource. Returns its contents, or the error of the server. */
async function read(client, uri) {
  try {
    return { contents: (await client.readResource({ uri })).contents };
  } catch (failure) {
    // An error without a numeric code is an error of the client.
    if (typeof failure.code !== "number") throw failure;
    return { error: { code: failure.code, message: failure.message, data: failure.data } };
  }
}

/** Prints the report. */
export async function report(name, client, protocol, questions = []) {
  const manifest = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  const resources = await collect((params) => client.listResources(params), "resources");
  const templates = await collect((params) => client.listResourceTemplates(params), "resourceTemplates");
  const reads = {};
  for (const uri of request.reads) reads[uri] = await read(client, uri);
  const seen = {
    client: `${name} ${JSON.parse(readFileSync(manifest)).version}`,
    protocol: protocol(),
    server: client.getServerVersion().name,
    resources: resources.items,
    pages: resources.pages,
    templates: templates.items,
    reads,
    questions,
  };
  // Wait until the pipe has taken all bytes. Otherwise, `process.exit` would drop the rest.
  await new Promise((done) => process.stdout.write(`${JSON.stringify(seen)}\n`, done));
}
