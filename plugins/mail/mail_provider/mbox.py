"""mbox files: a sequence of messages, each after a separator line that begins with "From ".

No function reads a whole file. The newest messages are found from its end, and the id of a message contains its offset.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from belljar_guest import Invalid

from .entry import HEAD, SOURCE, Entry, head_of

_CHUNK = 1 << 20
#: The longest separator line, in bytes.
_LINE = 1 << 10
#: How long a message is searched for if it is no longer at the offset in its id, in seconds.
_SEARCH = 2.0

# A separator line must end in a date. Otherwise a paragraph that begins with "From " would end the message, because some
# programs do not quote such lines.
_SEPARATOR = re.compile(rb"From [^\n]*\d:\d\d[^\n]*\r?(?:\n|$)")
_MESSAGE_ID = re.compile(rb"^message-id:\s*(<[^>\n]*>)", re.IGNORECASE | re.MULTILINE)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_ID = re.compile(r"(\d{1,15})-([0-9a-f]{12})")


def is_mbox(path: str) -> bool:
    """True if a regular file is an mbox file. An empty file is not, because it could be of any kind."""
    with open(path, "rb") as file:
        return _SEPARATOR.match(file.read(_LINE)) is not None


class Mbox:
    """An mbox file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = os.path.getsize(path)

    def newest(self, before: str | None) -> Iterator[Entry]:
        end = self.size
        if before is not None:
            if not (before.isascii() and before.isdecimal() and len(before) < 16):
                raise Invalid(f'"before" is "{before}": expected the position of a message in an mbox file, a number')
            end = min(int(before), self.size)
        with open(self.path, "rb") as file:
            for start in _starts_backwards(file, end):
                yield self._entry(file, start, end)
                end = start

    def find(self, id: str) -> Entry | None:
        matched = _ID.fullmatch(id)
        if matched is None:
            return None
        start = int(matched[1])
        with open(self.path, "rb") as file:
            if _is_start(file, start):
                entry = self._entry(file, start, _end(file, start, self.size))
                if entry.id == id:
                    return entry
            # An earlier message was deleted, or the file was rewritten in another order.
            deadline = time.monotonic() + _SEARCH
            for start, end in self._all(file):
                entry = self._entry(file, start, end)
                if entry.id.endswith(matched[2]):
                    return entry
                if time.monotonic() > deadline:
                    break
        return None

    def mentions(self, needle: bytes) -> Iterator[Entry]:
        with open(self.path, "rb") as file:
            at = 0
            while (found := _find(file, needle, at)) is not None:
                start = next(_starts_backwards(file, found), None)
                if start is None:
                    at = found + len(needle)
                    continue
                entry = self._entry(file, start, _end(file, start, self.size))
                if needle in entry.head:
                    yield entry
                    at = start + entry.size
                else:
                    at = found + len(needle)

    def revision(self) -> str:
        status = os.stat(self.path)
        return f"{status.st_size}-{status.st_mtime_ns}"

    def _all(self, file: BinaryIO) -> Iterator[tuple[int, int]]:
        start = 0
        while start < self.size:
            end = _end(file, start, self.size)
            yield start, end
            start = end

    def _entry(self, file: BinaryIO, start: int, end: int) -> Entry:
        file.seek(start)
        block = file.read(min(end - start, HEAD))
        head = head_of(block[block.find(b"\n") + 1 :])
        named = _MESSAGE_ID.search(head)
        digest = hashlib.sha256(named[1] if named else head).hexdigest()[:12]
        return Entry(f"{start}-{digest}", str(start), head, end - start, partial(self._source, start, end))

    def _source(self, start: int, end: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(start)
            file.readline(_LINE)
            stored = file.read(min(end - file.tell(), SOURCE))
        # Few messages have quoted lines, and a search by lines takes forty times as long as one by bytes.
        return _QUOTED.sub(rb"\1", stored) if b">From " in stored else stored


def _is_start(file: BinaryIO, at: int) -> bool:
    file.seek(max(at - 1, 0))
    line = file.read(_LINE + 1)
    if at > 0:
        if line[:1] != b"\n":
            return False
        line = line[1:]
    return _SEPARATOR.match(line) is not None


def _starts_backwards(file: BinaryIO, end: int) -> Iterator[int]:
    """The offsets of the messages that start before ``end``, from the last to the first."""
    top = end
    while top > 0:
        bottom = max(top - _CHUNK, 0)
        # Each block includes the line feed before its first line, and the rest of its last line.
        low = max(bottom - 1, 0)
        file.seek(low)
        block = file.read(top - low + _LINE)
        limit = top - low
        while (at := block.rfind(b"\nFrom ", 0, limit + 5)) >= 0:
            if at + 1 < limit and _SEPARATOR.match(block, at + 1):
                yield low + at + 1
            limit = at
        if low == 0 and _SEPARATOR.match(block):
            yield 0
        top = bottom


def _end(file: BinaryIO, start: int, size: int) -> int:
    """The end of the message at ``start``: the start of the next message, or the end of the file."""
    at = start + 1
    while (found := _find(file, b"\nFrom ", at)) is not None:
        if _is_start(file, found + 1):
            return found + 1
        at = found + 1
    return size


def _find(file: BinaryIO, needle: bytes, at: int) -> int | None:
    """The first offset of the needle from ``at``."""
    # Starts with small blocks, because most messages are small.
    chunk = 16 << 10
    while True:
        file.seek(at)
        block = file.read(chunk)
        found = block.find(needle)
        if found >= 0:
            return at + found
        if len(block) < chunk:
            return None
        at += chunk - len(needle) + 1
        chunk = min(chunk * 4, _CHUNK)
