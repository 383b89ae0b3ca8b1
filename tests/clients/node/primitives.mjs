// Code that both TypeScript clients share: tools, prompts, questions and progress, and the report.

/** Returns the result of a request, or the error of the server. Throws other errors, such as results that break their schema. */
async function attempt(work) {
  try {
    return { result: await work() };
  } catch (failure) {
    if (typeof failure.code !== "number") throw failure;
    return { error: { code: failure.code, message: failure.message } };
  }
}

/** A handler that records each question in `questions`, and gives the answer that the request has for its message. */
export function answer(request, questions) {
  return async ({ params }) => {
    questions.push(params);
    return request.answers[params.message];
  };
}

/** Makes the requests, and prints the report. `more` adds what only one of the clients has. */
export async function report(client, protocol, request, questions, more = async () => ({})) {
  const declared = client.getServerCapabilities();
  const seen = { protocol: protocol(), calls: [], prompts: [], completions: [], progress: [], questions };
  seen.capabilities = ["tools", "prompts", "completions"].filter((name) => declared[name] !== undefined);
  seen.listed_tools = (await client.listTools()).tools;
  seen.listed_prompts = (await client.listPrompts()).prompts;
  for (const call of request.calls) seen.calls.push(await attempt(() => client.callTool(call)));
  for (const prompt of request.prompts) seen.prompts.push(await attempt(() => client.getPrompt(prompt)));
  for (const { prompt, name, value } of request.completions) {
    const params = { ref: { type: "ref/prompt", name: prompt }, argument: { name, value } };
    seen.completions.push(await attempt(() => client.complete(params)));
  }
  const onprogress = ({ progress, total }) => seen.progress.push([progress, total]);
  seen.slow = await attempt(() => request.callWithProgress(client, { name: request.slow, arguments: {} }, { onprogress }));
  Object.assign(seen, await more());
  // Wait until the pipe has taken all bytes. Otherwise, `process.exit` would drop the rest.
  await new Promise((done) => process.stdout.write(`${JSON.stringify(seen)}\n`, done));
}
