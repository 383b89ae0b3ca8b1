"""Bytes to text, whatever they claim to be. Nothing here fails."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header
from encodings.aliases import aliases

# A codec is imported when it is first used, and a component can import nothing any more: so each is used now. The second
# is how the parser of messages writes what is not ASCII.
for _name in {*aliases.values(), "raw_unicode_escape", "utf_8_sig", "idna"}:
    with suppress(LookupError, ImportError):
        codecs.lookup(_name)

# Encoded words, with the white space between two of them, which is not part of the text.
_WORDS = re.compile(r"=\?[^?\s]{1,40}\?[bBqQ]\?[^?]*\?=(?:\s+=\?[^?\s]{1,40}\?[bBqQ]\?[^?]*\?=)*")


def decode(data: bytes, charset: str | None) -> str:
    """In the charset that it is said to be in, or what it looks like when that is wrong."""
    for name in (charset, "utf-8"):
        if name:
            try:
                return data.decode(name)
            except (LookupError, UnicodeError, ValueError):
                pass
    # Has a character for each byte.
    known = charset is not None and _is_text(charset)
    return data.decode(charset, "replace") if known and charset else data.decode("latin-1")


def header(value: str) -> str:
    """A header's value as people read it: unfolded, encoded words decoded, and bytes as UTF-8 or else Latin-1."""
    if value.isascii() and "=?" not in value:
        return " ".join(value.split())
    # The parser keeps such bytes as lone surrogates.
    text = decode(value.encode("utf-8", "surrogateescape"), None)
    return " ".join(_WORDS.sub(lambda words: _decoded(words[0]), text).split())


def _decoded(words: str) -> str:
    try:
        return "".join(
            part if isinstance(part, str) else decode(part, charset) for part, charset in decode_header(words)
        )
    except (HeaderParseError, ValueError):
        return words


def _is_text(charset: str) -> bool:
    try:
        return bool(codecs.lookup(charset)._is_text_encoding)
    except (LookupError, ValueError):
        return False
