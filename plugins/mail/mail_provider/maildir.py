"""Mailboxes with a file for each message: Maildirs, MH directories, and directories of .eml and .emlx files."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from functools import partial

from .entry import HEAD, SOURCE, Entry, head_of

#: The files of Apple Mail begin with a line that has the length of the message.
_APPLE = ".emlx"
_SUFFIXES = (".eml", _APPLE, ".mht", ".mhtml")
#: How long the messages that mention another are searched for, in seconds.
_SEARCH = 2.0


def is_maildir(path: str) -> bool:
    """True if a directory is a Maildir."""
    return os.path.isdir(os.path.join(path, "cur")) and os.path.isdir(os.path.join(path, "new"))


class Files:
    """A mailbox with a file for each message."""

    def __init__(self, path: str) -> None:
        self.path = path
        #: True if ``mentions`` stopped before it had searched the whole mailbox.
        self.is_unfinished = False

    def newest(self, before: str | None) -> Iterator[Entry]:
        limit = None if before is None else self.order(before)
        for unique, path in sorted(self.files(), key=lambda file: self.order(file[0]), reverse=True):
            if limit is None or self.order(unique) < limit:
                yield from self._entry(unique, path)

    def find(self, id: str) -> Entry | None:
        for unique, path in self.files():
            if unique == id:
                return next(self._entry(unique, path), None)
        return None

    def mentions(self, needle: bytes) -> Iterator[Entry]:
        deadline = time.monotonic() + _SEARCH
        for unique, path in sorted(self.files(), key=lambda file: self.order(file[0])):
            if time.monotonic() > deadline:
                self.is_unfinished = True
                return
            for entry in self._entry(unique, path):
                if needle in entry.head:
                    yield entry

    def revision(self) -> str:
        names = sorted(path for _, path in self.files())
        return hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()[:32]

    def files(self) -> Iterator[tuple[str, str]]:
        """The unique name and the path of each message, in no particular order."""
        raise NotImplementedError

    def order(self, unique: str) -> tuple[float, str]:
        """The sort key of a message."""
        raise NotImplementedError

    def _entry(self, unique: str, path: str) -> Iterator[Entry]:
        """The entry of a message. Nothing if the file has gone."""
        try:
            with open(path, "rb", 0) as file:
                start = file.read(HEAD)
                size = os.fstat(file.fileno()).st_size
        except (FileNotFoundError, IsADirectoryError):
            # The file was moved from `new` to `cur` meanwhile, or is not a message.
            return
        whole = None
        if size <= len(start):
            whole = start
        if path.endswith(_APPLE):
            length, start = _apple(start)
            size = size if length is None else length
            whole = None if whole is None else start[:size]
        source = partial(_source, path) if whole is None else partial(bytes, whole)
        yield Entry(unique, unique, head_of(start), size, size, source, partial(_piece, path))


class Maildir(Files):
    """A Maildir."""

    def files(self) -> Iterator[tuple[str, str]]:
        for part in ("new", "cur"):
            directory = os.path.join(self.path, part)
            for name in os.listdir(directory):
                if not name.startswith("."):
                    # The rest of the name is a set of flags, such as "seen". Windows does not allow the colon.
                    yield name.partition(":")[0].partition(";2,")[0], os.path.join(directory, name)

    def order(self, unique: str) -> tuple[float, str]:
        # The name begins with the time of delivery, in seconds since 1970.
        seconds = unique.partition(".")[0]
        return (int(seconds) if seconds.isascii() and seconds.isdecimal() else 0, unique)


class Numbered(Files):
    """An MH directory: the name of each message is its number."""

    def files(self) -> Iterator[tuple[str, str]]:
        for name in os.listdir(self.path):
            if is_number(name):
                yield name, os.path.join(self.path, name)

    def order(self, unique: str) -> tuple[float, str]:
        return (int(unique) if is_number(unique) else 0, unique)


class Named(Files):
    """A directory of .eml or .emlx files, sorted by the time of their last change."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._times: dict[str, float] = {}

    def files(self) -> Iterator[tuple[str, str]]:
        for entry in os.scandir(self.path):
            if is_message(entry.name):
                yield entry.name, entry.path

    def order(self, unique: str) -> tuple[float, str]:
        if unique not in self._times:
            try:
                # Listing the messages must not read them all, so their dates are not known.
                self._times[unique] = os.stat(os.path.join(self.path, unique)).st_mtime
            except OSError:
                self._times[unique] = 0.0
        return (self._times[unique], unique)


def is_number(name: str) -> bool:
    """True if a file name is one of MH."""
    return name.isascii() and name.isdecimal() and not name.startswith("0") and len(name) < 10


def is_message(name: str) -> bool:
    """True if a file name is that of a message."""
    return name.lower().endswith(_SUFFIXES) and not name.startswith(".")


def _apple(start: bytes) -> tuple[int | None, bytes]:
    """The length of the message in a file of Apple Mail, and what follows it."""
    line, _, rest = start.partition(b"\n")
    length = line.strip()
    return (int(length), rest) if length.isdigit() and len(length) < 12 else (None, start)


def _piece(path: str, start: int, end: int) -> bytes:
    """The stored bytes of a range, in a file of Apple Mail after its first line."""
    with open(path, "rb") as file:
        if path.endswith(_APPLE):
            start, end = start + len(first := file.readline()), end + len(first)
        file.seek(start)
        return file.read(end - start)


def _source(path: str) -> bytes:
    """The stored message, up to ``SOURCE`` bytes."""
    with open(path, "rb") as file:
        stored = file.read(SOURCE)
    if path.endswith(_APPLE):
        length, stored = _apple(stored)
        return stored if length is None else stored[:length]
    return stored
