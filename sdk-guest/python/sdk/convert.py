"""Converts the data of a provider to the types that the build of a component generates.

Only ``component`` imports this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from wit_world.exports import resource_provider as exported
from wit_world.imports import types as wit

from . import errors, model


def error(given: errors.ProviderError) -> wit.ProviderError:
    why = clean(str(given))
    match given:
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


def resource(one: model.Resource) -> wit.ResourceInfo:
    return wit.ResourceInfo(
        reference=clean(one.reference),
        name=clean(one.reference if one.name is None else one.name),
        title=text(one.title),
        description=text(one.description),
        mime_type=text(one.mime_type),
        size=one.size,
        annotations=hints(one.annotations),
        icons=icons(one.icons),
        meta=meta(one.meta),
    )


def template(one: model.Template) -> wit.TemplateInfo:
    return wit.TemplateInfo(
        template=clean(one.template),
        name=clean(one.template if one.name is None else one.name),
        title=text(one.title),
        description=text(one.description),
        mime_type=text(one.mime_type),
        annotations=hints(one.annotations),
        icons=icons(one.icons),
        meta=meta(one.meta),
    )


def reading(given: model.Contents | model.Reading) -> exported.Reading:
    whole = model.Reading([given]) if isinstance(given, model.Contents) else given
    return exported.Reading([contents(one) for one in whole.contents], milliseconds(whole.fresh_for))


def contents(one: model.Contents) -> wit.Contents:
    body = wit.Body_Text(clean(one.body)) if isinstance(one.body, str) else wit.Body_Blob(bytes(one.body))
    return wit.Contents(clean(one.reference), text(one.mime_type), body, meta(one.meta))


def hints(given: model.Annotations | None) -> wit.Annotations | None:
    if given is None:
        return None
    audience = [wit.Role.USER if one == "user" else wit.Role.ASSISTANT for one in given.audience]
    return wit.Annotations(audience, given.priority, time(given.last_modified))


def icons(given: Sequence[model.Icon]) -> list[wit.Icon]:
    return [wit.Icon(one.src, text(one.mime_type), list(one.sizes)) for one in given]


def meta(given: Mapping[str, model.Json]) -> list[tuple[str, str]]:
    return [(clean(key), as_json(value)) for key, value in given.items()]


def time(given: datetime | str | None) -> str | None:
    if isinstance(given, datetime):
        # A time without a zone is in UTC, the only zone of the sandbox.
        return given.isoformat() if given.tzinfo else f"{given.isoformat()}Z"
    return text(given)


def milliseconds(given: timedelta | None) -> int | None:
    return None if given is None else min(max(0, given // timedelta(milliseconds=1)), 0xFFFFFFFF)


def as_json(value: model.Json) -> str:
    """The JSON text of a value. JSON has neither NaN nor infinite numbers."""
    return clean(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def text(given: str | None) -> str | None:
    return None if given is None else clean(given)


def clean(given: str) -> str:
    """Replaces lone surrogates. They have no UTF-8 form, and would end the call without an error text."""
    return given if given.isascii() else given.encode("utf-8", "replace").decode()
