"""Finds mailboxes. The name of a mailbox is its path below the granted directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from belljar_guest import Denied, NotFound

from .entry import Mailbox
from .maildir import Maildir, is_maildir
from .mbox import Mbox, is_mbox

#: The name of the granted directory itself, if it is a Maildir.
INBOX = "INBOX"

#: How many levels of directories are searched for mailboxes, and the most files and directories visited.
_DEPTH = 8
_ENTRIES = 10_000

#: Files of mail programs beside mbox files. They are not mailboxes, and some are large.
_INDEXES = (".msf", ".dat", ".index", ".cache", ".log", ".lock", ".sqlite")


@dataclass(frozen=True, slots=True)
class Folder:
    """A mailbox and its name."""

    name: str
    kind: str
    #: In bytes. None for a Maildir: its size is the sum of the sizes of all messages, which takes too long.
    size: int | None
    modified: float


class Folders:
    """The mailboxes of a directory."""

    def __init__(self, root: str) -> None:
        self.root = root

    def check_granted(self) -> None:
        if not os.path.isdir(self.root):
            raise Denied(f'the directory "{self.root}" was not granted; grant it to the mount, as fs')

    def all(self) -> list[Folder]:
        """All mailboxes, sorted by name. Links to directories are not followed."""
        self.check_granted()
        return sorted(self._walk(), key=lambda folder: folder.name)

    def open(self, name: str) -> Mailbox:
        """The mailbox with this name."""
        self.check_granted()
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise NotFound
        path = os.path.join(self.root, *parts)
        if name == INBOX and not os.path.exists(path):
            path = self.root
        if os.path.isdir(path) and is_maildir(path):
            return Maildir(path)
        if os.path.isfile(path) and is_mbox(path):
            return Mbox(path)
        raise NotFound

    def _walk(self) -> Iterator[Folder]:
        if is_maildir(self.root):
            yield Folder(INBOX, "maildir", None, os.stat(self.root).st_mtime)
        left = _ENTRIES
        waiting = [("", 0)]
        while waiting:
            name, depth = waiting.pop()
            path = os.path.join(self.root, name) if name else self.root
            for entry in os.scandir(path):
                left -= 1
                if left < 0:
                    return
                inner = f"{name}/{entry.name}" if name else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if is_maildir(entry.path):
                        yield Folder(inner, "maildir", None, entry.stat().st_mtime)
                    # Maildir++ subfolders begin with a dot; other hidden directories are skipped.
                    if depth < _DEPTH and entry.name not in ("cur", "new", "tmp"):
                        if not entry.name.startswith(".") or is_maildir(entry.path):
                            waiting.append((inner, depth + 1))
                elif not entry.name.startswith(".") and not entry.name.endswith(_INDEXES) and entry.is_file():
                    if is_mbox(entry.path):
                        status = entry.stat()
                        yield Folder(inner, "mbox", status.st_size, status.st_mtime)
