"""The provider: references, the list, reads and completion."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice

from belljar_guest import (
    Annotations,
    Argument,
    Completion,
    Contents,
    Failed,
    Info,
    Invalid,
    NotFound,
    Page,
    Provider,
    Resource,
    Revisions,
    Suggestions,
    Template,
    decode,
    encode_path,
    encode_segment,
    split,
)

from . import message
from .entry import Entry
from .folders import Folder, Folders
from .search import Query, Search

#: The number of newest messages listed per mailbox, unless RECENT is set.
RECENT = 20
#: Messages per page of a mailbox or a search.
PAGE = 50
#: Attachments that the text of a message names.
ATTACHMENTS = 500
#: Messages of a thread.
THREAD = 200
#: The most bytes of a part or a stored message in one answer. The host's limit is 8 MiB.
ANSWER = 8 << 20
#: Mailboxes per page of the list. Each is opened for its newest messages.
FOLDERS = 10


class Mail(Provider, Completion, Revisions):
    """The mailboxes of a directory. The host creates a new instance for each call."""

    def __init__(self, root: str = "/mail", environment: Mapping[str, str] = os.environ) -> None:
        self.folders = Folders(root)
        self.environment = environment

    def describe(self) -> Info:
        return Info(
            title=self.environment.get("TITLE") or "Mail",
            version="0.1.0",
            description="Mailboxes: messages as text, their attachments, threads and searches. Reads mbox files, Maildirs, MH and .eml.",
        )

    def list_resources(self, cursor: str | None) -> Page:
        folders = self.folders.all()
        names = [folder.name for folder in folders]
        start = 0
        if cursor is not None:
            after = decode(cursor)
            if after not in names:
                raise Invalid(f'the cursor "{cursor}" is not from a list of this provider')
            start = names.index(after) + 1
        here = folders[start : start + FOLDERS]
        resources = [resource for folder in here for resource in self._listed(folder)]
        more = start + FOLDERS < len(folders)
        return Page(resources, encode_path(here[-1].name) if more else None)

    def list_templates(self) -> list[Template]:
        return [
            Template(
                "folders/{+folder}{?before}",
                name="folder",
                description=f"The newest {PAGE} messages of a mailbox, newest first; before: those that came before this position, as the answer says for the next page.",
                mime_type="application/json",
            ),
            Template(
                "messages/{+folder}/{id}{?view,part,bytes}",
                name="message",
                description="A message as text. view=headers: all of its headers; view=source: as it is stored; part=N: an attachment, by the number that the message shows, and part=N.M one of an attached message; bytes=A-B: only these bytes of source or attachment.",
            ),
            Template(
                "threads/{+folder}/{id}",
                name="thread",
                description="The messages of the conversation that a message belongs to, oldest first.",
                mime_type="application/json",
            ),
            Template(
                "search/{+folder}{?text,from,to,subject,since,until,before}",
                name="search",
                description="The newest messages of a mailbox that match all of these, in whatever case: text in the subject or the body, from and to in names or addresses, since and until as 2026-11-20 or with a time.",
                mime_type="application/json",
            ),
        ]

    def read(self, reference: str) -> Contents:
        path, query = split(reference)
        family, _, rest = path.partition("/")
        if path == "":
            return self._overview(reference)
        if family == "folders" and rest:
            return self._folder(reference, _path(rest), query)
        if family == "search" and rest:
            return self._search(reference, _path(rest), query)
        folder, _, id = rest.rpartition("/")
        if family == "messages" and folder and id:
            return self._message(reference, _path(folder), decode(id), query)
        if family == "threads" and folder and id:
            return self._thread(reference, _path(folder), decode(id))
        raise NotFound

    def complete(self, template: str, argument: Argument, resolved: Mapping[str, str]) -> Suggestions:
        if argument.name == "folder":
            names = [folder.name for folder in self.folders.all() if folder.name.startswith(argument.value)]
            return Suggestions(names[:100], len(names))
        if argument.name == "view":
            return Suggestions([view for view in ("headers", "source", "text") if view.startswith(argument.value)])
        return Suggestions()

    def catalog_revision(self) -> str:
        listed = "\n".join(f"{one.name} {self.folders.open(one.name).revision()}" for one in self.folders.all())
        return hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest()[:32]

    def resource_revision(self, reference: str) -> str:
        path, _ = split(reference)
        family, _, rest = path.partition("/")
        if path == "":
            return self.catalog_revision()
        if family in ("folders", "search"):
            return self.folders.open(_path(rest)).revision()
        if family == "threads":
            return self.folders.open(_path(rest.rpartition("/")[0])).revision()
        if family == "messages":
            # A received message does not change.
            folder, _, id = rest.rpartition("/")
            if self.folders.open(_path(folder)).find(decode(id)):
                return "received"
        raise NotFound

    def _recent(self) -> int:
        setting = self.environment.get("RECENT", "")
        return min(int(setting), 1000) if setting.isascii() and setting.isdecimal() and len(setting) < 9 else RECENT

    def _listed(self, folder: Folder) -> Iterator[Resource]:
        yield Resource(
            f"folders/{encode_path(folder.name)}",
            name=folder.name.rpartition("/")[2],
            title=folder.name,
            description="A mailbox: its newest messages.",
            mime_type="application/json",
            annotations=Annotations(last_modified=datetime.fromtimestamp(int(folder.modified), UTC), priority=0.8),
        )
        for entry in islice(self.folders.open(folder.name).newest(None), self._recent()):
            headers = message.summary(entry.head)
            yield Resource(
                _reference("messages", folder.name, entry),
                name=entry.id,
                title=headers.subject,
                description=f"From {headers.sender}, {_shown(headers.date)}",
                mime_type="text/plain",
                annotations=Annotations(last_modified=headers.date),
            )

    def _overview(self, reference: str) -> Contents:
        folders = self.folders.all()
        lines = [f"# {self.describe().title}", "", "| mailbox | kind | size | changed |", "|---|---|---|---|"]
        for one in folders:
            name = one.name.replace("|", "\\|")
            changed = _shown(datetime.fromtimestamp(int(one.modified), UTC))
            lines.append(f"| [{name}](folders/{encode_path(one.name)}) | {one.kind} | {_size(one.size)} | {changed} |")
        if self.folders.skipped:
            lines += ["", "Not read:", ""]
            lines += [f"- {name}: {why}" for name, why in self.folders.skipped[:50]]
            if (more := len(self.folders.skipped) - 50) > 0:
                lines.append(f"- and {more} more")
        return Contents(reference, "\n".join(lines) + "\n", "text/markdown")

    def _folder(self, reference: str, name: str, query: Mapping[str, str]) -> Contents:
        entries = list(islice(self.folders.open(name).newest(query.get("before")), PAGE + 1))
        answer: dict[str, object] = {"folder": name, "messages": [_row(name, entry) for entry in entries[:PAGE]]}
        if len(entries) > PAGE:
            before = encode_segment(entries[PAGE - 1].position)
            answer["next"] = f"folders/{encode_path(name)}?before={before}"
        return _json(reference, answer)

    def _search(self, reference: str, name: str, query: Mapping[str, str]) -> Contents:
        search = Search(Query.of(query), time.monotonic)
        found = search.run(self.folders.open(name).newest(query.get("before")), PAGE)
        answer: dict[str, object] = {"folder": name, "messages": [_row(name, entry) for entry in found]}
        if search.stopped_at is not None:
            asked = {**query, "before": search.stopped_at}
            again = "&".join(f"{key}={encode_segment(value)}" for key, value in asked.items())
            answer["stopped"] = f"{search.why}: older messages were not searched"
            answer["next"] = f"search/{encode_path(name)}?{again}"
        return _json(reference, answer)

    def _message(self, reference: str, name: str, id: str, query: Mapping[str, str]) -> Contents:
        entry = self._entry(name, id)
        view = query.get("view", "")
        if "part" in query:
            numbers = _numbers(query["part"])
            found = message.part(entry.source(), numbers)
            if found is None:
                raise NotFound
            mime_type, content = found
            if view == "text" and isinstance(content, bytes) and mime_type == "message/rfc822":
                shown = _text(message.text(content, len(content)), name, entry, query["part"] + ".")
                return Contents(reference, shown, "text/plain")
            if "bytes" in query:
                data = content.encode() if isinstance(content, str) else content
                start, end = _range(query["bytes"], len(data))
                return Contents(reference, data[start:end], mime_type)
            size = len(content)
            if size > ANSWER:
                raise Failed(_too_large(f"part {query['part']}", size, reference))
            if mime_type.startswith("message/") and isinstance(content, bytes):
                return Contents.from_bytes(reference, content, mime_type)
            return Contents(reference, content, mime_type)
        match view:
            case "source" if "bytes" in query:
                start, end = _range(query["bytes"], entry.stored)
                return Contents(reference, entry.piece(start, end), "message/rfc822")
            case "source" if entry.stored > ANSWER:
                raise Failed(_too_large("the stored message", entry.stored, reference))
            case "source":
                return Contents.from_bytes(reference, entry.source(), "message/rfc822")
            case "headers":
                headers = message.text(entry.source(), entry.stored).headers
                return _json(reference, [{"name": key, "value": value} for key, value in headers])
            case "" | "text":
                return Contents(reference, _text(message.text(entry.source(), entry.stored), name, entry), "text/plain")
            case other:
                raise Invalid(f'"view" is "{other}": expected "text", "headers" or "source"')

    def _thread(self, reference: str, name: str, id: str) -> Contents:
        entry = self._entry(name, id)
        headers = message.summary(entry.head)
        root = headers.answers[0] if headers.answers else headers.message_id
        entries: Iterable[Entry] = [entry]
        mailbox = self.folders.open(name)
        if root is not None:
            found = list(islice(mailbox.mentions(root.encode("utf-8", "surrogateescape")), THREAD + 1))
            # A search that ended early may have missed the message itself.
            entries = found if any(one.id == entry.id for one in found) else [entry, *found]
        rows = sorted((_row(name, one) for one in entries), key=lambda row: str(row["date"] or ""))
        answer = {"folder": name, "subject": headers.subject, "messages": rows[:THREAD]}
        if mailbox.is_unfinished or len(rows) > THREAD:
            query = f"subject={encode_segment(headers.subject[:60])}"
            answer["stopped"] = "the mailbox is too large, or the thread too long: some messages are missing"
            answer["next"] = f"search/{encode_path(name)}?{query}"
        return _json(reference, answer)

    def _entry(self, name: str, id: str) -> Entry:
        entry = self.folders.open(name).find(id)
        if entry is None:
            raise NotFound
        return entry


def _path(encoded: str) -> str:
    return "/".join(decode(part) for part in encoded.split("/"))


def _reference(family: str, folder: str, entry: Entry) -> str:
    return f"{family}/{encode_path(folder)}/{encode_segment(entry.id)}"


def _row(folder: str, entry: Entry) -> dict[str, object]:
    headers = message.summary(entry.head)
    row: dict[str, object] = {
        "reference": _reference("messages", folder, entry),
        "subject": headers.subject,
        "from": headers.sender,
        "to": headers.to,
        # All dates are in UTC, so they can be compared as text.
        "date": headers.date.astimezone(UTC).isoformat().replace("+00:00", "Z") if headers.date else None,
        "size": entry.size,
    }
    if entry.is_deleted:
        row["deleted"] = True
    return row


def _numbers(text: str) -> list[int]:
    """The number of a part, or the numbers of a part within attached messages."""
    numbers = text.split(".")
    if not all(number.isascii() and number.isdecimal() and len(number) < 9 for number in numbers) or len(numbers) > 10:
        raise Invalid(f'"part" is "{text}": expected the number of an attachment')
    return [int(number) for number in numbers]


def _range(text: str, size: int) -> tuple[int, int]:
    """The range of "A-B", "A-" or "-N", at most as long as an answer."""
    first, dash, last = text.partition("-")
    if not dash or not (first or last) or not f"{first}{last}".isdecimal() or len(text) > 40:
        raise Invalid(f'"bytes" is "{text}": expected a range such as 0-1048575, 1048576- or -1024')
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
    if start >= end:
        raise Invalid(f'"bytes" is "{text}": there are {size} bytes')
    return start, min(end, start + ANSWER)


def _too_large(what: str, size: int, reference: str) -> str:
    joined = "&" if "?" in reference else "?"
    return (
        f"{what} has {size} bytes, more than the {ANSWER} of one answer; read it in pieces: "
        f"{reference}{joined}bytes=0-{ANSWER // 2 - 1} and so on"
    )


def _text(read: message.Text, folder: str, entry: Entry, inside: str = "") -> str:
    headers = read.summary
    lines = [
        f"Subject: {headers.subject}",
        f"From: {headers.sender}",
        f"To: {headers.to}",
        f"Date: {_shown(headers.date)}",
    ]
    reference = _reference("messages", folder, entry)
    for one in read.attachments[:ATTACHMENTS]:
        lines.append(f"Attachment: {one.name} ({one.mime_type}), {reference}?part={inside}{one.number}")
    if (more := len(read.attachments) - ATTACHMENTS) > 0:
        lines.append(f"Note: {more} more attachments; part={read.attachments[ATTACHMENTS].number} and so on reads them")
    if entry.is_deleted:
        lines.append("Note: deleted by the mail program, which has not removed it yet")
    lines += [f"Note: {note}" for note in read.notes]
    return "\n".join(lines) + "\n\n" + read.body + "\n"


def _shown(date: datetime | None) -> str:
    return date.isoformat(" ", "minutes") if date else "no date"


def _size(size: int | None) -> str:
    if size is None:
        return ""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def _json(reference: str, value: object) -> Contents:
    """JSON with a line for each member, and for each item of a list. Python indents only with code that takes twenty times as
    long."""
    if isinstance(value, dict):
        members = (f"{_line(key)}: {_lines(item)}" for key, item in value.items())
        text = "{\n" + ",\n".join(members) + "\n}"
    else:
        text = _lines(value)
    return Contents(reference, text, "application/json")


def _lines(value: object) -> str:
    return "[\n" + ",\n".join(map(_line, value)) + "\n]" if isinstance(value, list) and value else _line(value)


_line = json.JSONEncoder(ensure_ascii=False).encode
