"""The exports of the component."""

import gc

from belljar_guest import component

from mail_provider.provider import Mail

ResourceProvider = component.resource_provider(Mail)
Completion = component.completion(Mail)
Revisions = component.revisions(Mail)

# Each call runs in a copy of this memory, for milliseconds. A collection would touch, and so copy, all of it.
gc.collect()
gc.freeze()
gc.disable()
