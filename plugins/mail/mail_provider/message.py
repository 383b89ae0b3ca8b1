"""One message: its headers, its text and its attachments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from .charsets import decode, header
from .entry import SOURCE
from .html_text import html_to_text
from .mime import Header, Part, parse, split_headers

_SHOWN = {"subject", "from", "to", "cc", "date", "message-id", "references", "in-reply-to"}
#: The most characters of text that are read. An answer must hold them.
_TEXT = 4 << 20

_IDS = re.compile(r"<[^<>\s]{3,250}>")

#: What a part of a type holds, if this provider cannot show it.
_CLOSED = {
    "application/ms-tnef": "Outlook's own format, which may hold more attachments; it is not unpacked",
    "application/vnd.ms-tnef": "Outlook's own format, which may hold more attachments; it is not unpacked",
    "application/pkcs7-mime": "S/MIME; the text in it is not decrypted",
    "application/x-pkcs7-mime": "S/MIME; the text in it is not decrypted",
    "application/pgp-encrypted": "PGP; the text is encrypted, and is not decrypted",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The parsed headers of a message."""

    subject: str
    sender: str
    to: str
    date: datetime | None
    message_id: str | None
    #: The ids of the answered messages, beginning with the first of the thread.
    answers: list[str]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part that is not text of the message."""

    number: int
    name: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class Text:
    """A message with its text and attachments."""

    summary: Summary
    headers: list[Header]
    body: str
    attachments: list[Attachment]
    #: What is missing in the text, and why.
    notes: list[str]


def summary(head: bytes) -> Summary:
    """Parses only the headers. A search calls this for thousands of messages."""
    return _summary(split_headers(head)[0])


def text(source: bytes, size: int) -> Text:
    """Parses a message. ``source`` may be only its beginning; ``size`` is the full size in bytes."""
    root = parse(source)
    bodies: list[str] = []
    attachments: list[Attachment] = []
    notes: list[str] = []
    # The parts multipart/alternative whose text is taken.
    taken: set[int] = set()
    for number, part in leaves(root):
        name = file_name(part)
        closed = _CLOSED.get(part.kind)
        if closed:
            notes.append(f"{name or f'part {number}'} is {closed}")
        is_text = part.disposition != "attachment" and _is_text(part)
        if is_text and (not name or part is root or (part.kind in ("text/plain", "text/html") and not bodies)):
            is_known = part.kind in ("text/plain", "text/html", "text/enriched", "text/richtext")
            if part.alternative is not None and id(part.alternative) in taken:
                # An alternative of a text that was already taken.
                if is_known:
                    continue
            else:
                body = _text_of(part)
                if body.strip():
                    bodies.append(body)
                    if part.alternative is not None:
                        taken.add(id(part.alternative))
                if not name:
                    continue
        elif part is root and is_text:
            continue
        attachments.append(Attachment(number, name or _own_name(part, number), part.kind))
    body = "\n\n".join(bodies)
    if len(body) > _TEXT:
        notes.append(f"only the first {_TEXT >> 20} MiB of the text are shown; view=source gives the stored message")
        body = body[:_TEXT]
    if len(source) < size and len(source) >= SOURCE:
        notes.append(f"only the first {SOURCE >> 20} MiB of the message were read; its last parts are missing")
    headers = [(name, header(value)) for name, value in root.headers]
    return Text(_summary(root.headers), headers, body, attachments, notes)


def part(source: bytes, numbers: Sequence[int]) -> tuple[str, str | bytes] | None:
    """The MIME type and the content of one part of a message. Each further number is that of a part of an attached message."""
    found = _find(source, numbers)
    if found is None:
        return None
    if found.kind.startswith("text/"):
        return found.kind, decode(found.content(), found.parameters.get("charset"))
    return found.kind, found.content()


def _find(source: bytes, numbers: Sequence[int]) -> Part | None:
    found: Part | None = None
    for wanted in numbers:
        root = parse(source)
        found = next((leaf for number, leaf in leaves(root) if number == wanted), None)
        if found is None:
            return None
        source = found.content()
    return found


def leaves(root: Part) -> Iterator[tuple[int, Part]]:
    """The leaf parts, numbered from 1. An attached message counts as a leaf."""
    waiting = [root]
    number = 0
    while waiting:
        one = waiting.pop()
        if one.parts is None:
            number += 1
            yield number, one
        else:
            parts = one.parts
            if one.kind == "multipart/alternative":
                # Sorts the plain text first, because its alternatives have the same content.
                parts = sorted(parts, key=lambda part: part.kind != "text/plain")
            waiting.extend(reversed(parts))


def _is_text(part: Part) -> bool:
    # A multipart without its boundaries is read as it is.
    return part.kind.startswith(("text/", "multipart/"))


def _text_of(part: Part) -> str:
    body = decode(part.content(), part.parameters.get("charset"))
    if part.kind == "text/html":
        return html_to_text(body)
    return body.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def file_name(part: Part) -> str | None:
    """The name of the file in a part."""
    name = part.raw_name
    # Only the last segment: the name comes from the sender and may contain a path.
    return header(name).replace("\\", "/").rpartition("/")[2][:200].strip() or None if name else None


def _own_name(part: Part, number: int) -> str:
    """The name of a part without one."""
    if part.kind == "message/rfc822":
        return summary(part.content()).subject
    return f"part {number}"


def _summary(headers: Iterable[Header]) -> Summary:
    fields: dict[str, str] = {}
    for name, value in headers:
        if (key := name.lower()) in _SHOWN and key not in fields:
            fields[key] = header(value)
    own = _IDS.findall(fields.get("message-id", ""))
    answers = _IDS.findall(fields.get("references", "")) + _IDS.findall(fields.get("in-reply-to", ""))
    return Summary(
        subject=fields.get("subject") or "(no subject)",
        sender=fields.get("from", ""),
        to=", ".join(filter(None, (fields.get("to"), fields.get("cc")))),
        date=_date(fields.get("date")),
        message_id=own[0] if own else None,
        answers=list(dict.fromkeys(answers)),
    )


def _date(value: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(value) if value else None
        # A date without a zone ("-0000") is in UTC.
        return date.replace(tzinfo=UTC) if date and date.tzinfo is None else date
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
