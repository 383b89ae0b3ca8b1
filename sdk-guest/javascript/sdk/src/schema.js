// Makes JSON Schemas whose types TypeScript knows. A schema is an object with the JSON Schema as `json`.

/** A text. The options are keywords of JSON Schema: `minLength`, `maxLength`, `pattern`, `format`, `description`, `default`. */
export function string(options) {
  return { json: { type: "string", ...options } };
}

/** A number: `minimum`, `maximum`. */
export function number(options) {
  return { json: { type: "number", ...options } };
}

/** A whole number: `minimum`, `maximum`. */
export function integer(options) {
  return { json: { type: "integer", ...options } };
}

/** True or false. */
export function boolean(options) {
  return { json: { type: "boolean", ...options } };
}

/** One of several texts. */
export function oneOf(values, options) {
  return { json: { type: "string", enum: [...values], ...options } };
}

/** A list: `minItems`, `maxItems`. */
export function array(items, options) {
  return { json: { type: "array", items: items.json, ...options } };
}

/** An object with any keys, whose values have one type. */
export function record(values, options) {
  return { json: { type: "object", additionalProperties: values.json, ...options } };
}

/** An object with these properties. All are required, except for those that are `optional`. */
export function object(properties, options) {
  const json = { type: "object", properties: {}, ...options };
  const required = [];
  for (const [name, schema] of Object.entries(properties)) {
    json.properties[name] = schema.json;
    if (!schema.optional) required.push(name);
  }
  if (required.length > 0) json.required = required;
  return { json };
}

/** A property that may be left out. */
export function optional(schema) {
  return { ...schema, optional: true };
}

/** A value of one of several types. */
export function union(schemas, options) {
  return { json: { anyOf: schemas.map((schema) => schema.json), ...options } };
}

/** Any JSON Schema. `schema.custom<T>(...)` says which type its values have. */
export function custom(json) {
  return { json };
}
