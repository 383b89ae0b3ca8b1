"""The exports of the component."""

from belljar_guest import component

from mail_provider.provider import Mail

ResourceProvider = component.resource_provider(Mail)
Completion = component.completion(Mail)
Revisions = component.revisions(Mail)
