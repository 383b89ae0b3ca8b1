// Writes build/zones.json: the offsets of all IANA time zones until 2200, and the names that Windows gives them. The sources
// are two packages; unpacking one of their zones in the component would cost more than everything else in a read.
import { mkdirSync, writeFileSync } from "node:fs";

import moment from "moment-timezone";
import windows from "windows-iana";

const LAST = Date.UTC(2200, 0, 1) / 1000;

/** The index of each different table, by its text. */
const tables = new Map();
/** The index of the table of each name in lower case, and the name as the database writes it. */
const names = {};

for (const name of moment.tz.names()) {
  const { untils, offsets } = moment.tz.zone(name);
  // A part of the table is the second in which an offset begins, and the offset in seconds east of UTC.
  const parts = offsets.map((offset, at) => [at === 0 ? "" : Math.round(untils[at - 1] / 1000), -Math.round(offset * 60)]);
  const kept = parts.filter(([begin]) => begin === "" || begin < LAST);
  const text = kept.map(([begin, offset]) => `${begin} ${offset}`).join(",");
  if (!tables.has(text)) tables.set(text, tables.size);
  names[name.toLowerCase()] = [name, tables.get(text)];
}
for (const { windowsName, territory, iana } of windows.WINDOWS_TO_IANA_MAP) {
  const known = names[iana[0].toLowerCase()];
  if (territory === "001" && known) names[windowsName.toLowerCase()] ??= known;
}

mkdirSync("build", { recursive: true });
writeFileSync("build/zones.json", JSON.stringify({ names, tables: [...tables.keys()] }));
