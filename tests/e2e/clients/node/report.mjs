// What both TypeScript clients do once they are connected: walk every listing, read what was asked, report.

import { readFileSync } from "node:fs";

/** What the test asked for. */
export const request = JSON.parse(process.argv[2]);

/** Every page of a listing, and how many pages there were. */
async function collect(fetch, key) {
  const items = [];
  let pages = 0;
  let cursor;
  do {
    // Without a cursor client 2.4 walks all pages by itself and hands back one; SDK 1.32 hands back the first.
    const page = await fetch(cursor === undefined ? {} : { cursor });
    items.push(...page[key]);
    pages += 1;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { items, pages };
}

/** One read: the contents, or the error that came instead. */
async function read(client, uri) {
  try {
    return { contents: (await client.readResource({ uri })).contents };
  } catch (failure) {
    // An error without a code did not come from the server.
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
  // Awaited: a pipe that nobody has drained yet would lose what `process.exit` finds in it.
  await new Promise((done) => process.stdout.write(`${JSON.stringify(seen)}\n`, done));
}
