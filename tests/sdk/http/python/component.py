"""The exports of the component."""

from belljar_guest import component

from relay import Relay

ResourceProvider = component.resource_provider(Relay)
