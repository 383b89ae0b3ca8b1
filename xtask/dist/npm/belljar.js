#!/usr/bin/env node
// Starts the program of the package for this platform. npm installs that package as an optional dependency of this one.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const supported = Object.keys(require("../package.json").optionalDependencies);

/** Prints an error to standard error, and ends with exit code 1: standard output belongs to MCP. */
function fail(message) {
  process.stderr.write(`belljar: ${message}\n`);
  process.exit(1);
}

/** The path of the program. Ends this process if the platform has none. */
function find() {
  const name = `@belljar/${platform}`;
  if (!supported.includes(name)) {
    const known = supported.map((one) => one.replace("@belljar/", "")).join(" and ");
    fail(`there is no program for the platform "${platform}", only for ${known}`);
  }
  try {
    return require.resolve(`${name}/bin/belljar`);
  } catch {
    return fail(`the package "${name}" is not installed: install belljar again, without --omit=optional`);
  }
}

const program = spawn(find(), process.argv.slice(2), { stdio: "inherit" });

for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    // A terminal sends SIGINT to both processes. A second one would end belljar before it has finished its calls.
    if (signal !== "SIGINT" || !process.stdin.isTTY) {
      program.kill(signal);
    }
  });
}

program.on("error", (error) => fail(`cannot start "${program.spawnfile}": ${error.message}`));

program.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // This process ends in the same way, so that its parent sees the reason.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
