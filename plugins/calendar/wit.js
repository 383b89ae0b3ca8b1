// Collects the component's world and the interfaces that it uses in build/wit.
import { cpSync, mkdirSync, rmSync } from "node:fs";

rmSync("build/wit", { recursive: true, force: true });
mkdirSync("build/wit/deps", { recursive: true });
cpSync("wit/world.wit", "build/wit/world.wit");
cpSync("../../sdk-guest/wasi", "build/wit/deps", { recursive: true });
cpSync("../../wit", "build/wit/deps/belljar-provider", { recursive: true });
