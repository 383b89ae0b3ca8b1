"""Tools: methods of a provider that a model calls. Their annotations make the schema."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Union, overload

from . import handlers, schema
from .calls import Ask, Context, Effect, ToolInfo, ToolResult, View, blocks, is_content
from .errors import NotFound
from .model import Icon, Json

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = ...,
    title: str | None = ...,
    description: str | None = ...,
    effect: Effect = ...,
    idempotent: bool = ...,
    open_world: bool = ...,
    view: View | None = ...,
    icons: Sequence[Icon] = ...,
    meta: Mapping[str, Json] | None = ...,
) -> Callable[[F], F]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    effect: Effect = "destroys",
    idempotent: bool = False,
    open_world: bool = True,
    view: View | None = None,
    icons: Sequence[Icon] = (),
    meta: Mapping[str, Json] | None = None,
) -> Any:
    """Makes a tool of a method of a provider.

    By default, its name is that of the method, and its description is the docstring. The annotations of the arguments
    make the schema. An argument of the type ``Context`` gets the context. The return annotation makes the output schema
    if it is a dataclass, a TypedDict, a ``dict[str, T]``, or ``ToolResult`` of one of them.

    Without other options, a tool claims the worst, as in MCP: it may destroy, and reaches beyond its own data.

    The method stays as it is, so that tests can call it. ``Provider.call_tool`` calls it as a client does.
    """
    options = {
        "name": name,
        "title": title,
        "description": description,
        "effect": effect,
        "idempotent": idempotent,
        "open_world": open_world,
        "view": view,
        "icons": tuple(icons),
        "meta": meta or {},
    }

    def decorate(function: F) -> F:
        handlers.mark("tool", function, options)
        return function

    return decorate if function is None else decorate(function)


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool and the method behind it."""

    info: ToolInfo
    function: Callable[..., Any]
    arguments: schema.Shape
    context: str | None

    def call(self, provider: Any, arguments: Mapping[str, Json], context: Context) -> ToolResult[Any] | Ask:
        """Calls the method with arguments from JSON."""
        values = self.arguments.read(dict(arguments), f'the arguments of the tool "{self.info.name}"')
        if self.context is not None:
            values[self.context] = context
        return result(self.function(provider, **values))


_known: dict[type, Mapping[str, Definition]] = {}


def definitions(provider: type) -> Mapping[str, Definition]:
    """The tools of a class, by name. A component computes them while it is built."""
    if provider not in _known:
        marked = handlers.marked("tool", provider)
        _known[provider] = {options["name"]: _define(function, options) for function, options in marked}
    return _known[provider]


def call(provider: Any, name: str, arguments: Mapping[str, Json], context: Context) -> ToolResult[Any] | Ask:
    """Calls a tool of a provider by its name."""
    found = definitions(type(provider)).get(name)
    if found is None:
        raise NotFound(f'there is no tool "{name}"')
    return found.call(provider, arguments, context)


def result(value: Any) -> ToolResult[Any] | Ask:
    """The result for what a method returned: its content as blocks, and its structured part as JSON."""
    if isinstance(value, Ask):
        return value
    if isinstance(value, ToolResult):
        given = value
    elif value is None:
        given = ToolResult("Done.")
    elif is_content(value):
        given = ToolResult(value)
    elif _is_object(value):
        given = ToolResult(structured=value)
    else:
        given = ToolResult(_text(schema.to_json(value)))
    if given.structured is None:
        return dataclasses.replace(given, content=blocks(given.content))
    if not _is_object(given.structured):
        kind = type(given.structured).__name__
        raise TypeError(f'a structured result must be a dict, a dataclass or a TypedDict, not "{kind}"')
    structured = schema.to_json(given.structured)
    return dataclasses.replace(given, content=blocks(given.content or _text(structured)), structured=structured)


def _define(function: Callable[..., Any], options: Mapping[str, Any]) -> Definition:
    name = options["name"]
    signature = handlers.signature("tool", name, function)
    where = f'the tool "{name}"'
    fields = {
        one.name: schema.member(one.annotation, one.default, f'{where}, argument "{one.name}"')
        for one in signature.parameters
    }
    arguments = schema.object_shape(fields, dict)
    # A misspelled argument is an error that the model can correct.
    info = ToolInfo(
        input=arguments.schema | {"additionalProperties": False},
        output=_output(signature.returns, f"{where}, result"),
        **options,
    )
    return Definition(info, function, arguments, signature.context)


def _output(annotation: Any, where: str) -> dict[str, Json] | None:
    """The output schema of a return annotation, if it says what the structured result has."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        rest = [one for one in args if one is not Ask]
        return _output(rest[0], where) if len(rest) == 1 else None
    if origin is ToolResult:
        return _output(args[0], where)
    if annotation in (ToolResult, Context, Any) or _is_block_type(annotation):
        return None
    is_class = isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
    is_dict = origin in (dict, Mapping) and args[1] is not Any
    if is_class or is_dict or typing.is_typeddict(annotation):
        return schema.shape(annotation, where).schema
    return None


def _is_block_type(annotation: Any) -> bool:
    """True for the types of content, which are dataclasses, too."""
    return isinstance(annotation, type) and annotation.__module__ == ToolResult.__module__


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
