"""Searches messages from the newest to the oldest, up to a limit of results and work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from belljar_guest import Invalid

from . import message
from .entry import Entry

#: The limits of one search: parsed bytes and seconds. A search that reaches a limit names the next search in its answer.
BYTES = 10 << 20
SECONDS = 1.5
#: The cost of parsing a message besides its bytes, and the cost of a message that is not parsed, both in bytes.
_PARSED = 16 << 10
_SEEN = 1 << 10

# Marks of encoded text. A search of the bytes misses such text. HTML may also have a tag within a word.
_ENCODED = (b"=?", b"base64", b"quoted-printable", b"text/html", b"utf-7", b"utf-16", b"iso-2022")


@dataclass(frozen=True, slots=True)
class Query:
    """The criteria of a search. An empty criterion matches every message."""

    text: str = ""
    sender: str = ""
    to: str = ""
    subject: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @staticmethod
    def of(query: Mapping[str, str]) -> Query:
        """Parses the variables of the template."""
        fold = {key: query.get(key, "").casefold() for key in ("text", "from", "to", "subject")}
        return Query(
            fold["text"], fold["from"], fold["to"], fold["subject"], _time(query, "since"), _time(query, "until")
        )

    def may_match(self, entry: Entry) -> bool:
        """False if the bytes of the headers exclude a match."""
        return all(_may_hold(entry.head, needle) for needle in (self.sender, self.to, self.subject))

    def matches(self, headers: message.Summary) -> bool:
        """True if the headers match."""
        if self.sender not in headers.sender.casefold() or self.to not in headers.to.casefold():
            return False
        if self.subject not in headers.subject.casefold():
            return False
        if headers.date is None:
            return self.since is None and self.until is None
        return self._in_time(headers.date)

    def _in_time(self, date: datetime) -> bool:
        return (self.since is None or date >= self.since) and (self.until is None or date < self.until)


class Search:
    """One search."""

    def __init__(self, query: Query, clock: Callable[[], float]) -> None:
        self.query = query
        self.clock = clock
        #: The position from which to continue, if older messages were not searched.
        self.stopped_at: str | None = None
        self.why = ""
        self.parsed = 0

    def run(self, entries: Iterable[Entry], most: int) -> list[Entry]:
        """The first ``most`` matching messages."""
        found: list[Entry] = []
        deadline = self.clock() + SECONDS
        last: Entry | None = None
        for entry in entries:
            # Checks the limits before the next message, because the search continues from the last searched one.
            if last is not None:
                self._stop(len(found) >= most, f"{most} messages were found", last)
                self._stop(self.parsed > BYTES, "the limit of one search was reached", last)
                self._stop(self.clock() > deadline, f"{SECONDS:.0f} seconds had passed", last)
                if self.stopped_at is not None:
                    break
            if self._matches(entry):
                found.append(entry)
            last = entry
        return found

    def _matches(self, entry: Entry) -> bool:
        """Checks the raw bytes first, then the headers, and parses the text last."""
        self.parsed += _SEEN
        if not self.query.may_match(entry):
            return False
        self.parsed += _SEEN
        headers = message.summary(entry.head)
        text = self.query.text
        if not self.query.matches(headers):
            return False
        if not text or text in headers.subject.casefold():
            return True
        source = entry.source()
        if not _may_hold(source, text):
            return False
        self.parsed += _PARSED + len(source)
        return text in message.text(source, entry.stored).body.casefold()

    def _stop(self, reached: bool, why: str, last: Entry) -> None:
        if reached and self.stopped_at is None:
            self.stopped_at, self.why = last.position, why


def _may_hold(source: bytes, needle: str) -> bool:
    """False if the message cannot contain the needle. Searching the bytes costs a hundredth of parsing."""
    if not needle.isascii() or " " in needle:
        # Other characters may be encoded in many ways, and text with spaces may be broken over two lines.
        return True
    folded = source.lower()
    return needle.encode() in folded or any(mark in folded for mark in _ENCODED)


def _time(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f'"{name}" is "{text}": expected a day such as 2026-11-20 or a time such as 2026-11-20T10:00:00Z') from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
