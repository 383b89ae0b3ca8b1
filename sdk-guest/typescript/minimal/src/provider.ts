// The resources of this provider. Everything here is an example: replace it.
import type { Provider } from "@belljar/guest";
import { NotFound, page, text } from "@belljar/guest";

export const provider: Provider = {
  describe() {
    return { title: "my-provider", version: "0.1.0", description: "A greeting." };
  },

  listResources(cursor) {
    return page([{ reference: "hello.txt", mimeType: "text/plain" }], cursor);
  },

  read(reference) {
    if (reference !== "hello.txt") throw new NotFound();
    return text(reference, "Hello from my-provider.\n");
  },
};
