"""What an author implements: the interfaces of ``wit/provider.wit`` in plain Python."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from .model import Argument, Contents, Info, Page, Reading, Suggestions, Template


class Provider(ABC):
    """A provider of resources.

    A new one is made for each call, in a fresh sandbox, so that ``__init__`` is the place to look at grants and
    settings. What runs when a module is imported runs while the component is built, and sees neither.
    """

    def describe(self) -> Info:
        """What the provider says of itself. Must work without any grant."""
        return Info()

    def list_resources(self, cursor: str | None) -> Page:
        """Lists resources, a page at a time; ``Page.of`` does it for whatever can be had in a stable order."""
        return Page()

    def list_templates(self) -> Sequence[Template]:
        """Lists all templates."""
        return ()

    @abstractmethod
    def read(self, reference: str) -> Contents | Reading:
        """Reads one resource.

        The reference is well formed, but may never have been listed: raise ``NotFound`` then.
        """


class Completion(ABC):
    """For a provider that suggests values for the variables of its templates."""

    @abstractmethod
    def complete(self, template: str, argument: Argument, resolved: Mapping[str, str]) -> Suggestions:
        """Suggests values for ``argument``; ``resolved`` are the variables that have their value already."""


class Revisions(ABC):
    """For a provider that tells cheaply whether something changed. A revision is any text of at most 256 bytes."""

    @abstractmethod
    def catalog_revision(self) -> str:
        """Differs when the resources or templates that are listed differ."""

    @abstractmethod
    def resource_revision(self, reference: str) -> str:
        """Differs when reading the resource would give something else."""
