// The exports of the component.
import { component } from "@belljar/guest/component";

import { Calendars } from "./provider.js";

export const { resourceProvider, completion, revisions } = component(new Calendars());
