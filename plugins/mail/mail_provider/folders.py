"""Finds mailboxes. The name of a mailbox is its path below the granted directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from belljar_guest import Denied, Failed, NotFound

from .entry import Mailbox
from .maildir import Maildir, Named, Numbered, is_maildir, is_message, is_number
from .mbox import Mbox, is_mbox
from .mime import split_headers

#: The name of the granted directory itself, if it is a mailbox.
INBOX = "INBOX"

#: How many levels of directories are searched for mailboxes, and the most files and directories visited.
_DEPTH = 8
_ENTRIES = 10_000

#: Files of mail programs beside mbox files. They are not mailboxes, and some are large.
_INDEXES = (".msf", ".dat", ".index", ".cache", ".log", ".lock", ".sqlite")

#: Mail in files that this provider does not read, and what to do with them.
_CLOSED = {
    ".mbox.gz": "compressed; decompress it",
    ".mbox.bz2": "compressed; decompress it",
    ".mbox.xz": "compressed; decompress it",
    ".mbox.zst": "compressed; decompress it",
    ".mbox.zip": "compressed; decompress it",
    ".pst": "of Outlook; export it as mbox",
    ".ost": "of Outlook; export it as mbox",
    ".dbx": "of Outlook Express; export it as mbox",
    ".msg": "of Outlook; save it as .eml",
    ".babyl": "of Emacs; export it as mbox",
    ".mmdf": "in MMDF; convert it to mbox",
}


@dataclass(frozen=True, slots=True)
class Folder:
    """A mailbox and its name."""

    name: str
    kind: str
    #: In bytes. None for a directory: its size is the sum of the sizes of all messages, which takes too long.
    size: int | None
    modified: float


class Folders:
    """The mailboxes of a directory."""

    def __init__(self, root: str) -> None:
        self.root = root
        #: After ``all``: files and directories that may hold mail and are not served, with the reason.
        self.skipped: list[tuple[str, str]] = []

    def check_granted(self) -> None:
        if not os.path.isdir(self.root):
            raise Denied(f'the directory "{self.root}" was not granted; grant it to the mount, as fs')

    def all(self) -> list[Folder]:
        """All mailboxes, sorted by name. Links to directories are not followed."""
        self.check_granted()
        self.skipped = []
        return sorted(self._walk(), key=lambda folder: folder.name)

    def open(self, name: str) -> Mailbox:
        """The mailbox with this name."""
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            self.check_granted()
            raise NotFound
        path = os.path.join(self.root, *parts)
        if name == INBOX and not os.path.exists(path):
            path = self.root
        if os.path.isfile(path):
            if is_mbox(path):
                return Mbox(path)
        elif os.path.isdir(path):
            match _kind(path):
                case "maildir":
                    return Maildir(path)
                case "MH":
                    return Numbered(path)
                case "eml":
                    return Named(path)
        self.check_granted()
        closed = _closed(name) if os.path.exists(path) else None
        if closed:
            raise Failed(f'"{name}" is not read: it is {closed}')
        raise NotFound

    def _walk(self) -> Iterator[Folder]:
        left = _ENTRIES
        waiting = [("", 0)]
        while waiting:
            name, depth = waiting.pop()
            path = os.path.join(self.root, name) if name else self.root
            try:
                entries = list(os.scandir(path))
            except OSError as error:
                # A name that is not UTF-8 ends the listing of its directory.
                self.skipped.append((name or INBOX, f"a directory that cannot be listed ({error.strerror or error})"))
                continue
            kind = _kind(path, [entry.name for entry in entries])
            if kind:
                yield Folder(name or INBOX, kind, None, os.stat(path).st_mtime)
            left -= len(entries)
            if left < 0:
                self.skipped.append((name or INBOX, f"beyond the first {_ENTRIES} files and directories"))
                return
            for entry in entries:
                inner = f"{name}/{entry.name}" if name else entry.name
                if entry.is_dir(follow_symlinks=False):
                    # Maildir++ subfolders begin with a dot; other hidden directories are skipped.
                    if kind == "maildir" and entry.name in ("cur", "new", "tmp"):
                        continue
                    if entry.name.startswith(".") and not is_maildir(entry.path):
                        continue
                    if depth < _DEPTH:
                        waiting.append((inner, depth + 1))
                    else:
                        self.skipped.append((inner, f"more than {_DEPTH} levels deep"))
                elif entry.name.startswith(".") or entry.name.endswith(_INDEXES):
                    continue
                elif closed := _closed(entry.name):
                    self.skipped.append((inner, closed))
                elif not (kind == "eml" and is_message(entry.name)) and not (kind == "MH" and is_number(entry.name)):
                    if entry.is_file() and is_mbox(entry.path):
                        status = entry.stat()
                        yield Folder(inner, "mbox", status.st_size, status.st_mtime)


def _kind(path: str, names: list[str] | None = None) -> str | None:
    """The kind of mailbox that a directory is. None if it is none."""
    if is_maildir(path):
        return "maildir"
    names = os.listdir(path) if names is None else names
    if any(is_message(name) for name in names):
        return "eml"
    if numbered := next((name for name in names if is_number(name)), None):
        if ".mh_sequences" in names or _is_message_file(os.path.join(path, numbered)):
            return "MH"
    return None


def _is_message_file(path: str) -> bool:
    """True if a file begins with headers."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb", 0) as file:
        headers, body = split_headers(file.read(8192))
    return len(headers) > 1 and body > 0


def _closed(name: str) -> str | None:
    lower = name.lower()
    return next((why for suffix, why in _CLOSED.items() if lower.endswith(suffix)), None)
