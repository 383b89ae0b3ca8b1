"""Files of many kinds, and what Python reads of them."""

import base64
import json
import os
import random
import re
import sys
from pathlib import Path
from urllib.parse import quote

root = Path(sys.argv[1])
cases = []


def shown(name):
    """The form of a name in references: the bytes of control characters as the symbol for escape and two digits."""
    out = ""
    for character in name:
        if character == "\u241b":
            out += "\u241b\u241b"
        elif ord(character) < 32 or 127 <= ord(character) < 160:
            out += "".join(f"\u241b{byte:02X}" for byte in character.encode())
        else:
            out += character
    return out


def reference(path):
    return "/".join(quote(shown(segment)) for segment in path.split("/"))


def body(data):
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"blob": base64.b64encode(data).decode()}


def span(data, start, end):
    """The part of text between the characters around these positions; of other bytes, the part itself."""

    def floor(at):
        for back in range(4):
            if at - back >= 0 and (at - back >= len(data) or data[at - back] & 0xC0 != 0x80):
                return at - back
        return at

    first, last = floor(start), floor(end)
    try:
        return {"text": data[first:last].decode("utf-8")}
    except UnicodeDecodeError:
        return {"blob": base64.b64encode(data[start:end]).decode()}


def add(name, path, query, expected):
    cases.append({"name": name, "reference": reference(path) + query, "expected": expected})


def write(path, data):
    full = root / path
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_bytes(data)
    return data


chance = random.Random(19)
words = ["plain", "gr\u00fcn", "\u65e5\u672c\u8a9e", "\U0001f600", "e\u0301", "\t", "x" * 40]
text = "".join(" ".join(chance.choices(words, k=chance.randrange(9))) + chance.choice(["\n", "\r\n"]) for _ in range(3000))
kinds = {
    "empty": b"",
    "one": b"x",
    "newline": b"\n",
    "4095": bytes(chance.choices(b"abc \n", k=4095)),
    "4096": bytes(chance.choices(b"abc \n", k=4096)),
    "65537": bytes(chance.choices(b"abc \n", k=65537)),
    "every byte": bytes(range(256)) * 3,
    "every character": "".join(map(chr, range(1, 0xD800))).encode(),
    "random": chance.randbytes(70_000),
    "zeros": bytes(5000),
    "text": text.encode(),
    "text without an end": text.encode().rstrip(),
    "old mac": b"one\rtwo\rthree\r",
    "utf-8 with a mark": b"\xef\xbb\xbfone\ntwo\n",
    "utf-16-le": "\ufeffone\ntwo\n".encode("utf-16-le"),
    "utf-16-be": "\ufeffone\ntwo\n".encode("utf-16-be"),
    "latin-1": "gr\u00fcn\n".encode("latin-1"),
    "overlong": b"\xc0\x80 \xed\xa0\x80",
    "cut character": "\u65e5".encode()[:2],
}
for name, data in kinds.items():
    write(f"kinds/{name}", data)
    add(f"whole, {name}", f"kinds/{name}", "", body(data))
    size = len(data)
    for _ in range(6):
        start = chance.randrange(size + 2)
        end = start + chance.randrange(1, 3000)
        if end > start + 4:
            add(f"bytes, {name}", f"kinds/{name}", f"?bytes={start}-{end - 1}", span(data, min(start, size), min(end, size)))
    count = chance.randrange(10, 200)
    add(f"last bytes, {name}", f"kinds/{name}", f"?bytes=-{count}", span(data, max(0, size - count), size))
    lines = data.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    for _ in range(4):
        first = chance.randrange(1, len(lines) + 2)
        last = first + chance.randrange(50)
        part = body(b"".join(lines[first - 1 : last]))
        if "text" in part:
            add(f"lines, {name}", f"kinds/{name}", f"?lines={first}-{last}", part)
    part = body(b"".join(lines[-7:]))
    if "text" in part:
        add(f"last lines, {name}", f"kinds/{name}", "?lines=-7", part)

large = write("large.txt", b"".join(b"line %d of a file over the limit of a read\n" % n for n in range(60_000)))
lines = large.splitlines(keepends=True)
for first, last in [(1, 3), (25_000, 25_010), (59_999, 60_005)]:
    add("lines of a large file", "large.txt", f"?lines={first}-{last}", {"text": b"".join(lines[first - 1 : last]).decode()})
add("last lines of a large file", "large.txt", "?lines=-5", {"text": b"".join(lines[-5:]).decode()})
add("middle of a large file", "large.txt", "?bytes=1500000-1565535", {"text": large[1_500_000:1_565_536].decode()})

names = [
    "with space", "-dash", "percent%20", "%", "hash#tag", "what?", "a&b=c", "semi;colon", "plus+", "colon:", "quote\"s'", "back\\slash",
    "pipe|caret^", "<tag>", "{braces}", "\u00e9", "e\u0301", "\u65e5\u672c\u8a9e.txt", "\U0001f600", "line\nfeed", "tab\tname",
    "\x1b[31mred", "\x7f", "\u0085", "\u241b", "\u241b0A", "trailing ", "a..b", "l" * 255, "\u202eright", "\ufeffmark",
]
for name in names:
    write(f"names/{name}", name.encode())
    add(f"name {name!r}", f"names/{name}", "", {"text": name.encode().decode()})
add("the names of a directory", "names/", "", {"labels": [re.sub(r"([\\\\\[\]])", r"\\\1", shown(name)) for name in os.listdir(root / "names")]})

deep = "deep/" + "/".join(["d"] * 60) + "/file"
write(deep, b"deep")
add("a deep path", deep, "", {"text": "deep"})
os.symlink("kinds/text", root / "link")
add("a link to a file", "link", "", body(kinds["text"]))
os.symlink("kinds", root / "directory link")
add("through a link to a directory", "directory link/one", "", {"text": "x"})
json.dump(cases, sys.stdout)
