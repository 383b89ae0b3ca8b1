// Runs before the build. Without the packages, the build itself would only report a missing command.
import { existsSync } from "node:fs";

if (!existsSync("node_modules/@belljar/guest")) {
  console.error('"node_modules" is not there or not complete: run "npm install" first');
  process.exit(1);
}
