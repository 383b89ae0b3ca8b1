"""Maildirs: a directory for each mailbox, and a file for each message in its `cur` or `new`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import partial

from .entry import HEAD, SOURCE, Entry, head_of


def is_maildir(path: str) -> bool:
    """True if a directory is a Maildir."""
    return os.path.isdir(os.path.join(path, "cur")) and os.path.isdir(os.path.join(path, "new"))


class Maildir:
    """A Maildir."""

    def __init__(self, path: str) -> None:
        self.path = path

    def newest(self, before: str | None) -> Iterator[Entry]:
        limit = None if before is None else _order(before)
        for unique, path in sorted(self._files(), key=lambda file: _order(file[0]), reverse=True):
            if limit is None or _order(unique) < limit:
                yield from self._entry(unique, path)

    def find(self, id: str) -> Entry | None:
        for unique, path in self._files():
            if unique == id:
                return next(self._entry(unique, path), None)
        return None

    def mentions(self, needle: bytes) -> Iterator[Entry]:
        for unique, path in sorted(self._files(), key=lambda file: _order(file[0])):
            for entry in self._entry(unique, path):
                if needle in entry.head:
                    yield entry

    def revision(self) -> str:
        names = sorted(path for _, path in self._files())
        return hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()[:32]

    def _files(self) -> Iterator[tuple[str, str]]:
        """The unique name and the path of each message, in no particular order."""
        for part in ("new", "cur"):
            directory = os.path.join(self.path, part)
            for name in os.listdir(directory):
                if not name.startswith("."):
                    # The rest of the name is a set of flags, such as "seen".
                    yield name.partition(":")[0], os.path.join(directory, name)

    def _entry(self, unique: str, path: str) -> Iterator[Entry]:
        """The entry of a message. Nothing if the file has gone."""
        try:
            with open(path, "rb") as file:
                head = head_of(file.read(HEAD))
            size = os.path.getsize(path)
        except (FileNotFoundError, IsADirectoryError):
            # The file was moved from `new` to `cur` meanwhile, or is not a message.
            return
        yield Entry(unique, unique, head, size, partial(_source, path))


def _source(path: str) -> bytes:
    """The stored message, up to ``SOURCE`` bytes."""
    with open(path, "rb") as file:
        return file.read(SOURCE)


def _order(unique: str) -> tuple[int, str]:
    """The sort key of a message. Its name begins with the time of delivery, in seconds since 1970."""
    seconds = unique.partition(".")[0]
    return (int(seconds) if seconds.isascii() and seconds.isdecimal() else 0, unique)
