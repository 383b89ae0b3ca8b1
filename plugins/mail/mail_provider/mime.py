"""The structure of a message: headers, parts and their contents. Splits a message as Python's email package does.

Works on slices of the stored bytes, and compiles no expression for a message. The email package reads line by line, and takes
ten times the fuel and the memory.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from email.utils import decode_params
from urllib.parse import unquote_to_bytes

from .charsets import decode

#: The most parts of a message, and the deepest nesting. More parts are an attack.
_PARTS = 5000
_DEPTH = 50

# Lines end in a line feed, a carriage return, or both. A line of headers has a name, continues the line before it, or is the
# separator line of an mbox file that was kept.
_HEADERS = re.compile(rb"(?:(?:[!-9;-~]*:|[ \t]|>?From )[^\r\n]*(?:\r\n|\r|\n|\Z))*")
_FOLD = re.compile(r"(?:\r\n|\r(?!\n)|\n)(?![ \t])")
_BOUNDARY_END = re.compile(rb"(--)?[ \t]*(?:\r\n|\r|\n|\Z)")
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\r\n]*\r?$", re.MULTILINE)
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
# Python makes a table at the first use of this. The build makes it, for all calls.
unquote_to_bytes("%20")

_NO_PARAMS: dict[str, str] = {}

Header = tuple[str, str]


def split_headers(source: bytes, start: int = 0, end: int | None = None) -> tuple[list[Header], int]:
    """The headers from ``start``, and the offset of the body. Bytes that are not ASCII become lone surrogates."""
    end = len(source) if end is None else end
    quick = _split_lines(source, start, end)
    if quick is not None:
        return quick
    stop = _HEADERS.match(source, start, end).end()  # type: ignore[union-attr]
    headers = []
    for line in _FOLD.split(source[start:stop].decode("ascii", "surrogateescape")):
        name, colon, value = line.partition(":")
        # Without a name, the line is a separator line or continues nothing.
        if colon and name and " " not in name and "\t" not in name:
            headers.append((name, value.lstrip(" \t\r\n").rstrip("\r\n")))
    if source[stop : stop + 2] == b"\r\n":
        stop += 2
    elif source[stop : stop + 1] in (b"\n", b"\r"):
        stop += 1
    return headers, min(stop, end)


def _split_lines(source: bytes, start: int, end: int) -> tuple[list[Header], int] | None:
    """Like ``split_headers``, for headers that all have a name and end in a blank line, as nearly all do. None for others: the
    expression above reads them, at ten times the cost."""
    stop = source.find(b"\n\n", start, end)
    windows = source.find(b"\n\r\n", start, end if stop < 0 else stop)
    body = stop + 2
    if windows >= 0:
        stop, body = windows, windows + 3
    block = source[start:stop]
    if stop < 0 or b"\r" in block.replace(b"\r\n", b"").removesuffix(b"\r"):
        return None
    headers: list[Header] = []
    for line in block.decode("ascii", "surrogateescape").split("\n"):
        if line[:1] in (" ", "\t"):
            if not headers:
                return None
            name, value = headers[-1]
            headers[-1] = (name, f"{value}\n{line}".rstrip("\r"))
            continue
        name, colon, value = line.partition(":")
        if not colon or not name or not name.isascii() or not name.isprintable() or " " in name:
            return None
        headers.append((name, value.lstrip(" \t\r").rstrip("\r")))
    return [(name, value.lstrip(" \t\r\n")) for name, value in headers], body


class Part:
    """A message or a part of one."""

    __slots__ = ("source", "start", "body", "end", "headers", "kind", "parameters", "parts", "alternative", "is_whole")

    def __init__(self, source: bytes, start: int, end: int, default: str) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.headers, self.body = split_headers(source, start, end)
        value = self.header("content-type")
        #: The MIME type, in lower case.
        self.kind = default if value is None else _kind(value)
        self.parameters = parameters(value) if value is not None else _NO_PARAMS
        #: The parts of a multipart. None for a leaf, and for a multipart without boundaries.
        self.parts: list[Part] | None = None
        #: The innermost multipart/alternative that the part is in.
        self.alternative: Part | None = None
        #: False if the closing boundary of a multipart is missing.
        self.is_whole = True

    def header(self, name: str) -> str | None:
        """The first header of this name, which is in lower case."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    @property
    def disposition(self) -> str:
        """``attachment``, ``inline`` or nothing, in lower case."""
        return (self.header("content-disposition") or "").partition(";")[0].strip().lower()

    @property
    def raw_name(self) -> str | None:
        """The name of the file, as its header has it."""
        value = self.header("content-disposition")
        name = parameters(value).get("filename") if value is not None else None
        return name or self.parameters.get("name") or None

    def content(self) -> bytes:
        """The bytes of the part, decoded. Damaged bytes are decoded as far as possible."""
        body = self.source[self.body : self.end]
        encoding = (self.header("content-transfer-encoding") or "").split(";")[0].strip().lower()
        match encoding.split(" ")[0]:
            case "base64":
                return _base64(body)
            case "quoted-printable":
                return binascii.a2b_qp(body)
            case "x-uuencode" | "uuencode" | "uue" | "x-uue":
                return uudecode(body)
        return body


def parse(source: bytes) -> Part:
    """The structure of a message."""
    root = Part(source, 0, len(source), "text/plain")
    count = 0
    waiting: list[tuple[Part, int]] = [(root, 0)]
    while waiting:
        part, depth = waiting.pop()
        if not part.kind.startswith("multipart/") or depth >= _DEPTH:
            continue
        ranges = _ranges(part)
        if ranges is None:
            continue
        default = "message/rfc822" if part.kind == "multipart/digest" else "text/plain"
        part.parts = []
        for start, end in ranges[: _PARTS - count]:
            inner = Part(source, start, end, default)
            inner.alternative = part if part.kind == "multipart/alternative" else part.alternative
            part.parts.append(inner)
            waiting.append((inner, depth + 1))
        count += len(part.parts)
    return root


def _ranges(part: Part) -> list[tuple[int, int]] | None:
    """The ranges of the parts of a multipart. None if it has no boundary."""
    boundary = part.parameters.get("boundary", "").rstrip()
    if not boundary:
        return None
    source, at, end = part.source, part.body, part.end
    mark = b"--" + boundary.encode("utf-8", "surrogateescape")
    ranges: list[tuple[int, int]] = []
    start: int | None = None
    while (found := source.find(mark, at, end)) >= 0:
        at = found + len(mark)
        tail = _BOUNDARY_END.match(source, at, end)
        if tail is None or (found > part.start and source[found - 1] not in b"\r\n"):
            continue
        if start is None:
            if tail[1]:
                # Only the end of a multipart that never began.
                return None
        elif found > start:
            # Several boundaries in a row are one. The line end before a boundary belongs to it.
            line_end = 2 if source[found - 2 : found] == b"\r\n" else 1
            ranges.append((start, max(found - line_end, start)))
        at = start = tail.end()
        if tail[1]:
            return ranges
    if start is None:
        return None
    part.is_whole = False
    ranges.append((start, end))
    return ranges


def _kind(value: str) -> str:
    kind = value.partition(";")[0].strip().lower()
    return kind if kind.count("/") == 1 else "text/plain"


def parameters(value: str) -> dict[str, str]:
    """The parameters of a header, by their names in lower case."""
    if ";" not in value:
        return _NO_PARAMS
    found: list[tuple[str, str]] = []
    is_extended = False
    for piece in _pieces(value):
        name, equals, rest = piece.partition("=")
        name, rest = name.strip().lower(), rest.strip()
        if name and equals:
            is_extended = is_extended or "*" in name
            found.append((name, rest))
    if not is_extended:
        return {name: _unquoted(rest) for name, rest in reversed(found)}
    try:
        # RFC 2231: values in parts, with charsets.
        decoded = decode_params([("", ""), *found])[1:]
        named = {
            name: _extended(rest[0], _unquoted(rest[2])) if isinstance(rest, tuple) else _unquoted(rest)
            for name, rest in reversed(decoded)
        }
    except (ValueError, LookupError, IndexError):
        named = {name: _unquoted(rest) for name, rest in reversed(found)}
    return named


def _pieces(value: str) -> Iterator[str]:
    """The parameters of a header, split at semicolons outside of quotation marks."""
    if '"' not in value:
        yield from value.split(";")[1:]
        return
    piece, is_open = "", False
    for part in value.split(";"):
        piece = f"{piece};{part}" if is_open else part
        if (piece.count('"') - piece.count('\\"')) % 2 == 0:
            yield piece
            piece, is_open = "", False
        else:
            is_open = True
    if is_open:
        yield from piece.split(";")


def _extended(charset: str | None, value: str) -> str:
    """A value whose bytes are written as the characters of Latin-1."""
    return decode(value.encode("latin-1"), charset) if all(c < "\u0100" for c in value) else value


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace("\\\\", "\\").replace('\\"', '"')
    if len(value) > 1 and value[0] == "<" and value[-1] == ">":
        return value[1:-1]
    # An end of quotation is missing.
    return value[1:] if value[:1] == '"' else value


def _base64(body: bytes) -> bytes:
    try:
        return binascii.a2b_base64(body)
    except binascii.Error:
        # Cut within a group of four characters, of which one alone has no byte.
        clean = _NOT_BASE64.sub(b"", body)
        clean = clean[:-1] if len(clean) % 4 == 1 else clean
        return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))


def uudecode(body: bytes) -> bytes:
    """The first file in a text in uuencode. The text itself if there is none."""
    begin = _UU_BEGIN.search(body)
    if begin is None:
        return body
    pieces = []
    for line in body[begin.end() :].splitlines()[1:]:
        if not line.strip() or line.strip() == b"end":
            break
        try:
            pieces.append(binascii.a2b_uu(line))
        except binascii.Error:
            # Some encoders write the wrong length.
            length = (((line[0] - 32) & 63) * 4 + 5) // 3
            try:
                pieces.append(binascii.a2b_uu(line[:length]))
            except binascii.Error:
                break
    return b"".join(pieces)
