"""Decodes bytes to text, with or without a correct charset. No function here fails."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header
from encodings.aliases import aliases

# Python imports a codec at its first use, and a running component cannot import modules, so every codec is used now. The
# message parser keeps bytes that are not ASCII as `raw_unicode_escape`.
for _name in {*aliases.values(), "raw_unicode_escape", "utf_8_sig", "idna"}:
    with suppress(LookupError, ImportError):
        codecs.lookup(_name)

# Encoded words (RFC 2047). White space between two of them is not part of the text.
_WORDS = re.compile(r"=\?[^?\s]{1,40}\?[bBqQ]\?[^?]*\?=(?:\s+=\?[^?\s]{1,40}\?[bBqQ]\?[^?]*\?=)*")


def decode(data: bytes, charset: str | None) -> str:
    """Decodes with the declared charset. If it is unknown or wrong, decodes with a detected one."""
    for name in (charset, "utf-8"):
        if name:
            try:
                return data.decode(name)
            except (LookupError, UnicodeError, ValueError):
                pass
    # Latin-1 has a character for every byte.
    known = charset is not None and _is_text(charset)
    return data.decode(charset, "replace") if known and charset else data.decode("latin-1")


def header(value: str) -> str:
    """Decodes a header's value: unfolds it, decodes encoded words, and reads raw bytes as UTF-8 or else Latin-1."""
    if value.isascii() and "=?" not in value:
        return " ".join(value.split())
    # The parser keeps bytes that are not ASCII as lone surrogates.
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
