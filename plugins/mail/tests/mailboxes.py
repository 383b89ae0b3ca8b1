"""Mailboxes for the tests, as mail programs write them. Written without the code under test."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

PICTURE = bytes(range(256))


def mbox(*messages: bytes) -> bytes:
    """An mbox file. Lines that begin with "From " are quoted."""
    separator = b"From anna@example.org Fri Nov 20 10:00:00 2026\n"
    return b"".join(separator + one.replace(b"\nFrom ", b"\n>From ") + b"\n" for one in messages)


PLAIN = b"""\
Message-ID: <plan@example.org>
From: Anna Berg <anna@example.org>
To: Ben <ben@example.org>
Subject: The plan
Date: Fri, 20 Nov 2026 10:00:00 +0100

Hello Ben,

From now on we meet on Mondays.
"""

ANSWER = b"""\
Message-ID: <answer@example.org>
In-Reply-To: <plan@example.org>
References: <plan@example.org>
From: =?iso-8859-1?Q?Ben_M=FCller?= <ben@example.org>
To: Anna Berg <anna@example.org>
Subject: =?utf-8?B?UmU6IFRoZSBwbGFuIOKAkw==?= =?utf-8?Q?_agreed?=
Date: Fri, 20 Nov 2026 12:30:00 +0000
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Mondays are fine, see you in the caf=E9.
"""

HTML = b"""\
Message-ID: <offer@example.com>
From: Shop <shop@example.com>
To: ben@example.org
Subject: Offer
Date: Sat, 21 Nov 2026 08:00:00 GMT
Content-Type: text/html; charset=utf-8

<html><head><title>no</title><style>p { color: red }</style></head><body><h1>Bells &amp; jars</h1>
<p>Only <b>today</b>:<br>a <a href="https://shop.example.com/jar">jar</a></p><script>alert(1)</script>
<ul><li>small</li><li>large</li></ul></body></html>
"""

ATTACHED = (
    b"""\
Message-ID: <photo@example.org>
From: Anna Berg <anna@example.org>
To: Ben <ben@example.org>
Subject: Photo
Date: Sun, 22 Nov 2026 09:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="outer"

--outer
Content-Type: multipart/alternative; boundary="inner"

--inner
Content-Type: text/plain; charset=utf-8

Here it is.
--inner
Content-Type: text/html; charset=utf-8

<p>Here <i>it</i> is.</p>
--inner--
--outer
Content-Type: image/png
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename*=utf-8''..%2Fb%C3%BCro.png

"""
    + b64encode(PICTURE)
    + b"\n--outer--\n"
)

# All common errors: an unknown charset, bytes that are not UTF-8, a header with raw bytes, an invalid date, invalid base64
# and a missing boundary.
BROKEN = b"""\
From: J\xfcrgen <j@example.org>
To: undisclosed-recipients:;
Subject: =?x-nonsense?Q?caf=E9?= =?utf-8?B?!!!?=
Date: yesterday
Content-Type: text/plain; charset=x-nonsense

na\xefve \xff
"""


def write_mbox(path: Path, *messages: bytes) -> None:
    """Writes an mbox file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(mbox(*messages))


def write_maildir(path: Path, **messages: bytes) -> None:
    """Writes a Maildir: a message for each name, marked as seen if the name ends in S."""
    for part in ("cur", "new", "tmp"):
        (path / part).mkdir(parents=True)
    for number, (name, message) in enumerate(messages.items(), 1_763_600_000):
        part, flags = ("cur", ":2,S") if name.endswith("S") else ("new", "")
        (path / part / f"{number}.{name}.host{flags}").write_bytes(message)
