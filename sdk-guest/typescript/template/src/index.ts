// The exports of the component. Add `completion` or `revisions` here and in wit/world.wit when the provider has their
// methods.
import { component } from "@belljar/guest/component";

import { provider } from "./provider.js";

export const { resourceProvider } = component(provider);
