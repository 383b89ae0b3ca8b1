"""Decodes bytes to text, with or without a correct charset. No function here fails."""

from __future__ import annotations

import binascii
import codecs
import encodings
import pkgutil
import re
from contextlib import suppress
from encodings.aliases import aliases

# Python imports a codec at its first use, and a running component cannot import modules, so every codec is used now.
_MODULES = {one.name for one in pkgutil.iter_modules(encodings.__path__)} - {"aliases"}
#: All charsets, by their names in Python.
_CODECS: dict[str, codecs.CodecInfo] = {}
for _name in {*aliases, *aliases.values(), *_MODULES}:
    with suppress(LookupError, ImportError, AttributeError):
        if (_found := codecs.lookup(_name))._is_text_encoding:
            _CODECS[_name] = _found

#: Charsets under names that Python does not know.
_NAMES = {
    "ansi": "cp1252",
    "cp-850": "cp850",
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "unicode-1-1-utf-7": "utf-7",
    "x-unicode-2-0-utf-7": "utf-7",
    "x-gbk": "gbk",
    "x-sjis": "cp932",
    "x-ms-cp932": "cp932",
    "windows-31j": "cp932",
    "windows-949": "cp949",
    "ks_c_5601": "cp949",
    "x-euc-jp": "euc-jp",
    "x-euc-kr": "euc-kr",
    "x-euc-cn": "gb2312",
    "x-big5": "big5",
    "x-mac-roman": "mac-roman",
    "macintosh": "mac-roman",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-8-e": "iso-8859-8",
    "iso-8859-6-i": "iso-8859-6",
    "windows-874": "cp874",
    "unicode": "utf-16",
    "utf8mb4": "utf-8",
}
#: Codecs of Python that are no charsets of texts.
_OTHERS = {"idna", "punycode", "undefined", "unicode-escape", "unicode_escape", "raw-unicode-escape", "raw_unicode_escape"}
#: Charsets whose names promise less than mail programs send: Windows extends each of them.
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "iso2022_jp": "iso2022_jp_ext", "euc_kr": "cp949",
          "big5": "big5hkscs", "iso8859-1": "cp1252", "ascii": "utf-8"}  # fmt: skip

# Encoded words (RFC 2047). White space between two of them is not part of the text.
_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?(.*?)\?=", re.DOTALL)
_WORDS = re.compile(r"=\?[^?\s]{1,60}\?[bBqQ]\?.*?\?=(?:\s*=\?[^?\s]{1,60}\?[bBqQ]\?.*?\?=)*", re.DOTALL)
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")


def decode(data: bytes, charset: str | None) -> str:
    """Decodes with the declared charset. If it is unknown or wrong, decodes with a detected one."""
    codec = _codec(charset) if charset else None
    wider = _WIDER.get(codec.name) if codec else None
    for one in (codec, _codec(wider) if wider else None, _UTF_8):
        if one is not None:
            with suppress(UnicodeError, ValueError):
                return one.decode(data, "strict")[0]
    return codec.decode(data, "replace")[0] if codec else _mixed(data)


def header(value: str) -> str:
    """Decodes a header's value: unfolds it, decodes encoded words, and reads raw bytes as UTF-8 or else Latin-1."""
    if not value.isascii():
        # The parser keeps bytes that are not ASCII as lone surrogates.
        value = decode(value.encode("utf-8", "surrogateescape"), None)
    if "=?" in value:
        value = _WORDS.sub(_decoded, value)
    return " ".join(value.split())


def _decoded(words: re.Match[str]) -> str:
    """The text of adjacent encoded words. A character may be split over two words of one charset."""
    pieces: list[str] = []
    pending, last = b"", ""
    for charset, encoding, text in _WORD.findall(words[0]):
        charset = charset.partition("*")[0].lower()
        data = _word_bytes(encoding, text)
        if charset != last and pending:
            pieces.append(decode(pending, last))
            pending = b""
        pending, last = pending + data, charset
    pieces.append(decode(pending, last))
    return "".join(pieces)


def _word_bytes(encoding: str, text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return binascii.a2b_qp(data, header=True)
    clean = _NOT_BASE64.sub(b"", data)
    clean = clean[:-1] if len(clean) % 4 == 1 else clean
    return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))


def _codec(charset: str) -> codecs.CodecInfo | None:
    name = charset.strip().strip("'\"").lower()
    plain = _NAMES.get(name, name).replace("-", "_").replace(" ", "_")
    codec = _CODECS.get(plain) or _CODECS.get(plain.replace(".", "_").replace(":", "_"))
    return codec if codec is None or codec.name not in _OTHERS else None


def _mixed(data: bytes) -> str:
    """UTF-8 with a few broken bytes, or else windows-1252: most of the bytes decide."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return text if broken * 10 < len(data) - len(text) + broken else _windows(data)


def _windows(data: bytes) -> str:
    """Windows-1252, and Latin-1 for the few bytes that it leaves out."""
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


_UTF_8 = codecs.lookup("utf-8")
