"""What a mailbox has to say of a message without reading all of it. Knows no format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

#: How much of a message is looked at for its headers; more is not a header but an attack.
HEAD = 64 << 10

#: How much of a message is read: an attachment of 8 MiB, which is the most that an answer holds, and the rest.
SOURCE = 12 << 20

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class Entry:
    """A message in a mailbox."""

    #: Names it within its mailbox, and goes on naming it when others come or go.
    id: str
    #: Where it lies in the mailbox's order, to go on from there.
    position: str
    #: The headers, as they are.
    head: bytes
    #: In bytes, as it is stored.
    size: int
    #: Reads the first SOURCE bytes of it, headers included.
    source: Callable[[], bytes]


class Mailbox(Protocol):
    """An mbox file or a Maildir."""

    def newest(self, before: str | None) -> Iterator[Entry]:
        """The messages that came last, newest first; those before a position when there is one. Reads as it goes."""

    def find(self, id: str) -> Entry | None:
        """The message of this id."""

    def mentions(self, needle: bytes) -> Iterator[Entry]:
        """The messages that have this in their headers, oldest first."""

    def revision(self) -> str:
        """Differs when the mailbox was changed."""


def head_of(start: bytes) -> bytes:
    """The headers at the start of a message."""
    end = _END_OF_HEAD.search(start)
    return start[: end.start() + 1] if end else start
