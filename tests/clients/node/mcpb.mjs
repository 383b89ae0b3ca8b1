// What a desktop client does with an MCP bundle: unpacks it, checks its manifest, and makes the command of the server from
// the choices of the user. Prints the command as JSON.
//
// argv: the bundle, an empty directory to unpack it into, and the choices of the user as JSON.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getMcpConfigForManifest, unpackExtension, validateManifest } from "@anthropic-ai/mcpb";

const [bundle, directory, choices] = process.argv.slice(2);
if (!(await unpackExtension({ mcpbPath: bundle, outputDir: directory, silent: true }))) {
  throw new Error("the bundle cannot be unpacked");
}
// It prints its findings, and only the command belongs on standard output.
const print = console.log;
console.log = console.error;
if (!validateManifest(join(directory, "manifest.json"))) {
  throw new Error("the manifest is not valid");
}
const command = await getMcpConfigForManifest({
  manifest: JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8")),
  extensionPath: directory,
  systemDirs: {},
  userConfig: JSON.parse(choices),
  pathSeparator: "/",
});
print(JSON.stringify(command ?? null));
