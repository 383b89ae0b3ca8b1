// Makes a component of a bundle: `node belljar-guest/componentize.js BUNDLE COMPONENT`. Its world is `project` of the directory `wit`.
//
// A project has the interfaces of the world in `wit/deps`. If it does not, it has the npm package, which contains them.
//
// componentize-qjs runs the module once, to take a snapshot. For interfaces that it does not know, such as wasi:http, it makes
// stubs, and their resources do not fit those of the wasi:io that it knows. So a world with wasi:http gets both under the
// package `bell` for the snapshot, and the finished component gets their names back. The names have the same length.
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { componentize } from "componentize-qjs";

/** The names, and those for the snapshot. The version keeps this wasi:io apart from the one of other interfaces. */
const NAMES = [
  [/wasi:http(?=[/@])/g, "bell:http"],
  [/wasi:io(?=[/@])/g, "bell:io"],
  [/(bell:io(?:\/[a-z]+)?)@0\.2\.\d+/g, "$1@0.2.11"],
];

const [bundle, output] = process.argv.slice(2);
let jsSource = readFileSync(bundle, "utf8");
let witPath = "wit";
const sendsRequests = /^\s*import\s+wasi:http\//m.test(readFileSync("wit/world.wit", "utf8"));
const usesPackage = !existsSync("wit/deps");
if (sendsRequests || usesPackage) {
  witPath = "build/wit";
  rmSync(witPath, { recursive: true, force: true });
  cpSync("wit", witPath, { recursive: true });
  if (usesPackage) cpSync(fileURLToPath(new URL("wit", import.meta.url)), `${witPath}/deps`, { recursive: true });
}
if (sendsRequests) {
  const renamed = (file) => NAMES.reduce((text, [name, other]) => text.replace(name, other), readFileSync(file, "utf8"));
  // The world keeps the names of interfaces other than wasi:http.
  writeFileSync(`${witPath}/world.wit`, readFileSync("wit/world.wit", "utf8").replace(...NAMES[0]));
  cpSync(`${witPath}/deps/wasi-io`, `${witPath}/deps/bell-io`, { recursive: true });
  for (const name of ["wasi-http", "bell-io"]) writeFileSync(`${witPath}/deps/${name}/package.wit`, renamed(`${witPath}/deps/${name}/package.wit`));
  jsSource = NAMES.reduce((text, [name, other]) => text.replace(name, other), jsSource);
}
const { component } = await componentize({ witPath, world: "project", jsSource, jsPath: bundle, sync: true });
if (sendsRequests) giveBack(component);
writeFileSync(output, component);

/** Replaces the names for the snapshot by the real ones, in place. */
function giveBack(bytes) {
  for (const [from, to] of [["bell:http/", "wasi:http/"], ["bell:io/", "wasi:io/"]]) {
    for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at)) bytes.write(to, at, "latin1");
  }
}
