"""Parts: ranges of large resources, and cutting a part out of contents in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from io import BytesIO
from itertools import islice
from typing import Literal

from .errors import Invalid
from .model import Contents, Reading

#: What a range counts: bytes, or lines of text. For a table, lines are rows.
Unit = Literal["bytes", "lines"]


@dataclass(frozen=True, slots=True)
class Range:
    """The part that the caller asks for. Positions are counted from 0."""

    unit: Unit
    start: int = 0
    #: The position after the last one. None: the end of the resource.
    end: int | None = None
    #: So many positions counted back from the end, in place of ``start`` and ``end``.
    last: int | None = None

    def within(self, total: int) -> tuple[int, int]:
        """The requested positions in a resource of ``total``, as start and end. Both are at most ``total``."""
        if self.last is not None:
            return max(0, total - self.last), total
        start = min(self.start, total)
        return start, total if self.end is None else max(start, min(self.end, total))


@dataclass(frozen=True, slots=True)
class Extent:
    """The part that was read."""

    unit: Unit
    start: int
    #: The position after the last one, where the next part starts.
    end: int
    #: The number of positions, if it is known without reading all of the resource.
    total: int | None
    #: Whether positions follow after ``end``.
    more: bool

    @staticmethod
    def of(unit: Unit, start: int, end: int, total: int) -> Extent:
        """The positions from ``start`` to ``end`` of a resource of ``total``."""
        return Extent(unit, start, end, total, end < total)


@dataclass(frozen=True, slots=True)
class PartialReading:
    """The result of reading a part: one content and its extent."""

    contents: Sequence[Contents]
    #: None: the contents are the whole resource.
    extent: Extent | None = None
    fresh_for: timedelta | None = None

    @staticmethod
    def cut(given: Contents | Reading, range: Range | None, most: int) -> PartialReading:
        """The requested part of a reading that is in memory.

        For a provider that cannot read a part cheaper than the whole: ``return PartialReading.cut(self.read(reference),
        range, most)``. Raises ``Invalid`` for lines of bytes that are not text, and for a line that is longer than ``most``.
        """
        reading = Reading([given]) if isinstance(given, Contents) else given
        whole = PartialReading(reading.contents, fresh_for=reading.fresh_for)
        if len(reading.contents) != 1:
            if range is not None:
                count = len(reading.contents)
                raise Invalid(f"the resource has {count} contents and no parts; read it without a range")
            return whole
        one = reading.contents[0]
        is_text = isinstance(one.body, str)
        body = one.body.encode("utf-8", "replace") if isinstance(one.body, str) else bytes(one.body)
        if range is None:
            if len(body) <= most:
                return whole
            part, extent = _cut_bytes(body, is_text, Range("bytes"), most, at_line=True)
        elif range.unit == "bytes":
            part, extent = _cut_bytes(body, is_text, range, most, at_line=False)
        elif is_text:
            part, extent = _cut_lines(body, range, most)
        else:
            raise Invalid('the resource is not text and has no lines; read it with "?bytes=0-65535"')
        return PartialReading([replace(one, body=part.decode() if is_text else part)], extent, reading.fresh_for)


def _cut_bytes(body: bytes, is_text: bool, range: Range, most: int, at_line: bool) -> tuple[bytes, Extent]:
    """Cuts bytes out.

    Text is cut between characters, and with ``at_line`` after the last whole line, if there is one.
    """
    start, end = range.within(len(body))
    end = min(end, start + most)
    if is_text:
        wanted = end
        start, end = _floor(body, start), _floor(body, end)
        # A range inside one character gives this character.
        if end <= start and wanted > start:
            end = wanted
            while not _starts(body, end):
                end += 1
        if at_line and end < len(body):
            line = body.rfind(b"\n", start, end)
            end = line + 1 if line >= 0 else end
        end = max(start, end)
    return body[start:end], Extent.of("bytes", start, end, len(body))


def _starts(text: bytes, at: int) -> bool:
    """Whether a character starts at this place, or the text ends there."""
    return at >= len(text) or text[at] & 0xC0 != 0x80


def _floor(text: bytes, at: int) -> int:
    while not _starts(text, at):
        at -= 1
    return at


def _cut_lines(text: bytes, range: Range, most: int) -> tuple[bytes, Extent]:
    """Cuts whole lines out, as many as fit."""
    total = text.count(b"\n") + (text != b"" and not text.endswith(b"\n"))
    start, end = range.within(total)
    lines = BytesIO(text)
    # Skips the lines before the part, without a loop of Python.
    deque(islice(lines, start), maxlen=0)
    begin = stop = lines.tell()
    line = start
    for one in islice(lines, end - start):
        if stop + len(one) - begin > most:
            if line == start:
                raise Invalid(
                    f"line {line + 1} has {len(one)} bytes; the limit of a read is {most}; "
                    'read it with "?bytes=0-65535"'
                )
            break
        stop, line = stop + len(one), line + 1
    return text[begin:stop], Extent.of("lines", start, line, total)
