"""Large attachments, taken out of a message before it is parsed: the parser goes line by line, and would take ten times
the memory of what it reads."""

from __future__ import annotations

import binascii
import re

#: What is shorter goes through the parser as it is.
_BULK = 64 << 10
#: How much of the rest is parsed.
_PARSED = 2 << 20

_BASE64 = re.compile(rb"^content-transfer-encoding:[ \t]*base64", re.IGNORECASE | re.MULTILINE)
_BLANK = re.compile(rb"\r?\n\r?\n")
_MARK = "belljar-bulk-%d"
_MARKED = re.compile(r"\s*belljar-bulk-(\d{1,6})\s*")


class Bulk:
    """A message without its large base64 parts, and those parts."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._runs: list[tuple[int, int]] = []
        pieces: list[bytes] = []
        at = 0
        while (said := _BASE64.search(source, at)) and (blank := _BLANK.search(source, said.end())):
            start = blank.end()
            # The line that ends a part begins with "--", which no base64 does.
            end = source.find(b"\n--", start - 1)
            end = len(source) if end < 0 else end + 1
            if end - start < _BULK:
                end = start
            pieces.append(source[at:start])
            if end > start:
                pieces.append((_MARK % len(self._runs)).encode() + b"\n")
                self._runs.append((start, end))
            at = end
        pieces.append(source[at : at + _PARSED])
        whole = b"".join(pieces)
        #: What is left to parse.
        self.rest = whole[:_PARSED]
        #: Whether something of it was left out for good.
        self.cut = len(whole) > _PARSED or len(source) - at > _PARSED

    def part(self, payload: str) -> bytes | None:
        """The bytes of the part that this stands for in the rest."""
        marked = _MARKED.fullmatch(payload)
        if marked is None or int(marked[1]) >= len(self._runs):
            return None
        start, end = self._runs[int(marked[1])]
        run = self._source[start:end]
        try:
            return binascii.a2b_base64(run)
        except binascii.Error:
            # Cut in the middle of four characters, or damaged.
            clean = re.sub(rb"[^A-Za-z0-9+/]", b"", run)
            return binascii.a2b_base64(clean[: len(clean) // 4 * 4])
