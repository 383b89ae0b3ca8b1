// Reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages.
import { type Provider, text } from "@belljar/guest";
import { get } from "@belljar/guest/environment";
import { fetch, type RequestInit } from "@belljar/guest/fetch";

const pieces = ["one ", "two ", "three"];

export const provider = {
  async read(reference) {
    const [order, ...path] = reference.split("/");
    const options: RequestInit = { headers: { "x-own": "mine" } };
    if (order === "post") Object.assign(options, { method: "POST", body: pieces.join("") });
    if (order === "send") Object.assign(options, { method: "POST", body: pieces });
    if (order === "soon") options.signal = AbortSignal.timeout(100);
    const response = await fetch(`${get("UPSTREAM")}/${path.join("/")}`, options);
    let length = 0;
    if (order === "count") for await (const piece of response.body ?? []) length += piece.length;
    return text(reference, `${response.status} ${order === "count" ? length : await response.text()}`);
  },
} satisfies Provider;
