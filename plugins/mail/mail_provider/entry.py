"""The interface of a mailbox: entries with the headers of a message, without its body. Independent of the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

#: How many bytes of a message are searched for its headers. Longer headers are an attack.
HEAD = 64 << 10

#: How many bytes of a message are read. Enough for an attachment of 8 MiB in base64: 8 MiB is the limit of an answer.
SOURCE = 12 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A message in a mailbox."""

    #: Identifies the message within its mailbox. Does not change when other messages arrive or disappear.
    id: str
    #: The position in the order of the mailbox, from which a page can continue.
    position: str
    #: The raw headers.
    head: bytes
    #: The size in the mailbox, in bytes.
    size: int
    #: The size of the message itself, in bytes.
    stored: int
    #: Reads the first SOURCE bytes of the message, headers included.
    source: Callable[[], bytes]
    #: Reads the stored bytes of a range, of any message.
    piece: Callable[[int, int], bytes]
    #: True if the mail program marked the message as deleted, and has not removed it yet.
    is_deleted: bool = False


class Mailbox(Protocol):
    """An mbox file, or a directory with a file for each message."""

    #: True if ``mentions`` stopped before it had searched the whole mailbox.
    is_unfinished: bool

    def newest(self, before: str | None) -> Iterator[Entry]:
        """The messages from the newest to the oldest, or only those before a position. Reads lazily."""

    def find(self, id: str) -> Entry | None:
        """The message with this id."""

    def mentions(self, needle: bytes) -> Iterator[Entry]:
        """The messages whose headers contain ``needle``, oldest first."""

    def revision(self) -> str:
        """A text that changes when the mailbox changes."""


def head_of(start: bytes) -> bytes:
    """The headers at the start of a message."""
    unix, windows = start.find(b"\n\n"), start.find(b"\n\r\n")
    ends = [end for end in (unix, windows, start.find(b"\r\r")) if end >= 0]
    return start[: min(ends) + 1] if ends else start
