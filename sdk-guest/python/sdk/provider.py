"""The interfaces of ``wit/provider.wit`` in plain Python, for the author to implement."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from . import prompts, tools
from .calls import Ask, Context, PromptInfo, PromptResult, Skill, SkillPage, ToolInfo, ToolResult
from .errors import NotFound
from .model import Argument, Contents, Info, Json, Page, Reading, Suggestions, Template
from .parts import PartialReading, Range


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

    def list_tools(self) -> Sequence[ToolInfo]:
        """Lists all tools: the methods with ``@tool``. Must work without any grant."""
        return [one.info for one in tools.definitions(type(self)).values()]

    def call_tool(
        self, name: str, arguments: Mapping[str, Json], context: Context = Context()
    ) -> ToolResult[Any] | Ask:
        """Calls a tool with arguments from JSON that fit its schema."""
        return tools.call(self, name, arguments, context)

    def list_prompts(self) -> Sequence[PromptInfo]:
        """Lists all prompts: the methods with ``@prompt``. Must work without any grant."""
        return [one.info for one in prompts.definitions(type(self)).values()]

    def get_prompt(self, name: str, arguments: Mapping[str, str], context: Context = Context()) -> PromptResult | Ask:
        """Makes the messages of a prompt."""
        return prompts.find(self, name).get(self, arguments, context)

    def complete_prompt(self, name: str, argument: Argument, resolved: Mapping[str, str] = {}) -> Suggestions:
        """Suggests values for an argument of a prompt; ``resolved`` are the arguments that already have a value."""
        return prompts.find(self, name).complete(self, argument, resolved)


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


class Parts(ABC):
    """For a provider of large resources and of directories."""

    @abstractmethod
    def read_part(self, reference: str, range: Range | None, most: int) -> PartialReading:
        """Reads a part of one resource. The host calls it in place of ``read``: without a range, both must give the same.

        Without a range, reads the whole resource if it has at most ``most`` bytes, else its first part. A part has at most
        ``most`` bytes, too, and ends at the end of a line or of a character. If the resource has no lines, or no bytes,
        raise ``Invalid``, and say what it has. ``PartialReading.cut`` cuts a part out of what ``read`` gives.
        """

    def list_below(self, reference: str, cursor: str | None) -> Page:
        """Lists the resources directly below a reference, a page at a time; ``""`` is the mount itself.

        A directory has the media type ``inode/directory``, and its reference ends with ``/``. By default, there are no
        directories.
        """
        raise NotFound(f'there is no directory "{reference}"')


class Skills(ABC):
    """For a provider of skills. ``read`` serves their files."""

    @abstractmethod
    def list_skills(self, cursor: str | None) -> SkillPage:
        """Lists skills, a page at a time."""

    def get_skill(self, root: str) -> Skill:
        """The skill with this directory. By default, one of the list; override it to serve others, too."""
        cursor = None
        while True:
            page = self.list_skills(cursor)
            for skill in page.skills:
                if skill.root == root:
                    return skill
            cursor = page.next_cursor
            if cursor is None:
                raise NotFound(f'there is no skill "{root}"')
