"""Messages of every kind that mail programs write, well-formed and not. Written without the code under test."""

from __future__ import annotations

from base64 import b64encode

from tests.mailboxes import ANSWER, ATTACHED, BROKEN, HTML, PLAIN

_HEAD = b"Message-ID: <%d@example.org>\nFrom: Anna <anna@example.org>\nTo: ben@example.org\nSubject: %s\nDate: Fri, 20 Nov 2026 10:00:00 +0000\nMIME-Version: 1.0\n"


def _message(subject: str, rest: bytes) -> bytes:
    return _HEAD % (sum(subject.encode()), subject.encode()) + rest


def _charset(name: str, text: str) -> bytes:
    encoded = text.encode(name)
    head = f"Content-Type: text/plain; charset={name}\nContent-Transfer-Encoding: base64\nX-Word: =?{name}?B?"
    return head.encode() + b64encode(encoded) + b"?=\n\n" + b64encode(encoded) + b"\n"


def _mixed(*parts: bytes, kind: bytes = b"mixed", end: bytes = b"--b--\n") -> bytes:
    return b'Content-Type: multipart/%s; boundary="b"\n\n' % kind + b"".join(b"--b\n%s\n" % one for one in parts) + end


_TEXT = b"Content-Type: text/plain; charset=utf-8\n\nThe text.\n"
_TEXTS = {
    "iso-2022-jp": "日本語です",
    "shift_jis": "日本語です",
    "euc-jp": "日本語です",
    "euc-kr": "안녕하세요",
    "gb2312": "你好",
    "gbk": "你好",
    "gb18030": "你好",
    "big5": "你好",
    "koi8-r": "Привет",
    "koi8-u": "Привіт",
    "windows-1250": "Příliš",
    "windows-1251": "Привет",
    "windows-1252": "“café” €",
    "windows-1253": "Καλημέρα",
    "windows-1254": "İstanbul",
    "windows-1255": "שלום",
    "windows-1256": "مرحبا",
    "windows-1257": "Šiauliai",
    "windows-1258": "Việt".replace("ệ", "ê"),
    "iso-8859-2": "Příliš",
    "iso-8859-5": "Привет",
    "iso-8859-6": "مرحبا",
    "iso-8859-7": "Καλημέρα",
    "iso-8859-8": "שלום",
    "iso-8859-9": "İstanbul",
    "iso-8859-15": "café €",
    "utf-7": "Größe – 日本",
    "utf-16": "Größe – 日本",
    "cp437": "café",
    "cp850": "café",
    "tis-620": "สวัสดี",
    "mac-roman": "café",
    "hz": "你好",
}

ALL: dict[str, bytes] = {
    "plain": PLAIN,
    "answer": ANSWER,
    "html": HTML,
    "attached": ATTACHED,
    "broken": BROKEN,
    **{name: _message(name, _charset(name, text)) for name, text in _TEXTS.items()},
    "rfc822": _message("forwarded", _mixed(_TEXT, b"Content-Type: message/rfc822\n\n" + ATTACHED)),
    "rfc822 in base64": _message(
        "forwarded64",
        _mixed(_TEXT, b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + b64encode(PLAIN) + b"\n"),
    ),
    "digest": _message("digest", _mixed(b"\n" + PLAIN, b"\n" + ANSWER, kind=b"digest")),
    "bounce": _message(
        "bounce",
        _mixed(
            _TEXT,
            b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nFinal-Recipient: rfc822; b@example.org\nStatus: 5.1.1\n",
            b"Content-Type: text/rfc822-headers\n\nSubject: lost\n",
            kind=b"report",
        ),
    ),
    "calendar": _message(
        "calendar",
        _mixed(
            _TEXT,
            b"Content-Type: text/html\n\n<p>The text.</p>\n",
            b"Content-Type: text/calendar; method=REQUEST; charset=utf-8\n\nBEGIN:VCALENDAR\nEND:VCALENDAR\n",
            kind=b"alternative",
        ),
    ),
    "related": _message(
        "related",
        _mixed(
            _TEXT,
            b'Content-Type: multipart/related; boundary="c"\n\n--c\nContent-Type: text/html\n\n<p>The text.</p>\n--c\n'
            b"Content-Type: image/png\nContent-ID: <i>\nContent-Transfer-Encoding: base64\n\nAAAA\n--c--\n",
            kind=b"alternative",
        ),
    ),
    "no end": _message("no end", _mixed(_TEXT, end=b"")),
    "no boundary": _message("no boundary", b"Content-Type: multipart/mixed\n\nThe text.\n"),
    "wrong boundary": _message("wrong boundary", b"Content-Type: multipart/mixed; boundary=x\n\nThe text.\n--y\n"),
    "no headers": b"\nThe text.\n",
    "rfc2231": _message(
        "rfc2231",
        _mixed(
            _TEXT,
            b"Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*0*=iso-8859-1'de'b%FCro;\n"
            b" filename*1=\" plan.pdf\"\n\nx\n",
            b'Content-Type: application/pdf; name="=?utf-8?Q?b=C3=BCro?= 2.pdf"\n\nx\n',
            b"Content-Type: application/pdf; name=b\xfcro.pdf\n\nx\n",
            b"Content-Type: application/pdf; name*=x-nonsense''b%FCro.pdf\n\nx\n",
        ),
    ),
    "base64": _message("base64", b"Content-Transfer-Encoding: BASE64\n\nVGhl!IHRl\n\neHQu===\n"),
    "base64 cut": _message("base64 cut", b"Content-Transfer-Encoding: base64\n\nVGhlIHRleHQuV\n"),
    "uuencode": _message(
        "uuencode", b"Content-Transfer-Encoding: x-uuencode\n\nbegin 644 a.txt\n*5&AE('1E>'0N\"@``\n`\nend\n"
    ),
    "tnef": _message("tnef", _mixed(_TEXT, b"Content-Type: application/ms-tnef; name=winmail.dat\n\nx\n")),
    "smime": _message("smime", b"Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\nAAAA\n"),
    "pgp": _message(
        "pgp",
        _mixed(
            b"Content-Type: application/pgp-encrypted\n\nVersion: 1\n",
            b"Content-Type: application/octet-stream; name=encrypted.asc\n\nx\n",
            kind=b"encrypted",
        ),
    ),
    "idna": _message("idna", b"Content-Type: text/plain; charset=idna\n\nThe text.\n"),
    "punycode": _message("punycode", b"Content-Type: text/plain; charset=punycode\n\nThe text.\n"),
    "odd type": _message("odd type", b"Content-Type: text; charset=\"utf-8\nContent-Transfer-Encoding: 7bit (x)\n\nThe text.\n"),
}
