"""What the component exports. The Makefile says which world it is of."""

from belljar_guest import component

from my_provider import MyProvider

ResourceProvider = component.resource_provider(MyProvider)
