"""Prompts: methods of a provider that make the messages with which a person begins a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, overload

from . import handlers, schema
from .calls import Ask, Context, PromptArgument, PromptInfo, PromptResult, messages
from .errors import NotFound
from .model import Argument, Icon, Json, Suggestions

F = TypeVar("F", bound=Callable[..., Any])

#: All values of an argument; or a method with the text so far and the other arguments.
Suggest: TypeAlias = Sequence[str] | Callable[[Any, str, Mapping[str, str]], Sequence[str] | Suggestions]


@overload
def prompt(function: F, /) -> F: ...
@overload
def prompt(
    *,
    name: str | None = ...,
    title: str | None = ...,
    description: str | None = ...,
    suggest: Mapping[str, Suggest] | None = ...,
    icons: Sequence[Icon] = ...,
    meta: Mapping[str, Json] | None = ...,
) -> Callable[[F], F]: ...
def prompt(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    suggest: Mapping[str, Suggest] | None = None,
    icons: Sequence[Icon] = (),
    meta: Mapping[str, Json] | None = None,
) -> Any:
    """Makes a prompt of a method of a provider.

    By default, its name is that of the method, and its description is the docstring. Its arguments are texts: ``str``,
    a ``Literal`` of texts, or an ``Enum`` of texts. One with a default may be left out. An argument of the type
    ``Context`` gets the context.

    ``suggest`` has the values to suggest for arguments. Those of a ``Literal`` and an ``Enum`` are known.

    The method stays as it is, so that tests can call it. ``Provider.get_prompt`` calls it as a client does.
    """
    options = {
        "name": name,
        "title": title,
        "description": description,
        "suggest": dict(suggest or {}),
        "icons": tuple(icons),
        "meta": meta or {},
    }

    def decorate(function: F) -> F:
        handlers.mark("prompt", function, options)
        return function

    return decorate if function is None else decorate(function)


@dataclass(frozen=True, slots=True)
class Definition:
    """A prompt and the method behind it."""

    info: PromptInfo
    function: Callable[..., Any]
    arguments: schema.Shape
    suggest: Mapping[str, Suggest]
    context: str | None

    def get(self, provider: Any, arguments: Mapping[str, str], context: Context) -> PromptResult | Ask:
        """Calls the method."""
        values = self.arguments.read(dict(arguments), f'the arguments of the prompt "{self.info.name}"')
        if self.context is not None:
            values[self.context] = context
        return result(self.function(provider, **values))

    def complete(self, provider: Any, argument: Argument, resolved: Mapping[str, str]) -> Suggestions:
        """The suggestions for an argument."""
        suggest = self.suggest.get(argument.name, ())
        if not callable(suggest):
            return Suggestions.starting_with(argument.value, suggest)
        given = suggest(provider, argument.value, resolved)
        return given if isinstance(given, Suggestions) else Suggestions(given)


_known: dict[type, Mapping[str, Definition]] = {}


def definitions(provider: type) -> Mapping[str, Definition]:
    """The prompts of a class, by name. A component computes them while it is built."""
    if provider not in _known:
        marked = handlers.marked("prompt", provider)
        _known[provider] = {options["name"]: _define(function, options) for function, options in marked}
    return _known[provider]


def find(provider: Any, name: str) -> Definition:
    """A prompt of a provider by its name."""
    found = definitions(type(provider)).get(name)
    if found is None:
        raise NotFound(f'there is no prompt "{name}"')
    return found


def result(value: Any) -> PromptResult | Ask:
    """The result for what a method returned, with its messages as a sequence."""
    if isinstance(value, Ask):
        return value
    given = value if isinstance(value, PromptResult) else PromptResult(value)
    found = messages(given.messages)
    if not found:
        raise TypeError("a prompt must return at least one message")
    return PromptResult(found, given.description)


def _define(function: Callable[..., Any], options: dict[str, Any]) -> Definition:
    name = options["name"]
    signature = handlers.signature("prompt", name, function)
    fields, arguments, suggest = {}, [], {}
    for one in signature.parameters:
        where = f'the argument "{one.name}" of the prompt "{name}"'
        found = schema.member(one.annotation, one.default, where)
        if found.shape.schema.get("type") != "string":
            raise TypeError(f"{where} must be a text: str, a Literal of texts, or an Enum of texts")
        fields[one.name] = found
        arguments.append(PromptArgument(one.name, found.shape.schema.get("description"), found.required))
        if "enum" in found.shape.schema:
            suggest[one.name] = found.shape.schema["enum"]
    for unknown in options["suggest"].keys() - fields.keys():
        raise TypeError(f'the prompt "{name}" has suggestions for "{unknown}", which is not one of its arguments')
    rest = {key: value for key, value in options.items() if key != "suggest"}
    info = PromptInfo(arguments=tuple(arguments), **rest)
    shape = schema.object_shape(fields, dict)
    return Definition(info, function, shape, suggest | options["suggest"], signature.context)
