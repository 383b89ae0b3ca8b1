"""Logs in many formats, encodings and compressions, and the lines that Python selects from them."""

import bz2
import gzip
import json
import lzma
import os
import random
import re
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

import zstandard

root = Path(sys.argv[1])
cases = []
chance = random.Random(19)
UTC = timezone.utc
# Times without a year are in the latest possible one.
NOW = datetime.now(UTC).replace(microsecond=0)
BASE = NOW - timedelta(hours=3)


def write(name, data):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    # As if written before: the last line of a file that is being written may be incomplete.
    os.utime(path, (NOW.timestamp() - 1, NOW.timestamp() - 1))


def add(name, reference, lines, note=None):
    cases.append({"name": name, "reference": reference, "expected": {"lines": lines, "note": note}})


def stamp(time):
    return quote(time.strftime("%Y-%m-%dT%H:%M:%SZ"))


LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"]
UPPER = {"trace": "TRACE", "debug": "DEBUG", "info": "INFO", "warn": "WARN", "error": "ERROR", "fatal": "FATAL"}
LETTER = {"trace": "V", "debug": "D", "info": "I", "warn": "W", "error": "E", "fatal": "F"}
GLOG = {"info": "I", "warn": "W", "error": "E", "fatal": "F"}
SYSLOG = {"debug": 7, "info": 6, "warn": 4, "error": 3, "fatal": 2}
PINO = {"trace": 10, "debug": 20, "info": 30, "warn": 40, "error": 50, "fatal": 60}
JAVA = {"trace": "FINEST", "debug": "FINE", "info": "INFO", "warn": "WARNING", "error": "SEVERE"}

f = datetime.strftime
day = lambda t: f"{t.day:2}"
# Each format: a line of a time, a level and a message; and the levels that it has.
FORMATS = {
    "android": (lambda t, l, m: f"{f(t, '%m-%d %H:%M:%S')}.811  1702  2395 {LETTER[l]} WindowManager: {m}", LETTER),
    "apache": (lambda t, l, m: f"[{f(t, '%a %b %d %H:%M:%S %Y')}] [{l}] {m}", UPPER),
    "bgl": (
        lambda t, l, m: f"- {int(t.timestamp())} {f(t, '%Y.%m.%d')} R02-M1-N0-C:J12-U11 {f(t, '%Y-%m-%d-%H.%M.%S')}.363779"
        f" R02-M1-N0-C:J12-U11 RAS KERNEL {UPPER[l]} {m}",
        UPPER,
    ),
    "hadoop": (lambda t, l, m: f"{f(t, '%Y-%m-%d %H:%M:%S')},978 {UPPER[l]} [main] org.apache.App: {m}", UPPER),
    "hdfs": (lambda t, l, m: f"{f(t, '%y%m%d %H%M%S')} 148 {UPPER[l]} dfs.DataNode$PacketResponder: {m}", UPPER),
    "healthapp": (lambda t, l, m: f"{f(t, '%Y%m%d')}-{t.hour}:{t.minute}:{t.second}:606|Step_LSC|30002312|{m}", None),
    "hpc": (lambda t, l, m: f"134681 node-246 unix.hw state_change.unavailable {int(t.timestamp())} 1 {m}", None),
    "linux": (lambda t, l, m: f"{f(t, '%b')} {day(t)} {f(t, '%H:%M:%S')} combo sshd(pam_unix)[19939]: {m}", None),
    "mac": (lambda t, l, m: f"{f(t, '%b')} {day(t)} {f(t, '%H:%M:%S')} calvisitor-10-105-160-95 kernel[0]: {m}", None),
    "openssh": (lambda t, l, m: f"{f(t, '%b')} {day(t)} {f(t, '%H:%M:%S')} LabSZ sshd[24200]: {m}", None),
    "openstack": (
        lambda t, l, m: f"nova-compute.log.1.2017-05-16_13:55:31 {f(t, '%Y-%m-%d %H:%M:%S')}.008 25746 {UPPER[l]} nova.x [req-3] {m}",
        UPPER,
    ),
    "proxifier": (lambda t, l, m: f"[{f(t, '%m.%d %H:%M:%S')}] chrome.exe - proxy.example:5070 {m}", None),
    "spark": (lambda t, l, m: f"{f(t, '%y/%m/%d %H:%M:%S')} {UPPER[l]} executor.Backend: {m}", UPPER),
    "thunderbird": (
        lambda t, l, m: f"- {int(t.timestamp())} {f(t, '%Y.%m.%d')} dn228 {f(t, '%b')} {t.day} {f(t, '%H:%M:%S')} dn228/dn228"
        f" crond(pam_unix)[2915]: {m}",
        None,
    ),
    "windows": (
        lambda t, l, m: f"{f(t, '%Y-%m-%d %H:%M:%S')}, {l.title():21} CBS    {m}",
        {"info": 1, "warn": 1, "error": 1},
    ),
    "zookeeper": (lambda t, l, m: f"{f(t, '%Y-%m-%d %H:%M:%S')},536 - {UPPER[l]:5} [main:QuorumPeerConfig@101] - {m}", UPPER),
    "iso": (lambda t, l, m: f"{f(t, '%Y-%m-%dT%H:%M:%S')}+00:00 {UPPER[l]} {m}", UPPER),
    "journald": (lambda t, l, m: f"{f(t, '%Y-%m-%dT%H:%M:%S')}+0000 host app[12]: {m}", None),
    "nginx": (lambda t, l, m: f"{f(t, '%Y/%m/%d %H:%M:%S')} [{l}] 12#12: *3 {m}", {"info": 1, "warn": 1, "error": 1}),
    "access": (lambda t, l, m: f'10.0.0.1 - - [{f(t, "%d/%b/%Y:%H:%M:%S")} +0000] "GET /{quote(m)} HTTP/1.1" 200 12', None),
    "postgres": (lambda t, l, m: f"{f(t, '%Y-%m-%d %H:%M:%S')}.123 UTC [12] {UPPER[l]}:  {m}", {"info": 1, "error": 1, "fatal": 1}),
    "klog": (lambda t, l, m: f"{GLOG[l]}{f(t, '%m%d %H:%M:%S')}.123456       1 main.go:10] {m}", GLOG),
    "glog with a year": (lambda t, l, m: f"{GLOG[l]}{f(t, '%Y%m%d %H:%M:%S')}.123456       1 main.cc:10] {m}", GLOG),
    "json": (lambda t, l, m: json.dumps({"level": PINO[l], "time": int(t.timestamp() * 1000), "pid": 1, "msg": m}), PINO),
    "docker": (
        lambda t, l, m: json.dumps({"log": f"{UPPER[l]} {m}\n", "stream": "stdout", "time": f(t, "%Y-%m-%dT%H:%M:%S.5Z")}),
        UPPER,
    ),
    "cef": (
        lambda t, l, m: f"CEF:0|V|P|1.0|100|Name|{dict(info=2, warn=5, error=8, fatal=10)[l]}|rt={int(t.timestamp() * 1000)} msg={m}",
        {"info": 1, "warn": 1, "error": 1, "fatal": 1},
    ),
    "rfc 5424": (lambda t, l, m: f"<{16 * 8 + SYSLOG[l]}>1 {f(t, '%Y-%m-%dT%H:%M:%S')}.003Z host app - - - {m}", SYSLOG),
    "rfc 3164": (lambda t, l, m: f"<{8 + SYSLOG[l]}>{f(t, '%b')} {day(t)} {f(t, '%H:%M:%S')} host app[1]: {m}", SYSLOG),
    "iis": (lambda t, l, m: f"{f(t, '%Y-%m-%d %H:%M:%S')} 10.0.0.1 GET /{quote(m)} - 80 - 10.0.0.2 200 0 0 15", None),
    "java": (
        lambda t, l, m: f"{f(t, '%b')} {t.day}, {f(t, '%Y')} {int(f(t, '%I'))}{f(t, ':%M:%S %p')} org.x.Y run\n{JAVA[l]}: {m}",
        JAVA,
    ),
    "python": (lambda t, l, m: f"{f(t, '%Y-%m-%d %H:%M:%S')},123 - app.main - {UPPER[l]} - {m}", UPPER),
    "go": (lambda t, l, m: f"{f(t, '%Y/%m/%d %H:%M:%S')} main.go:12: {m}", None),
    "logfmt": (lambda t, l, m: f'time="{f(t, "%Y-%m-%dT%H:%M:%SZ")}" level={l} msg="{m}"', UPPER),
    "mysql": (lambda t, l, m: f"{f(t, '%y%m%d %H:%M:%S')} [{dict(info='Note', warn='Warning', error='ERROR')[l]}] {m}", {"info": 1, "warn": 1, "error": 1}),
    "redis": (lambda t, l, m: f"12345:M {f(t, '%d %b %Y %H:%M:%S')}.123 * {m}", None),
    "american": (lambda t, l, m: f"{f(t, '%m/%d/%Y %I:%M:%S %p')} {UPPER[l]} {m}", UPPER),
    "ctime": (lambda t, l, m: f"{f(t, '%a %b')} {day(t)} {f(t, '%H:%M:%S %Y')} {m}", None),
    "laravel": (lambda t, l, m: f"[{f(t, '%Y-%m-%d %H:%M:%S')}] local.{UPPER[l]}: {m}", UPPER),
    "ruby": (lambda t, l, m: f"{UPPER[l][0]}, [{f(t, '%Y-%m-%dT%H:%M:%S')}.123456 #1] {UPPER[l]:>5} -- : {m}", UPPER),
}

MESSAGES = ["started", "disk is nearly full", "connection to 10.0.0.7 timed out", "user logged in", "cache miss for key 17"]

for name, (line, levels) in FORMATS.items():
    known = list(levels or {"info": 1})
    entries = []
    for n in range(150):
        time, level = BASE + timedelta(minutes=n), chance.choice(known)
        entries.append((time, level, line(time, level, f"{chance.choice(MESSAGES)} {n}")))
    file = f"{name.replace(' ', '-')}.log"
    write(file, "".join(entry + "\n" for _, _, entry in entries))
    path = quote(file)

    def select(test):
        return [part for entry in entries if test(entry) for part in entry[2].split("\n")]

    add(f"{name}, last lines", f"{path}?lines=20", select(lambda e: True)[-20:])
    since, until = BASE + timedelta(minutes=40), BASE + timedelta(minutes=90)
    # Some formats have whole seconds only, others add a fraction to each.
    add(f"{name}, since", f"{path}?since={stamp(since)}", select(lambda e: e[0] >= since))
    add(f"{name}, span", f"{path}?since={stamp(since)}&until={stamp(until)}", select(lambda e: since <= e[0] < until))
    add(f"{name}, text", f"{path}?text=TIMED%20OUT&lines=1000", select(lambda e: "timed out" in e[2].lower() or "timed%20out" in e[2]))
    add(f"{name}, expression", f"{path}?regex=miss.*%5B37%5D&lines=1000", select(lambda e: re.search("miss.*[37]", e[2])))
    if levels:
        for level in ["warn", "error"]:
            wanted = LEVELS[LEVELS.index(level) :]
            add(f"{name}, {level}", f"{path}?level={level}&lines=1000", select(lambda e: e[1] in wanted))
    else:
        add(f"{name}, level", f"{path}?level=warn", [], "no entry here has a level in a known format")

# grep replaced spaces in URLs of access logs; the text case above allows for both.
cases[:] = [case for case in cases if not (case["name"] in ("access, text", "iis, text"))]

plain = [f"2026-03-04T{n // 60:02}:{n % 60:02}:00Z INFO message {n}" for n in range(600)]
text = "".join(line + "\n" for line in plain)
half = len(text) // 2
packers = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(level=9).compress,
}
for ending, pack in packers.items():
    write(f"packed-{ending}.log", "2026-03-04T23:00:00Z INFO newest\n")
    write(f"packed-{ending}.log.1.{ending}", pack(text.encode()))
    add(f"rotated {ending}", f"packed-{ending}.log?lines=1000", plain + ["2026-03-04T23:00:00Z INFO newest"])
    add(f"text in {ending}", f"packed-{ending}.log?text=message%2042", [line for line in plain if "message 42" in line])
    write(f"members-{ending}.log.{ending}", pack(text[:half].encode()) + pack(text[half:].encode()))
    add(f"{ending} of two members", f"members-{ending}.log?lines=1000", plain)
    write(f"cut-{ending}.log.{ending}", pack(text.encode())[:60])
    add(f"{ending} that is cut", f"cut-{ending}.log?lines=1", [], "damaged or incomplete")
    write(f"other-{ending}.log.{ending}", "not compressed\n")
    add(f"{ending} by name only", f"other-{ending}.log", [], "not in a known format")
write("zipped.log", text)
write("zipped.log.1.zip", b"PK\x03\x04")
add("a zip is named", "zipped.log?lines=1000", plain, "not read, because the compression is not")

for name, encoding, mark in [
    ("utf-16-le with a mark", "utf-16-le", "\ufeff"),
    ("utf-16-be with a mark", "utf-16-be", "\ufeff"),
    ("utf-16-le", "utf-16-le", ""),
    ("utf-16-be", "utf-16-be", ""),
    ("utf-8 with a mark", "utf-8", "\ufeff"),
]:
    lines = [f"2026-03-04 {n // 60 % 24:02}:{n % 60:02}:00 {chance.choice(['INFO', 'ERROR'])} gr\u00fcn \u65e5\u672c \U0001f600 {n}" for n in range(900)]
    file = f"{name.replace(' ', '-')}.log"
    write(file, (mark + "\r\n".join(lines) + "\r\n").encode(encoding))
    add(name, f"{file}?lines=10000", lines)
    add(f"{name}, last", f"{file}?lines=3", lines[-3:])
    add(f"{name}, level", f"{file}?level=error&lines=10000", [line for line in lines if "ERROR" in line])
    add(f"{name}, text", f"{file}?text=GR%C3%9CN%20%E6%97%A5%E6%9C%AC%20%F0%9F%98%80%2077", [l for l in lines if "\U0001f600 77" in l])
write("latin.log", "gr\u00fcn\nend\n".encode("latin-1"))
add("latin-1", "latin.log", ["gr\ufffdn", "end"], "not UTF-8")

# Times that run backwards.
order = list(range(300))
chance.shuffle(order)
shuffled = [f"2026-03-04T{n // 60:02}:{n % 60:02}:00Z INFO shuffled {n}" for n in order]
write("shuffled.log", "".join(line + "\n" for line in shuffled))
jump = [f"2026-03-04T{n // 60:02}:{n % 60:02}:00Z INFO jump {n}" for n in [*range(300, 900), *range(0, 600)]]
write("jump.log", "".join(line + "\n" for line in jump))
for name, lines in [("shuffled", shuffled), ("jump", jump)]:
    for since, until in [(30, 200), (100, 130), (250, 290)]:
        span = f"since=2026-03-04T{since // 60:02}:{since % 60:02}:00Z&until=2026-03-04T{until // 60:02}:{until % 60:02}:00Z"
        wanted = [line for line in lines if since <= int(line.rsplit(" ", 1)[1]) < until]
        add(f"times run backwards, {name}", f"{name}.log?{span}", wanted)

trace = "2026-03-04T10:00:00Z ERROR broken\njava.lang.Exception: x\n\tat a.B(C.java:1)\nCaused by: java.io.IOException: disk\n\t... 3 more\n"
write("trace.log", ("2026-03-04T09:59:00Z INFO before\n" + trace + "2026-03-04T10:01:00Z INFO after\n") * 3)
add("stack traces", "trace.log?level=error", trace.splitlines() * 3)
add("text in a stack trace", "trace.log?text=IOException&lines=5", trace.splitlines())
add("expression in a stack trace", "trace.log?regex=%5ECaused%20by&lines=5", trace.splitlines())
write("open.log", "one\ntwo\nlast")
add("no final line end", "open.log", ["one", "two", "last"])
write("dos.log", "one\r\n\r\ntwo\r\n")
add("carriage returns", "dos.log", ["one", "", "two"])
write("long.log", "a\n" + "x" * 20_000 + "\nb\n")
add("a long line", "long.log", ["a", "x" * 8192 + " ... (11808 more bytes)", "b"])
write("empty.log", "")
add("an empty log", "empty.log", [])
write("parts.log", text)
add("raw lines", "parts.log?lines=3-5", plain[2:5])
add("raw last lines", "parts.log?lines=-2", plain[-2:])
add("raw bytes", "parts.log?bytes=0-99", text[:100].splitlines())
write("parts.log.1.gz", gzip.compress(text.encode()))
add("raw lines of a compressed file", "parts.log.1.gz?lines=3-5", plain[2:5])
json.dump(cases, sys.stdout)
