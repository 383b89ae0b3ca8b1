import type { Annotations, Awaitable, Contents, Icon, Meta, Suggestions } from "./index.js";
import type { InferObject, Schema } from "./schema.js";

interface Annotated {
  annotations?: Annotations | undefined;
}

/** A resource of this provider, which the client may read if it needs to. */
export interface Link extends Annotated {
  /** Its reference. */
  link: string;
  /** A short name for programs and logs. By default, the reference. */
  name?: string | undefined;
  title?: string | undefined;
  description?: string | undefined;
  mimeType?: string | undefined;
  /** In bytes. */
  size?: number | undefined;
}

/** One piece of content: a text, a picture, a sound, a link to a resource of this provider, or such a resource itself. */
export type Block =
  | string
  | ({ text: string } & Annotated)
  | ({ image: Uint8Array; mimeType: string } & Annotated)
  | ({ audio: Uint8Array; mimeType: string } & Annotated)
  | ({ embedded: Contents } & Annotated)
  | Link;

/** A question for the person in front of the client. It must not ask for secrets. */
export interface Question {
  /** The name of the question: letters, digits, `_` and `-`. */
  key: string;
  /** The question, for people. */
  message: string;
  /** The form: an object of texts, numbers, booleans and enumerations. */
  form: Schema<object>;
}

/** Questions, instead of a result. The answers come to a new call with the same arguments, in its context. */
export interface Ask {
  questions: Question[];
  /** What the new call must know. The host seals it, so that no client can read or change it. */
  state?: string | undefined;
}

/** Makes an `Ask` of one to eight questions. */
export function ask(questions: Question | Question[], state?: string): Ask;

/** What the person did with a question. */
export interface Answer {
  action: "accept" | "decline" | "cancel";
  /** The filled form, if the action is `accept`. */
  content?: object | undefined;
}

/** What a call knows of its client. */
export interface Context {
  /** True if the client can ask a person. Without it, do without an answer, or throw `Invalid`. */
  readonly canAsk: boolean;
  /** The answers to the questions of an earlier call, by the keys of the questions. */
  readonly answers: ReadonlyMap<string, Answer>;
  /** The state of that call. */
  readonly state: string | undefined;
  /** The filled form of a question. Undefined if it was not asked, or if the person did not fill it in. */
  accepted<T extends object>(key: string, form: Schema<T>): T | undefined;
  accepted(key: string): object | undefined;
}

/** Makes a context for a test. A component gets one from the host. */
export function context(given?: {
  canAsk?: boolean;
  answers?: { [key: string]: Answer } | ReadonlyMap<string, Answer>;
  state?: string;
}): Context;

interface Named {
  /** Letters, digits, `_` and `-`, at most 48. */
  name: string;
  /** A name for people. */
  title?: string | undefined;
  /** What it does and when to use it. */
  description: string;
  icons?: Icon[] | undefined;
  meta?: Meta | undefined;
}

interface ToolHints {
  /** What the tool does: nothing but read, add something, or perhaps change or delete something (the default). */
  effect?: "reads" | "adds" | "destroys" | undefined;
  /** True if a second call with the same arguments changes nothing more. By default, false. */
  idempotent?: boolean | undefined;
  /** True if it reaches beyond the mount's own data. By default, true. */
  openWorld?: boolean | undefined;
  /** A page that shows the results: `read` gives HTML for it. With `appOnly`, only the page may call the tool. */
  view?: { page: string; appOnly?: boolean | undefined } | undefined;
}

/**
 * The result of a tool: `content` for models, `structured` for programs. Some clients show their model only one of the two,
 * so each must be complete. If `content` is left out, it is the JSON text of `structured`.
 */
export interface ToolResult<O = object> {
  content?: Block | readonly Block[] | undefined;
  structured?: O | undefined;
  /** True if the call failed in a way that the model can correct. */
  isError?: boolean | undefined;
  meta?: Meta | undefined;
}

/** What the `run` of a tool may return. With an output schema, each result that is no error has `structured`. */
export type Returned<O> = unknown extends O
  ? Block | readonly Block[] | ToolResult | Ask | void
  : (ToolResult<O> & { structured: O }) | (ToolResult<O> & { isError: true }) | Ask;

/** A tool. `tool` makes it. */
export interface Tool extends Named, ToolHints {
  readonly input: Schema<object>;
  readonly output?: Schema<object> | undefined;
  run(values: object, context?: Context): unknown;
}

/** Defines a tool. `run` gets arguments of the type of `input`; the host checks them before. */
export function tool<I extends object = {}, O = unknown, R extends Awaitable<Returned<O>> = Awaitable<Returned<O>>>(
  definition: Named &
    ToolHints & {
      /** The schema of the arguments. By default, there are none. */
      input?: Schema<I>;
      /** The schema of the structured result. */
      output?: Schema<O> & Schema<object>;
      run(values: I, context: Context): R;
    },
): Omit<Tool, "run"> & { run(values: I, context?: Context): R };

/** One message of a prompt. By default, it is the user's. */
export interface Message {
  role?: "user" | "assistant" | undefined;
  content: Block;
}

/** The messages of a prompt, at least one. A block is a message of the user. */
export interface PromptResult {
  messages: Block | Message | readonly (Block | Message)[];
  /** What these messages are for. */
  description?: string | undefined;
}

/** What the `run` of a prompt may return. */
export type PromptReturned = PromptResult | PromptResult["messages"] | Ask;

/** A prompt. `prompt` makes it. */
export interface Prompt extends Named {
  readonly arguments: { readonly [name: string]: Schema<string> };
  run(values: object, context?: Context): unknown;
  /** The suggestions for an argument with this text so far. */
  complete(name: string, text: string, resolved?: Map<string, string>): { values: string[]; total?: number | undefined };
}

/** All values of an argument; or a function of the text so far, and of the arguments that already have a value. */
export type Suggest = readonly string[] | ((text: string, resolved: Map<string, string>) => Suggestions);

/** Defines a prompt. Its arguments are texts: `schema.string()`, or `schema.oneOf([...])`, whose values are suggested. */
export function prompt<
  A extends { readonly [name: string]: Schema<string> } = {},
  R extends Awaitable<PromptReturned> = Awaitable<PromptReturned>,
>(
  definition: Named & {
    arguments?: A;
    /** The values to suggest for arguments. */
    suggest?: { [K in keyof A]?: Suggest };
    run(values: InferObject<A>, context: Context): R;
  },
): Omit<Prompt, "run"> & { run(values: InferObject<A>, context?: Context): R };

/** The values that start with a text in any case, at most 100, with their total number. */
export function startingWith(text: string, values: Iterable<string>): { values: string[]; total?: number };

/** A provider with tools: a list, or a function that makes one. */
export interface Tooling {
  tools: readonly Tool[] | (() => readonly Tool[]);
}

/** A provider with prompts: a list, or a function that makes one. */
export interface Prompting {
  prompts: readonly Prompt[] | (() => readonly Prompt[]);
}

/** A skill: a directory with a `SKILL.md`. `read` serves its files. */
export interface Skill {
  /** The reference of the directory, without a slash at its end. */
  root: string;
  /** The references of all files below the directory, `SKILL.md` included. */
  files: string[];
}

/** One page of the list of skills. */
export interface SkillPage {
  skills: Skill[];
  /** The start of the next page; left out on the last page. */
  nextCursor?: string | undefined;
}

/** A provider of skills. */
export interface Skilled {
  /** Lists skills, a page at a time. */
  listSkills(cursor?: string): Awaitable<SkillPage>;
  /** The skill with this directory. By default, one of the list. */
  getSkill?(root: string): Awaitable<Skill>;
}
