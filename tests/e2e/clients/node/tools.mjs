// What the TypeScript clients do with tools and completion once they are connected, whichever of them it is.

/** A result, or the error that came instead. What is not as its schema says, the clients throw as something else. */
async function attempt(work) {
  try {
    return { result: await work() };
  } catch (failure) {
    // An error without data or of the client's own did not come from the server.
    if (typeof failure.code !== "number" || failure.data === undefined) throw failure;
    return { error: { code: failure.code, message: failure.message, data: failure.data } };
  }
}

/** Lists the tools, calls and completes what was asked, prints the report. */
export async function report(client, protocol, request) {
  const seen = { protocol: protocol(), calls: [], completions: [] };
  seen.capabilities = ["tools", "completions"].filter((name) => client.getServerCapabilities()[name] !== undefined);
  seen.tools = (await client.listTools()).tools;
  for (const call of request.calls) seen.calls.push(await attempt(() => client.callTool(call)));
  for (const { template, name, value, known } of request.completions) {
    const params = { ref: { type: "ref/resource", uri: template }, argument: { name, value } };
    if (known) params.context = { arguments: known };
    seen.completions.push(await attempt(() => client.complete(params)));
  }
  // Awaited: a pipe that nobody has drained yet would lose what `process.exit` finds in it.
  await new Promise((done) => process.stdout.write(`${JSON.stringify(seen)}\n`, done));
}
