"""What a provider gives and gets, as plain data.

The fields are those of ``wit/provider.wit``, where each is described in full.
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
    """What a provider says of itself."""

    title: str | None = None
    version: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints about how a client may use a resource."""

    audience: Sequence[Literal["user", "assistant"]] = ()
    #: From 0.0 (optional) to 1.0 (as good as required).
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
    """One entry of the list: what can be read, without its contents."""

    #: What to read it by, relative to the mount and percent-encoded.
    reference: str
    #: A short name for programs and logs; the reference itself when left out.
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
    #: A short name for programs and logs; the template itself when left out.
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
    #: Where the next page starts; None on the last one. Has to hold all that is needed to go on.
    next_cursor: str | None = None

    @staticmethod
    def of(entries: Iterable[Resource], cursor: str | None, size: int = 1000) -> Page:
        """The page of at most ``size`` entries that starts at ``cursor``, the offset in decimal that a page gave.

        ``entries`` may be a generator, and is used no further than the page needs.
        """
        start = 0
        foreign = Invalid(f'the cursor "{cursor}" is not one of this provider\'s')
        if cursor is not None:
            # int() takes more than a page gives: "+1", "1_0", "٣".
            if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
                raise foreign
            start = int(cursor)
        rest = iter(entries)
        # A cursor is only given where something follows, but what followed may be gone by now.
        if sum(1 for _ in islice(rest, start)) < start:
            raise foreign
        resources = list(islice(rest, size))
        more = next(rest, None) is not None
        return Page(resources, str(start + size) if more else None)


@dataclass(frozen=True, slots=True)
class Contents:
    """One content of a reading: text is a ``str``, anything else ``bytes``."""

    #: What it is the content of: the reference that was asked for, or one below it.
    reference: str
    body: str | bytes
    mime_type: str | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)

    @staticmethod
    def from_bytes(reference: str, body: bytes, mime_type: str = "text/plain") -> Contents:
        """Text of this media type when the bytes are UTF-8, and bytes that nothing is known of otherwise."""
        try:
            return Contents(reference, body.decode(), mime_type)
        except UnicodeDecodeError:
            return Contents(reference, body, "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a resource gave."""

    #: At least one; several when the resource consists of parts.
    contents: Sequence[Contents]
    #: How long the host may serve it again without asking; None: not at all.
    fresh_for: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """A variable of a template and its value, possibly only begun."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What a value could become."""

    #: Whole values, best first.
    values: Sequence[str] = ()
    #: How many there are in all, when ``values`` does not hold all of them and the number is known.
    total: int | None = None
