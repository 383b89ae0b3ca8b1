"""The interfaces of ``wit/provider.wit`` in plain Python, for the author to implement."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from .model import Argument, Contents, Info, Page, Reading, Suggestions, Template


class Provider(ABC):
    """A provider of resources.

    Each call makes a new provider in a fresh sandbox. Read grants and settings in ``__init__``, not at the top of a
    module: a module is imported while the component is built, and sees neither.
    """

    def describe(self) -> Info:
        """The description of the provider. Must work without any grant."""
        return Info()

    def list_resources(self, cursor: str | None) -> Page:
        """Lists resources, a page at a time; ``Page.of`` makes such a page from entries in a stable order."""
        return Page()

    def list_templates(self) -> Sequence[Template]:
        """Lists all templates."""
        return ()

    @abstractmethod
    def read(self, reference: str) -> Contents | Reading:
        """Reads one resource.

        The reference is well formed, but the resource may not exist: raise ``NotFound`` then.
        """


class Completion(ABC):
    """For a provider that suggests values for the variables of its templates."""

    @abstractmethod
    def complete(self, template: str, argument: Argument, resolved: Mapping[str, str]) -> Suggestions:
        """Suggests values for ``argument``; ``resolved`` are the variables that already have a value."""


class Revisions(ABC):
    """For a provider that detects changes cheaply. A revision is any text of at most 256 bytes."""

    @abstractmethod
    def catalog_revision(self) -> str:
        """The revision of the list. It differs from an earlier one if the listed resources or templates differ."""

    @abstractmethod
    def resource_revision(self, reference: str) -> str:
        """The revision of one resource. It differs from an earlier one if a read would return other contents."""
