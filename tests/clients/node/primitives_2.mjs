// A client with the TypeScript client package 2.4. Uses tools, prompts, questions, progress and skills, and prints one report.
//
// argv[2] is a JSON request, and the report is one line of JSON. `tests/integration/clients/primitives.rs` documents both.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answer, report } from "./primitives.mjs";

const request = JSON.parse(process.argv[2]);
const transport = request.url
  ? new StreamableHTTPClientTransport(new URL(request.url))
  : new StdioClientTransport({ command: request.command, args: request.args, env: request.env });
const capabilities = { elicitation: { form: {} } };
const options = { capabilities, versionNegotiation: { mode: request.mode } };
const client = new Client({ name: "belljar-tests", version: "0" }, options);
const questions = [];
client.setRequestHandler("elicitation/create", answer(request, questions));
request.callWithProgress = (client, call, options) => client.callTool(call, options);

/** Lists the skills, and gets, reads and verifies each. The client throws if a digest, a size or the frontmatter differs. */
async function readSkills() {
  const skills = new SkillsClient(client);
  const { skills: entries } = await skills.list();
  const seen = [];
  for (const entry of entries) {
    const { skill } = await skills.get(entry.uri);
    const root = entry.uri.slice(0, -"/SKILL.md".length);
    const files = [];
    for (const { uri } of skill.resources) {
      const { verified, mimeType, text, frontmatter } = await skills.read(skill, uri);
      files.push({ uri, verified, mimeType, text, frontmatter });
    }
    const directories = {};
    const waiting = [root];
    while (waiting.length > 0) {
      const uri = waiting.pop();
      const { resources } = await skills.readDirectory(uri);
      directories[uri] = resources.map((child) => child.uri);
      waiting.push(...resources.filter((child) => child.mimeType === "inode/directory").map((child) => child.uri));
    }
    seen.push({ listed: entry, got: skill, files, directories });
  }
  return { skills: seen, supported: skills.supported, directory_read: skills.directoryRead };
}

await client.connect(transport);
await report(client, () => client.getNegotiatedProtocolVersion(), request, questions, readSkills);
await client.close();
