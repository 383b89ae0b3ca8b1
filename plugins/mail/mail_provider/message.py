"""One message: its headers, its text and its attachments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import parsedate_to_datetime

from .bulk import Bulk
from .charsets import decode, header
from .entry import SOURCE
from .html_text import html_to_text

_SHOWN = {"subject", "from", "to", "cc", "date", "message-id", "references", "in-reply-to"}

# A line that begins with white space continues the one before it.
_FIELD = re.compile(r"\r?\n(?![ \t])")
_IDS = re.compile(r"<[^<>\s]{3,250}>")


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
class Part:
    """An attachment of a message."""

    number: int
    name: str
    mime_type: str
    message: Message


@dataclass(frozen=True, slots=True)
class Text:
    """A message with its text and attachments."""

    summary: Summary
    headers: list[tuple[str, str]]
    body: str
    attachments: list[Part]
    cut: bool


def summary(head: bytes) -> Summary:
    """Parses only the headers. Does not use the message parser, because a search calls this for thousands of messages."""
    lines = _FIELD.split(head.decode("ascii", "surrogateescape"))
    return _summary((name, value) for name, colon, value in (line.partition(":") for line in lines) if colon)


def text(source: bytes, size: int) -> Text:
    """Parses a message. ``source`` may be only its beginning; ``size`` is the full size in bytes."""
    bulk = Bulk(source)
    message = _parse(bulk)
    bodies: list[str] = []
    attachments: list[Part] = []
    for number, part in _leaves(message):
        kind = part.get_content_type()
        if part.get_content_disposition() != "attachment" and kind.startswith("text/") and not _file_name(part):
            if _is_spare(part, bodies):
                continue
            body = decode(_bytes(part, bulk), part.get_content_charset())
            bodies.append(html_to_text(body) if kind == "text/html" else body.replace("\r\n", "\n").strip("\n"))
        else:
            attachments.append(Part(number, _file_name(part) or f"part {number}", kind, part))
    headers = [(name, header(str(value))) for name, value in message.raw_items()]
    return Text(_summary(message.raw_items()), headers, "\n\n".join(filter(None, bodies)), attachments, bulk.cut or size > SOURCE)


def part(source: bytes, number: int) -> tuple[str, str | bytes] | None:
    """The MIME type and the content of one part of a message."""
    bulk = Bulk(source)
    for found, leaf in _leaves(_parse(bulk)):
        if found == number:
            kind = leaf.get_content_type()
            if kind.startswith("text/"):
                return kind, decode(_bytes(leaf, bulk), leaf.get_content_charset())
            return kind, _bytes(leaf, bulk)
    return None


def _parse(bulk: Bulk) -> Message:
    return BytesParser(policy=compat32).parsebytes(bulk.rest)


def _leaves(message: Message) -> Iterator[tuple[int, Message]]:
    """The leaf parts, numbered from 1. An attached message counts as a leaf."""
    waiting = [message]
    number = 0
    while waiting:
        one = waiting.pop()
        payload = one.get_payload()
        if one.get_content_maintype() == "multipart" and isinstance(payload, list):
            if one.get_content_subtype() == "alternative":
                # Sorts the plain text first, because its alternatives have the same content.
                payload = sorted(payload, key=_is_rich)
            waiting += [_in(part, one) for part in reversed(payload) if isinstance(part, Message)]
        else:
            number += 1
            yield number, one


def _is_rich(part: object) -> bool:
    return not (isinstance(part, Message) and part.get_content_type() == "text/plain")


def _in(part: Message, parent: Message) -> Message:
    part.belljar_alternative = parent.get_content_subtype() == "alternative"  # type: ignore[attr-defined]
    return part


def _is_spare(part: Message, bodies: list[str]) -> bool:
    """True for an alternative of a text that was already taken."""
    return getattr(part, "belljar_alternative", False) and bool(bodies)


def _bytes(part: Message, bulk: Bulk) -> bytes:
    payload = part.get_payload()
    if isinstance(payload, list):
        # An attached message.
        return b"\n".join(inner.as_bytes() for inner in payload if isinstance(inner, Message))
    if isinstance(payload, str) and (large := bulk.part(payload)) is not None:
        return large
    decoded = part.get_payload(decode=True)
    return decoded if isinstance(decoded, bytes) else str(payload).encode("utf-8", "surrogateescape")


def _file_name(part: Message) -> str | None:
    name = part.get_filename()
    # Only the last segment: the name comes from the sender and may contain a path.
    return header(name).replace("\\", "/").rpartition("/")[2][:200] or None if name else None


def _summary(headers: Iterable[tuple[str, object]]) -> Summary:
    fields: dict[str, str] = {}
    for name, value in headers:
        if (key := name.lower()) in _SHOWN:
            fields.setdefault(key, header(str(value)))
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
