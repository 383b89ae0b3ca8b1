// Code that both TypeScript clients share: lists and calls tools, completes arguments, and prints the report.

/** Returns the result of a request, or the error of the server. Throws other errors, such as results that break their schema. */
async function attempt(work) {
  try {
    return { result: await work() };
  } catch (failure) {
    // An error without a numeric code or without data is an error of the client.
    if (typeof failure.code !== "number" || failure.data === undefined) throw failure;
    return { error: { code: failure.code, message: failure.message, data: failure.data } };
  }
}

/** Lists the tools, makes the requested calls and completions, and prints the report. */
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
  // Wait until the pipe has taken all bytes. Otherwise, `process.exit` would drop the rest.
  await new Promise((done) => process.stdout.write(`${JSON.stringify(seen)}\n`, done));
}
