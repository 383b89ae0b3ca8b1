"""JSON Schemas of annotated types, and Python values of these types from JSON.

The host checks arguments against the schema before a call. The conversion here makes Python's types of them, and
refuses what has another type.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Required, TypeAlias, Union

from .errors import Invalid
from .model import Json

_SUPPORTED = (
    "str, int, float, bool, None, Any, Literal, an Enum, list, dict with texts as its keys, a dataclass, a TypedDict, "
    "or a union of these"
)

# The keywords for "min" and "max" by the type of a schema.
_LIMITS = {
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a schema says of a value beside its type: ``Annotated[int, Field(min=1, max=12)]``.

    A plain text does for a description: ``Annotated[int, "The number of the month."]``.
    """

    description: str | None = None
    #: The smallest number, the shortest length of a text, or the fewest items of a list.
    min: float | None = None
    #: The largest number, the longest length of a text, or the most items of a list.
    max: float | None = None
    #: A regular expression that a text must match.
    pattern: str | None = None
    #: The format of a text, such as ``email``, ``uri``, ``date`` or ``date-time``.
    format: str | None = None


#: Makes a Python value of a JSON value. The text names the value in an error.
Read: TypeAlias = Callable[[Json, str], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The schema of a type, and the conversion from JSON to it."""

    schema: dict[str, Json]
    read: Read


@dataclass(frozen=True, slots=True)
class Member:
    """A field of an object."""

    shape: Shape
    required: bool


def shape(annotation: Any, where: str, outer: tuple[Any, ...] = ()) -> Shape:
    """The shape of a type. ``where`` names it in an error; ``outer`` are the classes that contain it."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _with_metadata(shape(args[0], where, outer), args[1:], where)
    if origin in (Required, NotRequired):
        return shape(args[0], where, outer)
    if annotation in _PLAIN:
        name, kind = _PLAIN[annotation]
        return Shape({"type": name}, _reader(annotation, kind))
    if annotation is Any:
        return Shape({}, lambda value, _: value)
    if origin is Literal:
        return _choice({value: value for value in args})
    if origin in (Union, types.UnionType):
        return _union([shape(one, where, outer) for one in args])
    container = origin or annotation
    if container in (list, Sequence):
        return _list(shape(args[0] if args else Any, where, outer))
    if container in (dict, Mapping) and args[:1] in ((), (str,)):
        return _dict(shape(args[1] if args else Any, where, outer), has_type=bool(args) and args[1] is not Any)
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return _choice({one.value: one for one in annotation})
        if annotation in outer:
            raise TypeError(f'{where}: "{annotation.__name__}" contains itself, which a schema cannot say here')
        if typing.is_typeddict(annotation) or dataclasses.is_dataclass(annotation):
            make = dict if typing.is_typeddict(annotation) else annotation
            return object_shape(members(annotation, where, outer), make)
    raise TypeError(f'{where}: "{annotation}" has no schema: use {_SUPPORTED}')


def members(annotation: type, where: str, outer: tuple[Any, ...] = ()) -> dict[str, Member]:
    """The fields of a dataclass or a TypedDict."""
    found = {}
    for name, hint in typing.get_type_hints(annotation, include_extras=True).items():
        inner = f'{where}, "{name}"'
        if dataclasses.is_dataclass(annotation):
            declared = annotation.__dataclass_fields__.get(name)
            if declared is None or not declared.init:
                continue
            default = REQUIRED if declared.default is dataclasses.MISSING else declared.default
            found[name] = member(hint, default, inner, (*outer, annotation))
            if declared.default_factory is not dataclasses.MISSING:
                found[name] = Member(found[name].shape, required=False)
        else:
            required = name in getattr(annotation, "__required_keys__", ())
            found[name] = Member(shape(hint, inner, (*outer, annotation)), required)
    return found


#: Stands for the default of a member that has none.
REQUIRED: Any = object()


def member(annotation: Any, default: Any, where: str, outer: tuple[Any, ...] = ()) -> Member:
    """The shape of a member with its default. If that is None, the member may be left out, and is not null."""
    if default is REQUIRED:
        return Member(shape(annotation, where, outer), required=True)
    if default is None:
        return Member(shape(_without_none(annotation), where, outer), required=False)
    found = shape(annotation, where, outer)
    return Member(Shape(found.schema | {"default": to_json(default)}, found.read), required=False)


def object_shape(fields: Mapping[str, Member], make: Callable[..., Any]) -> Shape:
    """The shape of an object whose members are the arguments of ``make``."""
    schema: dict[str, Json] = {"type": "object", "properties": {name: one.shape.schema for name, one in fields.items()}}
    required = [name for name, one in fields.items() if one.required]
    if required:
        schema["required"] = required

    def read(value: Json, name: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(name, "an object", value)
        for key, one in fields.items():
            if one.required and key not in value:
                raise Invalid(f'"{key}" of {name} is missing')
        return make(**{key: one.shape.read(value[key], f'"{key}"') for key, one in fields.items() if key in value})

    return Shape(schema, read)


def form_schema(form: type | Mapping[str, Json], where: str) -> Mapping[str, Json]:
    """The schema of the form of a question."""
    return form if isinstance(form, Mapping) else shape(form, where).schema


def to_json(value: Any) -> Json:
    """The JSON value of a Python value: a dataclass is an object, an enumeration is its value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return to_json(value.value)
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(one) for one in value]
    return value


# The plain types: the name in a schema, and the words for an error.
_PLAIN: dict[Any, tuple[str, str]] = {
    str: ("string", "a text"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    types.NoneType: ("null", "null"),
    None: ("null", "null"),
}


def _reader(kind: Any, words: str) -> Read:
    def read(value: Json, name: str) -> Any:
        # In Python a bool is an int; in JSON it is not. JSON has one kind of number: 2.0 is a whole number.
        if kind in (int, float) and not isinstance(value, bool):
            if isinstance(value, int) or (isinstance(value, float) and (kind is float or value.is_integer())):
                return kind(value)
        elif type(value) is (types.NoneType if kind is None else kind):
            return value
        raise _wrong(name, words, value)

    return read


def _choice(choices: Mapping[Any, Any]) -> Shape:
    values = list(choices)
    kinds = {type(value) for value in values}
    schema: dict[str, Json] = {"enum": values}
    if len(kinds) == 1 and (kind := kinds.pop()) in _PLAIN:
        schema = {"type": _PLAIN[kind][0], "enum": values}

    def read(value: Json, name: str) -> Any:
        for one, chosen in choices.items():
            # 1 == True in Python.
            if type(one) is type(value) and one == value:
                return chosen
        raise _wrong(name, f"one of {', '.join(str(one) for one in values)}", value)

    return Shape(schema, read)


def _union(shapes: list[Shape]) -> Shape:
    kinds = ", ".join(str(one.schema.get("type", "enum")) for one in shapes)

    def read(value: Json, name: str) -> Any:
        for one in shapes:
            try:
                return one.read(value, name)
            except Invalid:
                continue
        raise _wrong(name, f"of one of the types {kinds}", value)

    return Shape({"anyOf": [one.schema for one in shapes]}, read)


def _list(item: Shape) -> Shape:
    def read(value: Json, name: str) -> Any:
        if not isinstance(value, list):
            raise _wrong(name, "a list", value)
        return [item.read(one, f"item {at} of {name}") for at, one in enumerate(value, 1)]

    return Shape({"type": "array", "items": item.schema} if item.schema else {"type": "array"}, read)


def _dict(item: Shape, *, has_type: bool) -> Shape:
    def read(value: Json, name: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(name, "an object", value)
        return {key: item.read(one, f'"{key}" of {name}') for key, one in value.items()}

    return Shape({"type": "object", "additionalProperties": item.schema} if has_type else {"type": "object"}, read)


def _with_metadata(found: Shape, metadata: Sequence[Any], where: str) -> Shape:
    added: dict[str, Json] = {}
    for one in metadata:
        field = Field(description=one) if isinstance(one, str) else one
        # Annotations may have metadata of others.
        if not isinstance(field, Field):
            continue
        for name in ("description", "pattern", "format"):
            if getattr(field, name) is not None:
                added[name] = getattr(field, name)
        for at, limit in enumerate((field.min, field.max)):
            if limit is None:
                continue
            keywords = _LIMITS.get(str(found.schema.get("type")))
            if keywords is None:
                raise TypeError(f'{where}: "min" and "max" are for numbers, texts and lists')
            added[keywords[at]] = limit
    return Shape(found.schema | added, found.read)


def _without_none(annotation: Any) -> Any:
    """The annotation without None as one of its choices."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return Annotated[(_without_none(args[0]), *args[1:])]
    if origin in (Union, types.UnionType):
        rest = tuple(one for one in args if one is not types.NoneType)
        return Union[rest] if rest else annotation
    return annotation


def _wrong(name: str, expected: str, value: Json) -> Invalid:
    shown = str(value)
    return Invalid(f'{name} must be {expected}, not "{shown if len(shown) <= 80 else shown[:80] + "..."}"')
