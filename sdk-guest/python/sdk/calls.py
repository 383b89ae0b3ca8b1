"""The data of tools, prompts, skills and questions.

The fields are those of ``wit/provider.wit``, which describes each in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from .model import Annotations, Contents, Icon, Json

T = TypeVar("T")

#: What a tool does: nothing but read, add something, or perhaps change or delete something.
Effect: TypeAlias = Literal["reads", "adds", "destroys"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text. A plain ``str`` is a text without annotations."""

    text: str
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, as the bytes of its file."""

    data: bytes
    #: Such as ``image/png``. The bytes must be of this type.
    mime_type: str
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound, as the bytes of its file."""

    data: bytes
    #: Such as ``audio/wav``. The bytes must be of this type.
    mime_type: str
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A resource of this provider, which the client may read if it needs to."""

    reference: str
    #: A short name for programs and logs. By default, the reference.
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    #: In bytes.
    size: int | None = None
    annotations: Annotations | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """A resource of this provider, with its contents."""

    contents: Contents
    annotations: Annotations | None = None


#: One piece of content.
Block: TypeAlias = Text | Image | Audio | Link | Embedded

#: What a handler may return as its content.
Content: TypeAlias = str | Block | Sequence[str | Block]


@dataclass(frozen=True, slots=True)
class Question:
    """A question for the person in front of the client. It must not ask for secrets."""

    #: The name of the question: letters, digits, ``_`` and ``-``.
    key: str
    #: The question, for people.
    message: str
    #: The form: a JSON Schema, or a dataclass or TypedDict with texts, numbers, booleans and enumerations as its fields.
    form: type | Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Ask:
    """One to eight questions instead of a result.

    The answers come to a new call with the same arguments, in its ``Context``.
    """

    questions: Question | Sequence[Question]
    #: What the new call must know. The host seals it, so that no client can read or change it.
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person did with a question."""

    action: Literal["accept", "decline", "cancel"]
    #: The filled form. None unless the action is ``accept``.
    content: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a call knows of its client. A handler gets it as the argument that has this type."""

    #: True if the client can ask a person. Without it, do without an answer, or raise ``Invalid``.
    can_ask: bool = False
    #: The answers to the questions of an earlier call, by the keys of the questions.
    answers: Mapping[str, Answer] = field(default_factory=dict)
    #: The state of that call.
    state: str | None = None

    def accepted(self, key: str) -> Mapping[str, Json] | None:
        """The filled form of a question. None if it was not asked, or if the person did not fill it in."""
        answer = self.answers.get(key)
        return answer.content if answer is not None and answer.action == "accept" else None


@dataclass(frozen=True, slots=True)
class View:
    """A page that shows the results of a tool."""

    #: The reference of the page: ``read`` gives HTML for it.
    page: str
    #: True if only the page may call the tool, and not the model.
    app_only: bool = False


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """The definition of a tool. ``@tool`` makes it from a method."""

    name: str
    description: str
    #: JSON Schema of the arguments.
    input: Mapping[str, Json] = field(default_factory=lambda: {"type": "object"})
    #: JSON Schema of the structured result. With it, each result must have ``structured``.
    output: Mapping[str, Json] | None = None
    title: str | None = None
    effect: Effect = "destroys"
    #: True if a second call with the same arguments changes nothing more.
    idempotent: bool = False
    #: True if it reaches beyond the mount's own data.
    open_world: bool = True
    view: View | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult(Generic[T]):
    """The result of a tool, for models (``content``) and for programs (``structured``).

    Some clients show their model only one of the two, so each must be complete. If ``content`` is empty, it becomes the
    JSON text of ``structured``.
    """

    content: Content = ()
    #: A dict, a dataclass or a TypedDict. ``-> ToolResult[T]`` makes the output schema of ``T``.
    structured: T | None = None
    #: True if the call failed in a way that the model can correct.
    is_error: bool = False
    meta: Mapping[str, Json] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The texts of the content, each on its own line."""
        return "\n".join(one.text for one in blocks(self.content) if isinstance(one, Text))


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt. Its values are texts."""

    name: str
    description: str | None = None
    required: bool = False
    title: str | None = None


@dataclass(frozen=True, slots=True)
class PromptInfo:
    """The definition of a prompt. ``@prompt`` makes it from a method."""

    name: str
    description: str
    arguments: Sequence[PromptArgument] = ()
    title: str | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    content: str | Block
    role: Literal["user", "assistant"] = "user"


@dataclass(frozen=True, slots=True)
class PromptResult:
    """The messages of a prompt, at least one. A plain ``str`` is a message of the user."""

    messages: str | Message | Sequence[str | Message]
    #: What these messages are for.
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: a directory with a ``SKILL.md``. ``read`` serves its files."""

    #: The reference of the directory, without a slash at its end.
    root: str
    #: The references of all files below the directory, ``SKILL.md`` included.
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class SkillPage:
    """One page of the list of skills."""

    skills: Sequence[Skill] = ()
    #: The start of the next page; None on the last page.
    next_cursor: str | None = None


def blocks(content: Content) -> tuple[Block, ...]:
    """The content as a sequence of blocks."""
    several = [content] if isinstance(content, str | Block) else content
    return tuple(Text(one) if isinstance(one, str) else one for one in several)


def messages(given: str | Message | Sequence[str | Message]) -> tuple[Message, ...]:
    """The messages as a sequence, each with a block."""
    several = [given] if isinstance(given, str | Message) else given
    plain = [Message(one) if isinstance(one, str) else one for one in several]
    return tuple(Message(blocks(one.content)[0], one.role) for one in plain)


def is_content(value: Any) -> bool:
    """True for a text, a block, or a list of them that is not empty."""
    if isinstance(value, str | Block):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Block | str) for one in value)
