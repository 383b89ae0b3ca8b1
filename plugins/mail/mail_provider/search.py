"""Which messages match, from the newest on, until enough were found or looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from belljar_guest import Invalid

from . import message
from .entry import Entry

#: How many bytes of messages are parsed, and for how many seconds, before a search says how to go on.
BYTES = 10 << 20
SECONDS = 1.5
#: What parsing a message costs besides its bytes, as bytes; and what looking at one costs that is not parsed.
_PARSED = 16 << 10
_SEEN = 1 << 10

# What is encoded does not show in the bytes; HTML may have a tag within a word.
_ENCODED = (b"=?", b"base64", b"quoted-printable", b"text/html", b"utf-7", b"utf-16", b"iso-2022")


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. What is empty matches everything."""

    text: str = ""
    sender: str = ""
    to: str = ""
    subject: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @staticmethod
    def of(query: Mapping[str, str]) -> Query:
        """From the variables of the template."""
        fold = {key: query.get(key, "").casefold() for key in ("text", "from", "to", "subject")}
        return Query(
            fold["text"], fold["from"], fold["to"], fold["subject"], _time(query, "since"), _time(query, "until")
        )

    def may_match(self, entry: Entry) -> bool:
        """False when the bytes of the headers tell that it does not."""
        return all(_may_hold(entry.head, needle) for needle in (self.sender, self.to, self.subject))

    def matches(self, said: message.Summary) -> bool:
        """Whether the headers match."""
        if self.sender not in said.sender.casefold() or self.to not in said.to.casefold():
            return False
        if self.subject not in said.subject.casefold():
            return False
        if said.date is None:
            return self.since is None and self.until is None
        return self._in_time(said.date)

    def _in_time(self, date: datetime) -> bool:
        return (self.since is None or date >= self.since) and (self.until is None or date < self.until)


class Search:
    """One search."""

    def __init__(self, query: Query, clock: Callable[[], float]) -> None:
        self.query = query
        self.clock = clock
        #: The position to go on from, when not everything was looked at.
        self.stopped_at: str | None = None
        self.why = ""
        self.parsed = 0

    def run(self, entries: Iterable[Entry], most: int) -> list[Entry]:
        """The first that match, this many at most."""
        found: list[Entry] = []
        deadline = self.clock() + SECONDS
        last: Entry | None = None
        for entry in entries:
            # Asked before the next one is looked at, so that a position to go on from is known.
            if last is not None:
                self._stop(len(found) >= most, f"{most} messages were found", last)
                self._stop(self.parsed > BYTES, "enough was searched", last)
                self._stop(self.clock() > deadline, f"{SECONDS:.0f} seconds had passed", last)
                if self.stopped_at is not None:
                    break
            if self._matches(entry):
                found.append(entry)
            last = entry
        return found

    def _matches(self, entry: Entry) -> bool:
        """Asks the bytes first, then the headers, and reads the text last."""
        self.parsed += _SEEN
        if not self.query.may_match(entry):
            return False
        self.parsed += _SEEN
        said = message.summary(entry.head)
        text = self.query.text
        if not self.query.matches(said):
            return False
        if not text or text in said.subject.casefold():
            return True
        source = entry.source()
        if not _may_hold(source, text):
            return False
        self.parsed += _PARSED + len(source)
        return text in message.text(source, entry.size).body.casefold()

    def _stop(self, reached: bool, why: str, last: Entry) -> None:
        if reached and self.stopped_at is None:
            self.stopped_at, self.why = last.position, why


def _may_hold(source: bytes, needle: str) -> bool:
    """False when it surely does not say this. Most messages are told so from their bytes, at a hundredth of the cost."""
    if not needle.isascii() or " " in needle:
        # It may be said in many ways, or be broken over two lines.
        return True
    folded = source.lower()
    return needle.encode() in folded or any(mark in folded for mark in _ENCODED)


def _time(query: Mapping[str, str], name: str) -> datetime | None:
    said = query.get(name, "")
    if not said:
        return None
    try:
        time = datetime.fromisoformat(said)
    except ValueError:
        raise Invalid(f'"{name}" is a day such as 2026-11-20 or a time such as 2026-11-20T10:00:00Z, not "{said}"') from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
