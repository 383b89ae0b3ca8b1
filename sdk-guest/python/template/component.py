"""The exports of the component. The Makefile sets the world."""

from belljar_guest import component

from my_provider import MyProvider

ResourceProvider = component.resource_provider(MyProvider)
