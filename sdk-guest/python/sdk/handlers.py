"""What tools and prompts have in common: methods of a provider that a decorator marks."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .calls import Context
from .schema import REQUIRED

_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a handler. Its default is ``REQUIRED`` if it has none."""

    name: str
    annotation: Any
    default: Any


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler takes and returns."""

    parameters: tuple[Parameter, ...]
    #: The name of the parameter that gets the context.
    context: str | None
    returns: Any


def mark(kind: Literal["tool", "prompt"], function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Marks a method with the options of its decorator. Refuses what cannot be a handler."""
    name = options["name"] or function.__name__
    if not _NAME.fullmatch(name):
        raise TypeError(f'the name of the {kind} "{name}" must be 1 to 48 of the characters A-Z a-z 0-9 _ -')
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f'the {kind} "{name}" must be a plain method: remove "async" or "yield"')
    # The docstring describes the method to its readers, and the handler to models and people.
    description = options["description"] or inspect.getdoc(function)
    if not description:
        raise TypeError(f'the {kind} "{name}" has no description: write a docstring')
    setattr(function, f"_belljar_{kind}", {**options, "name": name, "description": description})


def marked(kind: Literal["tool", "prompt"], provider: type) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """The marked methods of a class with their options, in the order of their definition."""
    names = dict.fromkeys(name for one in reversed(provider.__mro__) for name in vars(one))
    used: dict[str, str] = {}
    for name in names:
        function = inspect.getattr_static(provider, name)
        # A static method does not have the attributes of its function.
        attribute = f"_belljar_{kind}"
        options = getattr(function, attribute, None) or getattr(getattr(function, "__wrapped__", None), attribute, None)
        if options is None:
            continue
        if not inspect.isfunction(function):
            raise TypeError(f'the {kind} "{options["name"]}" must be a plain method: remove the other decorators')
        if other := used.get(options["name"]):
            raise TypeError(f'"{other}" and "{name}" are both the {kind} "{options["name"]}": rename one')
        used[options["name"]] = name
        yield function, options


def signature(kind: Literal["tool", "prompt"], name: str, function: Callable[..., Any]) -> Signature:
    """The signature of a handler, without ``self``."""
    hints = typing.get_type_hints(function, include_extras=True)
    parameters, context = [], None
    for one in list(inspect.signature(function).parameters.values())[1:]:
        where = f'the argument "{one.name}" of the {kind} "{name}"'
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise TypeError(f'{where} has no name for callers: remove "*", "**" or "/"')
        if one.name not in hints:
            raise TypeError(f'{where} has no type: write "{one.name}: str", or another type')
        if hints[one.name] is Context:
            context = one.name
            continue
        default = REQUIRED if one.default is one.empty else one.default
        parameters.append(Parameter(one.name, hints[one.name], default))
    return Signature(tuple(parameters), context, hints.get("return", Any))
