// The exports of the component. Add `completion`, `revisions`, `parts`, `toolProvider`, `promptProvider` or `skillProvider`
// here, and their interface in wit/world.wit.
import { component } from "@belljar/guest/component";

import { provider } from "./provider.js";

// belljar:if none
export const { resourceProvider } = component(provider);
// belljar:end
// belljar:if any
const interfaces = component(provider);

export const { resourceProvider } = interfaces;
// belljar:end
// belljar:if tools
export const { toolProvider } = interfaces;
// belljar:end
// belljar:if prompts
export const { promptProvider } = interfaces;
// belljar:end
