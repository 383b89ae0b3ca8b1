"""Mailboxes of every kind, and what Python's email package says of their messages.

The expected value of a case is the list of its messages, oldest first.
"""

import base64
import email
import email.policy
import html
import json
import mailbox
import re
import sys
from email.header import decode_header, make_header
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins/mail"))
from tests.messages import ALL  # noqa: E402

#: Where Python's package gives up and belljar reads on: damaged base64, and codecs that are no charsets of texts.
ONLY_BELLJAR = {"base64 cut", "idna", "punycode"}
MESSAGES = {name: message for name, message in ALL.items() if name not in ONLY_BELLJAR}
DATED = b"From anna@example.org Fri Nov 20 10:00:00 2026"
SHORT = [MESSAGES[name] for name in ("plain", "answer", "html", "attached")]

cases: list[dict[str, object]] = []


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def decoded(value: object) -> str:
    text = str(value or "")
    try:
        text = str(make_header(decode_header(text)))
        return "" if "\ufffd" in text else text
    except (LookupError, UnicodeError, email.errors.HeaderParseError):
        return ""


def body(message: email.message.EmailMessage) -> list[str] | None:
    """The words of the text. None if Python finds none or cannot decode it."""
    part = message.get_body(("plain", "html"))
    if part is None or part.get_content_maintype() != "text":
        return None
    data = part.get_payload(decode=True)
    charset = part.get_content_charset()
    try:
        text = data.decode(charset or "utf-8", "replace" if charset else "strict")
    except (LookupError, UnicodeError):
        return None
    if part.get_content_subtype() == "html":
        text = html.unescape(re.sub(r"(?s)<(script|style|title)[^>]*>.*?</\1>|<!--.*?-->|<[^>]*>", " ", text))
    return words(text)


def attachments(part: email.message.Message) -> list[dict[str, str]]:
    """The name and the bytes of a part, if it is a named one. Python does not know the charset of raw bytes in a name."""
    name = decoded(part.get_filename()).rpartition("/")[2]
    if not name or "\ufffd" in name or part.get_content_maintype() in ("multipart", "message", "text"):
        return []
    return [{"words": "".join(words(name)), "data": base64.b64encode(part.get_payload(decode=True)).decode()}]


def top(message: email.message.Message) -> list[email.message.Message]:
    """The parts of a message, without those of attached messages."""
    if message.get_content_maintype() == "multipart" and message.is_multipart():
        return [one for part in message.get_payload() for one in top(part)]
    return [message]


def expected(source: bytes) -> dict[str, object]:
    message = email.message_from_bytes(source)
    new = email.message_from_bytes(source, policy=email.policy.default)
    date = None
    if message["Date"]:
        try:
            date = email.utils.parsedate_to_datetime(message["Date"]).isoformat(" ", "minutes")
        except ValueError:
            pass
    return {
        "subject": words(decoded(message["Subject"])),
        "from": words(decoded(message["From"])),
        "date": date,
        "body": body(new),
        "attachments": [one for part in top(message) for one in attachments(part)],
    }


def case(name: str, folder: str, messages: list[bytes]) -> None:
    cases.append({"name": name, "reference": f"folders/{folder}", "expected": [expected(one) for one in messages]})


def mbox(name: str, data: bytes, messages: list[bytes], is_same: bool = True) -> None:
    """An mbox file. ``is_same``: Python's mailbox finds the same messages."""
    folder = re.sub(r"[^a-z0-9.]+", "-", name.lower())
    path = root / folder
    path.write_bytes(data)
    if is_same:
        assert len(mailbox.mbox(path)) == len(messages), name
    case(name, folder, messages)


def joined(messages: list[bytes], line: bytes = DATED, end: bytes = b"\n") -> bytes:
    return b"".join(line + b"\n" + re.sub(rb"(?m)^(>*From )", rb">\1", one) + end for one in messages)


def main() -> None:
    everything = list(MESSAGES.values())
    mbox("all", joined(everything), everything)
    lines = [one.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for one in everything]
    mbox("crlf", joined(everything).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), lines)
    mbox("byte order mark", b"\xef\xbb\xbf" + joined(SHORT), SHORT, False)
    mbox("blank lines first", b"\n\n" + joined(SHORT), SHORT)
    mbox("no blank lines between", joined(SHORT, end=b""), SHORT)
    for line in (
        b"From ", b"From -", b"From - ", b"From - Fri Nov 20 10:00:00 2026", b"From anna@example.org", b"From anna@example.org  Fri, 20 Nov 2026 10:00:00 +0100",
        b"From nobody Fri Nov 20 10:00 2026", b"From - Thu Jan 01 00:00:00 1970", b"From MAILER-DAEMON Fri Nov 20 10:00:00 2026 remote from x", b"From \"Anna Berg\" Fri Nov 20 10:00:00 MET 2026",
        b"From anna@example.org Fri Nov 20 10:00:00 +0100 2026", b"From ???@??? Fri Nov 20 10:00:00 2026", b"From anna@example.org on Friday",
    ):  # fmt: skip
        name = line.decode()
        mbox(f"separator {name}", joined(SHORT, line), SHORT)
        status = b"X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\n"
        mbox(f"separator {name} of Thunderbird", joined([status + one for one in SHORT], line), SHORT)
    mbox("byte order mark and no dates", b"\xef\xbb\xbf" + joined(SHORT, b"From - "), SHORT, False)
    quoted = b"Subject: Quoted\n\nHello\n\nFrom here to there\n>From one\n>>From two\n"
    mbox("quoted lines", joined([quoted, *SHORT]), [quoted, *SHORT])
    open_lines = b"Subject: Open\n\nHello\n\nFrom now on we meet on Mondays.\nFrom 10:30 on.\n\nFrom: nobody\n"
    mbox("lines that are not quoted", DATED + b"\n" + open_lines + b"\n" + joined(SHORT), [open_lines, *SHORT], False)
    mbox("empty.mbox", b"", [])
    mbox("no line end at the end", joined(SHORT[:2])[:-2], SHORT[:2])
    mbox("long lines", joined([b"Subject: " + b"x" * 3000 + b"\n\nHello\n"]), [b"Subject: " + b"x" * 3000 + b"\n\nHello\n"])
    many = [b"Message-ID: <%d@x>\nSubject: Number %d\n\nBody %d\n" % (n, n, n) for n in range(130)]
    mbox("many", joined(many), many)

    maildir = mailbox.Maildir(root / "maildir", create=True)
    for one in everything:
        maildir.add(one)
    case("maildir", "maildir", everything)
    mh = mailbox.MH(root / "mh", create=True)
    for one in everything:
        mh.add(one)
    case("MH", "mh", everything)
    for suffix in ("eml", "EML"):
        (root / suffix).mkdir()
        for number, one in enumerate(everything):
            (root / suffix / f"{number:03} ü.{suffix}").write_bytes(one)
        case(f".{suffix}", suffix, everything)
    (root / "emlx").mkdir()
    for number, one in enumerate(everything):
        end = b'<?xml version="1.0"?><plist version="1.0"></plist>\n'
        (root / "emlx" / f"{number}.emlx").write_bytes(b"%d  \n" % len(one) + one + end)
    case(".emlx", "emlx", everything)
    json.dump(cases, sys.stdout)


root = Path(sys.argv[1])
main()
