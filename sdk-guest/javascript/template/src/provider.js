// belljar:if none
// The resources of this provider. Everything here is an example: replace it.
// belljar:end
// belljar:if any
// What this provider offers. Everything here is an example: replace it.
// belljar:end
import { Denied, Invalid, NotFound, blob, decode, encodeSegment, fromBytes, json, page, text } from "@belljar/guest";
// belljar:if any
import { schema } from "@belljar/guest";
// belljar:end
// belljar:if tools
import { tool } from "@belljar/guest";
// belljar:end
// belljar:if prompts
import { prompt } from "@belljar/guest";
// belljar:end
import * as files from "@belljar/guest/files";

const DIRECTORY = "/data";

const MONTHS = [
  ["January", 31],
  ["February", 28],
  ["March", 31],
  ["April", 30],
  ["May", 31],
  ["June", 30],
  ["July", 31],
  ["August", 31],
  ["September", 30],
  ["October", 31],
  ["November", 30],
  ["December", 31],
];

// A picture of one dot.
const DOT = Uint8Array.from(
  (
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154" +
    "78da6364f8cf500f00038601805a347d6b0000000049454e44ae426082"
  ).match(/../g),
  (byte) => parseInt(byte, 16),
);

// belljar:if tools
export const monthDays = tool({
  name: "month_days",
  description: "How many days a month has.",
  input: schema.object({
    month: schema.integer({ minimum: 1, maximum: 12, description: "The number of the month." }),
    year: schema.optional(schema.integer({ description: "The year, which decides about leap days." })),
  }),
  output: schema.object({ month: schema.string(), days: schema.integer() }),
  effect: "reads",
  idempotent: true,
  openWorld: false,
  run({ month, year }) {
    const [name, days] = MONTHS[month - 1];
    const isLeap = year !== undefined && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
    const structured = { month: name, days: month === 2 && isLeap ? 29 : days };
    const when = year === undefined ? name : `${name} ${year}`;
    return { content: `${when} has ${structured.days} days.`, structured };
  },
});

// belljar:end
// belljar:if prompts
export const planMonth = prompt({
  name: "plan_month",
  description: "A plan for a month.",
  arguments: {
    month: schema.string({ description: "The name of the month" }),
    goal: schema.optional(schema.string({ description: "What to achieve in it" })),
  },
  suggest: { month: MONTHS.map(([name]) => name) },
  run({ month, goal }) {
    const found = MONTHS.find(([name]) => name === month);
    if (!found) throw new Invalid(`a month is one of January to December, not "${month}"`);
    const text = `Make a plan for ${month}, which has ${found[1]} days.`;
    return { description: `A plan for ${month}`, messages: goal === undefined ? text : `${text} My goal: ${goal}.` };
  },
});

// belljar:end
export const provider = {
  describe() {
    return {
      title: "my-provider",
      version: "0.1.0",
      description: "A greeting, a picture, the months of a year, and the files of a directory.",
    };
  },

  listResources(cursor) {
    return page(resources(), cursor, 10);
  },

  listTemplates() {
    return [
      {
        template: "months/{month}",
        name: "month",
        description: "A month of the year by its number, from 1 to 12.",
        mimeType: "application/json",
      },
      { template: "files/{name}", name: "file", description: "A file of the directory by its name; without a name, all files." },
    ];
  },

  // belljar:if tools
  tools: [monthDays],

  // belljar:end
  // belljar:if prompts
  prompts: [planMonth],

  // belljar:end
  read(reference) {
    if (reference === "hello.txt") return text(reference, "Hello from my-provider.\n");
    if (reference === "dot.png") return blob(reference, DOT, { mimeType: "image/png" });
    const [family, name, ...more] = reference.split("/");
    if (more.length === 0 && name !== undefined) {
      if (family === "months") return month(reference, decode(name));
      if (reference === "files/") return allFiles();
      if (family === "files") return file(reference, decode(name));
    }
    throw new NotFound();
  },
};

// A generator, because it creates only the entries that a page shows.
function* resources() {
  yield { reference: "hello.txt", name: "hello.txt", mimeType: "text/plain" };
  yield { reference: "dot.png", name: "dot.png", mimeType: "image/png" };
  for (const [index, [name]] of MONTHS.entries()) {
    yield { reference: `months/${index + 1}`, name, mimeType: "application/json" };
  }
  if (!files.granted().includes(DIRECTORY)) return;
  for (const { name, kind } of files.list(DIRECTORY)) {
    if (kind !== "file") continue;
    const { size, modified } = files.stat(`${DIRECTORY}/${name}`);
    const reference = `files/${encodeSegment(name)}`;
    yield { reference, name, mimeType: mimeType(name), size, annotations: { lastModified: modified } };
  }
}

function month(reference, number) {
  if (!/^[0-9]+$/.test(number)) throw new Invalid(`a month is a number from 1 to 12, not "${number}"`);
  const found = MONTHS[Number(number) - 1];
  if (!found) throw new NotFound();
  return json(reference, { month: Number(number), name: found[0], days: found[1] });
}

/** All files of the directory, one content each. */
function allFiles() {
  const names = files.list(DIRECTORY).filter(({ kind }) => kind === "file");
  const [first, ...others] = names.flatMap(({ name }) => file(`files/${encodeSegment(name)}`, name).contents);
  if (!first) throw new NotFound();
  return { contents: [first, ...others] };
}

function file(reference, name) {
  if (!files.granted().includes(DIRECTORY)) {
    throw new Denied(`this needs the directory "${DIRECTORY}", which was not granted`);
  }
  if (name === "" || name.includes("/")) throw new NotFound();
  return fromBytes(reference, files.read(`${DIRECTORY}/${name}`), { mimeType: mimeType(name) });
}

function mimeType(name) {
  return name.endsWith(".md") ? "text/markdown" : "text/plain";
}
