declare const values: unique symbol;

/** A JSON Schema whose values have the type `T`. */
export interface Schema<T> {
  /** The schema itself. */
  readonly json: { readonly [keyword: string]: unknown };
  /** Exists only as a type. */
  readonly [values]?: () => T;
}

/** A schema of a property that may be left out. */
export interface Optional<T> extends Schema<T> {
  readonly optional: true;
}

/** The type of the values of a schema. */
export type Infer<S> = S extends { readonly [values]?: () => infer T } ? T : never;

/** The properties of an object. */
export type Properties = { readonly [name: string]: Schema<unknown> };

type OptionalNames<P> = { [K in keyof P]: P[K] extends { readonly optional: true } ? K : never }[keyof P];

/** The type of an object with these properties. */
export type InferObject<P> = {
  [K in keyof ({ [K in Exclude<keyof P, OptionalNames<P>>]: 1 } & { [K in OptionalNames<P>]?: 1 })]: Infer<P[K]>;
};

/** Keywords that every schema may have. */
export interface Options<T = unknown> {
  /** The meaning of the value, for models. */
  description?: string;
  /** A name for people. */
  title?: string;
  /** The value that is meant if it is left out. The function itself has to use it. */
  default?: T;
  examples?: T[];
}

export interface TextOptions extends Options<string> {
  minLength?: number;
  maxLength?: number;
  /** A regular expression. */
  pattern?: string;
  format?: "email" | "uri" | "date" | "date-time" | (string & {});
}

export interface NumberOptions extends Options<number> {
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
}

export interface ListOptions extends Options {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
}

/** A text. */
export function string(options?: TextOptions): Schema<string>;
/** A number. */
export function number(options?: NumberOptions): Schema<number>;
/** A whole number. */
export function integer(options?: NumberOptions): Schema<number>;
/** True or false. */
export function boolean(options?: Options<boolean>): Schema<boolean>;
/** One of several texts. */
export function oneOf<const V extends string>(values: readonly V[], options?: Options<V>): Schema<V>;
/** A list. */
export function array<T>(items: Schema<T>, options?: ListOptions): Schema<T[]>;
/** An object with any keys, whose values have one type. */
export function record<T>(values: Schema<T>, options?: Options): Schema<Record<string, T>>;
/** An object with these properties. All are required, except for those that are `optional`. */
export function object<P extends Properties>(
  properties: P,
  options?: Options & { additionalProperties?: boolean },
): Schema<InferObject<P>>;
/** A property that may be left out. */
export function optional<T>(schema: Schema<T>): Optional<T>;
/** A value of one of several types. */
export function union<S extends readonly Schema<unknown>[]>(schemas: S, options?: Options): Schema<Infer<S[number]>>;
/** Any JSON Schema. `T` is the type of its values. */
export function custom<T>(json: { readonly [keyword: string]: unknown }): Schema<T>;
