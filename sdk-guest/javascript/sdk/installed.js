// Says what to do before a build that would only say that a command is missing.
import { existsSync } from "node:fs";

if (!existsSync("node_modules/@belljar/guest")) {
  console.error('"node_modules" is not there or not complete: run "npm install" first');
  process.exit(1);
}
