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
from io import FileIO

from belljar_guest import Invalid, Unavailable

from .entry import HEAD, SOURCE, Entry, head_of
from .separator import AFTER, BEFORE, LINE, first, is_separator

_CHUNK = 1 << 20
#: The bytes of a message that are read first for its headers.
_SHORT = 8 << 10
#: The most blank lines and other bytes before the first message that are skipped, in bytes.
_START = 4 << 10
#: How long a message is searched for if it is no longer at the offset in its id, and how long the messages that mention it are
#: searched for, in seconds.
_SEARCH = 2.0

_MESSAGE_ID = re.compile(rb"^message-id:\s*(<[^>\n]*>)", re.IGNORECASE | re.MULTILINE)
_MOZILLA = re.compile(rb"^x-mozilla-status:[ \t]*([0-9a-f]{4})\b", re.IGNORECASE | re.MULTILINE)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_ID = re.compile(r"(\d{1,15})-([0-9a-f]{12})")


def is_mbox(path: str) -> bool:
    """True if a regular file is an mbox file. An empty file could be of any kind, so its name decides."""
    with open(path, "rb", 0) as file:
        block = file.read(_START)
    if not block.strip():
        # Thunderbird keeps an index beside each mbox file.
        return path.endswith((".mbox", ".mbx")) or (not block and os.path.isfile(f"{path}.msf"))
    return first(block) is not None


class Mbox:
    """An mbox file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = os.path.getsize(path)
        #: True if a search ended before the end of the file.
        self.is_unfinished = False

    def newest(self, before: str | None) -> Iterator[Entry]:
        end = self.size
        if before is not None:
            if not (before.isascii() and before.isdecimal() and len(before) < 16):
                raise Invalid(f'"before" is "{before}": expected the position of a message in an mbox file, a number')
            end = min(int(before), self.size)
        with open(self.path, "rb", 0) as file:
            for start in _starts_backwards(file, end):
                yield self._entry(file, start, end)
                end = start

    def find(self, id: str) -> Entry | None:
        matched = _ID.fullmatch(id)
        if matched is None:
            return None
        start = int(matched[1])
        with open(self.path, "rb", 0) as file:
            if start < self.size and (entry := self._entry_at(file, start)) is not None and entry.id == id:
                return entry
            # An earlier message was deleted, or the file was rewritten in another order.
            deadline = time.monotonic() + _SEARCH
            for start, end in self._all(file):
                entry = self._entry(file, start, end)
                if entry.id.endswith(matched[2]):
                    return entry
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"the mailbox was rewritten, and the message was not found in its first {end >> 20} MiB; "
                        "list the mailbox again for the new references"
                    )
        return None

    def mentions(self, needle: bytes) -> Iterator[Entry]:
        deadline = time.monotonic() + _SEARCH
        with open(self.path, "rb", 0) as file:
            at = 0
            while (found := _find(file, needle, at, deadline)) is not None:
                start = next(_starts_backwards(file, found), None)
                entry = self._entry_at(file, start) if start is not None else None
                if entry is None or needle not in entry.head:
                    at = found + len(needle)
                    continue
                yield entry
                at = int(entry.position) + entry.size
            self.is_unfinished = time.monotonic() > deadline

    def revision(self) -> str:
        status = os.stat(self.path)
        return f"{status.st_size}-{status.st_mtime_ns}"

    def _all(self, file: FileIO) -> Iterator[tuple[int, int]]:
        file.seek(0)
        start = first(file.read(_START))
        while start is not None and start < self.size:
            end = _end(file, start, self.size)
            yield start, end
            start = end

    def _entry_at(self, file: FileIO, start: int) -> Entry | None:
        """The message that begins at ``start``, if one does. Most messages are small, and need one read."""
        low = max(start - BEFORE, 0)
        file.seek(low)
        block = file.read(HEAD + BEFORE)
        at = start - low
        if not _is_start(block, at, low):
            return None
        end = _next(block, at + 1, len(block) - AFTER if len(block) == HEAD + BEFORE else len(block), low)
        if end is None and low + len(block) >= self.size:
            end = self.size
        if end is not None and end - low <= len(block):
            return self._made(start, end, block[at : end - low], True)
        return self._made(start, _end(file, start, self.size), block[at:], False)

    def _entry(self, file: FileIO, start: int, end: int) -> Entry:
        # The headers of most messages are short, and a page has fifty.
        for size in (_SHORT, HEAD):
            file.seek(start)
            block = _read(file, min(end - start, size))
            if len(block) < size or b"\n\n" in block or b"\r\n\r\n" in block:
                break
        return self._made(start, end, block, False)

    def _made(self, start: int, end: int, block: bytes, is_whole: bool) -> Entry:
        """The entry of a message that begins with ``block``."""
        line = _line_end(block)
        stored = block[line:]
        head = head_of(stored)
        named = _MESSAGE_ID.search(head)
        digest = hashlib.sha256(named[1] if named else head).hexdigest()[:12]
        status = _MOZILLA.search(head, 0, 400) if b"X-Mozilla-Status" in head else None
        source = partial(_unquoted, stored) if is_whole else partial(self._source, start, end)
        # Thunderbird marks a deleted message, and removes it when it compacts the folder.
        is_deleted = status is not None and bool(int(status[1], 16) & 8)
        piece = partial(self._piece, start, end)
        return Entry(f"{start}-{digest}", str(start), head, end - start, end - start - line, source, piece, is_deleted)

    def _source(self, start: int, end: int) -> bytes:
        with open(self.path, "rb", 0) as file:
            file.seek(start)
            stored = _read(file, min(end - start, SOURCE + LINE))
        return _unquoted(stored[_line_end(stored) :][:SOURCE])


    def _piece(self, message: int, end: int, start: int, stop: int) -> bytes:
        with open(self.path, "rb", 0) as file:
            file.seek(message)
            first_byte = message + _line_end(file.read(LINE))
            file.seek(first_byte + start)
            return _read(file, max(min(first_byte + stop, end) - first_byte - start, 0))


def _read(file: FileIO, size: int) -> bytes:
    """Reads ``size`` bytes, or to the end of the file."""
    pieces = []
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _line_end(block: bytes) -> int:
    """The offset after the separator line."""
    feed, carriage = block.find(b"\n", 0, LINE), block.find(b"\r", 0, LINE)
    if carriage >= 0 and feed != carriage + 1 and (feed < 0 or carriage < feed):
        return carriage + 1
    return feed + 1 if feed >= 0 else len(block)


def _unquoted(stored: bytes) -> bytes:
    # Few messages have quoted lines, and a search by lines takes forty times as long as one by bytes.
    return _QUOTED.sub(rb"\1", stored) if b">From " in stored else stored


def _is_start(block: bytes, at: int, low: int) -> bool:
    """True if a message begins at ``at`` of a block, which is at ``low`` in the file."""
    if low == 0 and at < _START and first(block) == at:
        return True
    return at > 0 and block[at - 1 : at] in (b"\n", b"\r") and is_separator(block, at, False)


def _next(block: bytes, at: int, limit: int, low: int) -> int | None:
    """The offset in the file of the first message from ``at`` of the block, before ``limit``."""
    while (found := block.find(b"\nFrom ", max(at - 1, 0), limit)) >= 0:
        if _is_start(block, found + 1, low):
            return low + found + 1
        at = found + 2
    return None


def _starts_backwards(file: FileIO, end: int) -> Iterator[int]:
    """The offsets of the messages that start before ``end``, from the last to the first."""
    top = end
    # Most callers need the last messages only.
    chunk = min(_CHUNK, 128 << 10)
    while top > 0:
        bottom = max(top - chunk, 0)
        chunk = _CHUNK
        # Each block includes the bytes that decide whether its first and last lines begin messages.
        low = max(bottom - BEFORE, 0)
        file.seek(low)
        block = _read(file, top - low + AFTER)
        limit = top - low
        start = bottom - low
        while (at := block.rfind(b"\nFrom ", max(start - 1, 0), limit + 5)) >= 0:
            if at + 1 < limit and _is_start(block, at + 1, low):
                yield low + at + 1
            limit = at
        if low == 0 and (at_first := first(block[:_START])) is not None and at_first < min(limit, top):
            if at_first == 0 or block[at_first - 1 : at_first] != b"\n":
                yield at_first
        top = bottom


def _end(file: FileIO, start: int, size: int) -> int:
    """The end of the message at ``start``: the start of the next message, or the end of the file."""
    at = start + 1
    chunk = 16 << 10
    while at < size:
        low = max(at - BEFORE, 0)
        file.seek(low)
        block = _read(file, chunk + BEFORE + AFTER)
        is_last = low + len(block) >= size
        limit = len(block) if is_last else len(block) - AFTER
        found = _next(block, at - low, limit, low)
        if found is not None:
            return found
        if is_last:
            break
        at = low + limit - len(b"\nFrom ") + 1
        chunk = min(chunk * 4, _CHUNK)
    return size


def _find(file: FileIO, needle: bytes, at: int, deadline: float) -> int | None:
    """The first offset of the needle from ``at``. None after the deadline."""
    # Starts with small blocks, because most messages are small.
    chunk = 16 << 10
    while time.monotonic() <= deadline:
        file.seek(at)
        block = _read(file, chunk)
        found = block.find(needle)
        if found >= 0:
            return at + found
        if len(block) < chunk:
            return None
        at += chunk - len(needle) + 1
        chunk = min(chunk * 4, _CHUNK)
    return None
