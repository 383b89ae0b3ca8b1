// Runs before the build. Without the packages, the build itself would only report a missing command.
import { existsSync, readFileSync } from "node:fs";

const { dependencies, devDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const missing = Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !existsSync(`node_modules/${name}`));
if (missing.length > 0) {
  console.error(`"node_modules" is not there or lacks ${missing.join(", ")}: run "npm install" first`);
  process.exit(1);
}
