import { component } from "@belljar/guest/component";

import { provider } from "./relay.js";

export const { resourceProvider } = component(provider);
