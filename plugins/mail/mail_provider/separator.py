"""Separator lines of mbox files: which lines that begin with "From " begin a message.

Not all of them do, because some programs do not quote such lines in the text of a message. And not all of them end in a date:
Thunderbird wrote "From - " alone for years.
"""

from __future__ import annotations

import re

#: The longest separator line that is recognised, in bytes, and the bytes before and after a line that decide.
LINE = 1 << 10
BEFORE = 4
AFTER = LINE + 128

_BOM = b"\xef\xbb\xbf"
_FROM = re.compile(rb"From [^\r\n]{0,1000}(?:\r\n|\r|\n|\Z)")
_TIME = re.compile(rb"\d\d?:\d\d")
_YEAR = re.compile(rb"\b(?:19|20)\d\d\b")
# Any line of headers, and those that begin a message under a separator line without a date.
_HEADER = re.compile(rb"(?:>From |[!-9;-~]{1,80}:)")
_FIRST_HEADER = re.compile(
    rb"(?:>From |X-[!-9;-~]{1,80}:|(?:Received|Return-Path|Delivered-To|Message-ID|Date|From|To|Cc|Subject|Sender|Reply-To|"
    rb"MIME-Version|Content-[A-Z-]{1,30}|Status|In-Reply-To|References|List-[A-Z-]{1,20}|DKIM-Signature|Envelope-To|"
    rb"Authentication-Results|ARC-[A-Z-]{1,30}|Errors-To|Precedence|Importance|Path|Newsgroups|User-Agent|Organization|"
    rb"Resent-[A-Z-]{1,20}|Lines|Apparently-To|BCC|Received-SPF|Old-Return-Path|Original-Recipient|Comments|Keywords)[ \t]*:)",
    re.IGNORECASE,
)


def is_separator(block: bytes, at: int, is_first: bool) -> bool:
    """True if a message begins at ``at``, where a line begins. The block has ``BEFORE`` bytes before it and ``AFTER`` bytes
    after it, unless the file begins or ends there. ``is_first``: the file begins at ``at``."""
    line = _FROM.match(block, at)
    if line is None:
        return False
    is_after_blank = is_first or block[max(at - BEFORE, 0) : at].endswith((b"\n\n", b"\n\r\n", b"\r\r"))
    end = line.end()
    dated = _TIME.search(block, at + 5, end)
    if dated and _YEAR.search(block, at + 5, end):
        return is_after_blank or _HEADER.match(block, end) is not None
    if dated:
        return _HEADER.match(block, end) is not None
    # Without a date, only what follows tells it from text.
    is_thunderbird = block.startswith(b"From -", at) and block[at + 6 : end].strip() == b""
    return (is_after_blank or is_thunderbird) and _FIRST_HEADER.match(block, end) is not None


def first(block: bytes) -> int | None:
    """The offset of the first message of a file that begins with ``block``: after a byte order mark and blank lines. None if
    no message begins there."""
    at = len(_BOM) if block.startswith(_BOM) else 0
    while block[at : at + 1] in (b"\n", b"\r") and at < len(block):
        at += 1
    return at if is_separator(block, at, True) else None
