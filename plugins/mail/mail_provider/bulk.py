"""Takes large attachments out of a message before it is parsed. The parser works line by line and takes ten times the
memory of its input."""

from __future__ import annotations

import binascii
import re

#: The smallest part that is taken out, in bytes. Smaller parts are parsed.
_BULK = 64 << 10
#: The most bytes that are parsed of a message without its large parts.
_PARSED = 2 << 20

_BASE64 = re.compile(rb"^content-transfer-encoding:[ \t]*base64", re.IGNORECASE | re.MULTILINE)
_BLANK = re.compile(rb"\r?\n\r?\n")
_MARK = "belljar-bulk-%d"
_MARKED = re.compile(r"\s*belljar-bulk-(\d{1,6})\s*")


class Bulk:
    """A message whose large base64 parts are replaced by markers, and those parts."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._runs: list[tuple[int, int]] = []
        pieces: list[bytes] = []
        at = 0
        while (encoding := _BASE64.search(source, at)) and (blank := _BLANK.search(source, encoding.end())):
            start = blank.end()
            # The boundary line after a part begins with "--", which does not occur in base64.
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
        #: The message with markers in place of its large parts.
        self.rest = whole[:_PARSED]
        #: True if the message was cut.
        self.cut = len(whole) > _PARSED or len(source) - at > _PARSED

    def part(self, payload: str) -> bytes | None:
        """The decoded part for the marker in ``payload``; None if it has no marker."""
        marked = _MARKED.fullmatch(payload)
        if marked is None or int(marked[1]) >= len(self._runs):
            return None
        start, end = self._runs[int(marked[1])]
        run = self._source[start:end]
        try:
            return binascii.a2b_base64(run)
        except binascii.Error:
            # Damaged, or cut within a group of four characters.
            clean = re.sub(rb"[^A-Za-z0-9+/]", b"", run)
            return binascii.a2b_base64(clean[: len(clean) // 4 * 4])
