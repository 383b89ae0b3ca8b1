// Puts the component's world beside the interfaces that it names.
import { cpSync, mkdirSync, rmSync } from "node:fs";

rmSync("build/wit", { recursive: true, force: true });
mkdirSync("build/wit/deps", { recursive: true });
cpSync("wit/world.wit", "build/wit/world.wit");
cpSync("../../sdk-guest/javascript/wit/deps", "build/wit/deps", { recursive: true });
cpSync("../../wit", "build/wit/deps/belljar-provider", { recursive: true });
