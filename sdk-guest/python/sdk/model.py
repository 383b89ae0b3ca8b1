"""The data that a provider receives and returns.

The fields are those of ``wit/provider.wit``, which describes each in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal

from .errors import Invalid

# Any value that json.dumps takes.
Json = Any


@dataclass(frozen=True, slots=True)
class Info:
    """The description of a provider, for people."""

    title: str | None = None
    version: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints about how a client may use a resource."""

    audience: Sequence[Literal["user", "assistant"]] = ()
    #: From 0.0 (optional) to 1.0 (effectively required).
    priority: float | None = None
    #: With a time zone; a string is RFC 3339.
    last_modified: datetime | str | None = None


@dataclass(frozen=True, slots=True)
class Icon:
    """A picture for user interfaces."""

    #: A ``data:`` or ``https:`` URI.
    src: str
    mime_type: str | None = None
    #: Each as ``48x48`` or ``any``.
    sizes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """One entry of the list: a resource without its contents."""

    #: The reference for `read`: relative to the mount and percent-encoded.
    reference: str
    #: A short name for programs and logs. By default, the reference.
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    #: In bytes.
    size: int | None = None
    annotations: Annotations | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Template:
    """A family of resources that can be read, but are not all listed."""

    #: A relative URI template (RFC 6570), such as ``cities/{name}``.
    template: str
    #: A short name for programs and logs. By default, the template.
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the list."""

    resources: Sequence[Resource] = ()
    #: The start of the next page; None on the last page. Must contain everything that the next call needs.
    next_cursor: str | None = None

    @staticmethod
    def of(entries: Iterable[Resource], cursor: str | None, size: int = 1000) -> Page:
        """The page of at most ``size`` entries that starts at ``cursor``: the offset in decimal, from an earlier page.

        ``entries`` may be a generator, and is consumed only as far as the page needs.
        """
        start = 0
        foreign = Invalid(f'the cursor "{cursor}" is not one of this provider\'s')
        if cursor is not None:
            # int() accepts texts that no page has as its cursor: "+1", "1_0", "٣".
            if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
                raise foreign
            start = int(cursor)
        rest = iter(entries)
        # The entries before the cursor may have been deleted meanwhile.
        if sum(1 for _ in islice(rest, start)) < start:
            raise foreign
        resources = list(islice(rest, size))
        more = next(rest, None) is not None
        return Page(resources, str(start + size) if more else None)


@dataclass(frozen=True, slots=True)
class Contents:
    """One content of a reading: text is a ``str``, anything else ``bytes``."""

    #: The reference of this content: the requested one, or one below it.
    reference: str
    body: str | bytes
    mime_type: str | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)

    @staticmethod
    def from_bytes(reference: str, body: bytes, mime_type: str = "text/plain") -> Contents:
        """Text of this media type if the bytes are UTF-8, and otherwise ``application/octet-stream``."""
        try:
            return Contents(reference, body.decode(), mime_type)
        except UnicodeDecodeError:
            return Contents(reference, body, "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a resource."""

    #: At least one; several when the resource consists of parts.
    contents: Sequence[Contents]
    #: How long the host may serve this reading from its cache. None: the host must not cache it.
    fresh_for: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """A variable of a template, or an argument of a prompt, and its value, possibly incomplete."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggested values of a variable or an argument."""

    #: Whole values, best first.
    values: Sequence[str] = ()
    #: The total number of values, if it is known and ``values`` does not contain all of them.
    total: int | None = None

    @staticmethod
    def starting_with(text: str, values: Iterable[str]) -> Suggestions:
        """The values that start with ``text`` in any case, at most 100."""
        start = text.casefold()
        found = [one for one in values if one.casefold().startswith(start)]
        return Suggestions(found[:100], len(found) if len(found) > 100 else None)
