"""Connects a provider with the interfaces that a component exports.

Only the entry of a component imports this module, because it imports modules that the build of a component generates.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, TypeVar

from componentize_py_types import Err, Ok
from wit_world.exports import resource_provider as exported
from wit_world.imports import types as wit

from . import errors, model
from .provider import Completion, Provider, Revisions

T = TypeVar("T")


def resource_provider(make: Callable[[], Provider]) -> type:
    """The class ``ResourceProvider`` that the component exports. ``make`` makes the provider of each call."""

    class ResourceProvider:
        def describe(self) -> exported.ProviderInfo:
            try:
                info = make().describe()
            except Exception:
                # In the interface, describe has no error.
                traceback.print_exc(file=sys.stderr)
                info = model.Info()
            return exported.ProviderInfo(_text(info.title), _text(info.version), _text(info.description))

        def list_resources(self, cursor: str | None) -> exported.ResourcePage:
            page = _answer(lambda: make().list_resources(cursor))
            return _answer(
                lambda: exported.ResourcePage([_resource(one) for one in page.resources], _text(page.next_cursor))
            )

        def list_templates(self) -> list[wit.TemplateInfo]:
            return _answer(lambda: [_template(one) for one in make().list_templates()])

        def read(self, reference: str) -> exported.Reading:
            return _answer(lambda: _reading(make().read(reference)))

    return ResourceProvider


def completion(make: Callable[[], Completion]) -> type:
    """The class ``Completion`` of a component whose world exports it."""
    # The build generates this module only for worlds with completion.
    exported_completion = import_module("wit_world.exports.completion")

    class Completion:
        def complete(self, template: str, argument: Any, resolved: Sequence[Any]) -> Any:
            def call() -> Any:
                known = {one.name: one.value for one in resolved}
                given = make().complete(template, model.Argument(argument.name, argument.value), known)
                return exported_completion.Suggestions([_clean(value) for value in given.values], given.total)

            return _answer(call)

    return Completion


def revisions(make: Callable[[], Revisions]) -> type:
    """The class ``Revisions`` of a component whose world exports it."""

    class Revisions:
        def catalog_revision(self) -> str:
            return _answer(lambda: _clean(make().catalog_revision()))

        def resource_revisions(self, references: Sequence[str]) -> list[Any]:
            return [one(make, reference) for reference in references]

    def one(make: Callable[[], Any], reference: str) -> Any:
        try:
            return Ok(_answer(lambda: _clean(make().resource_revision(reference))))
        except Err as error:
            return error

    return Revisions


def _answer(call: Callable[[], T]) -> T:
    try:
        return call()
    except Exception as error:
        converted = errors.from_exception(error)
        if converted is not error:
            traceback.print_exc(file=sys.stderr)
        raise Err(_error(converted)) from None


def _error(error: errors.ProviderError) -> wit.ProviderError:
    why = _clean(str(error))
    match error:
        case errors.NotFound():
            return wit.ProviderError_NotFound()
        case errors.Invalid():
            return wit.ProviderError_Invalid(why)
        case errors.Denied():
            return wit.ProviderError_Denied(why)
        case errors.Unavailable():
            return wit.ProviderError_Unavailable(why)
        case _:
            return wit.ProviderError_Failed(why)


def _resource(one: model.Resource) -> wit.ResourceInfo:
    return wit.ResourceInfo(
        reference=_clean(one.reference),
        name=_clean(one.reference if one.name is None else one.name),
        title=_text(one.title),
        description=_text(one.description),
        mime_type=_text(one.mime_type),
        size=one.size,
        annotations=_annotations(one.annotations),
        icons=_icons(one.icons),
        meta=_meta(one.meta),
    )


def _template(one: model.Template) -> wit.TemplateInfo:
    return wit.TemplateInfo(
        template=_clean(one.template),
        name=_clean(one.template if one.name is None else one.name),
        title=_text(one.title),
        description=_text(one.description),
        mime_type=_text(one.mime_type),
        annotations=_annotations(one.annotations),
        icons=_icons(one.icons),
        meta=_meta(one.meta),
    )


def _reading(given: model.Contents | model.Reading) -> exported.Reading:
    reading = model.Reading([given]) if isinstance(given, model.Contents) else given
    return exported.Reading([_contents(one) for one in reading.contents], _milliseconds(reading.fresh_for))


def _contents(one: model.Contents) -> wit.Contents:
    body = wit.Body_Text(_clean(one.body)) if isinstance(one.body, str) else wit.Body_Blob(bytes(one.body))
    return wit.Contents(_clean(one.reference), _text(one.mime_type), body, _meta(one.meta))


def _annotations(given: model.Annotations | None) -> wit.Annotations | None:
    if given is None:
        return None
    audience = [wit.Role.USER if one == "user" else wit.Role.ASSISTANT for one in given.audience]
    return wit.Annotations(audience, given.priority, _time(given.last_modified))


def _icons(icons: Sequence[model.Icon]) -> list[wit.Icon]:
    return [wit.Icon(one.src, _text(one.mime_type), list(one.sizes)) for one in icons]


def _meta(meta: Mapping[str, model.Json]) -> list[tuple[str, str]]:
    return [(_clean(key), json.dumps(value)) for key, value in meta.items()]


def _time(given: datetime | str | None) -> str | None:
    if isinstance(given, datetime):
        # A time without a zone is in UTC, the only zone of the sandbox.
        return given.isoformat() if given.tzinfo else f"{given.isoformat()}Z"
    return _text(given)


def _milliseconds(time: timedelta | None) -> int | None:
    return None if time is None else min(max(0, time // timedelta(milliseconds=1)), 0xFFFFFFFF)


def _text(text: str | None) -> str | None:
    return None if text is None else _clean(text)


def _clean(text: str) -> str:
    """Replaces lone surrogates. They have no UTF-8 form, and would end the call without an error text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
