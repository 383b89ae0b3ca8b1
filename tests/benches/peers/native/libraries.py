"""Native libraries over real files, for comparison with the providers.

`libraries.py DIRECTORY` makes the files and prints one JSON line: the cases, each with the provider, its configuration, the
reference that belljar reads, and the library. Then it answers each line `CASE COUNT` of standard input with the processor
time of COUNT calls of the library, in nanoseconds. Starts of processes and imports are not counted.
"""

import csv
import email
import email.policy
import http.server
import io
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time

import feedparser
import icalendar
import openpyxl
import pandas
import pyarrow
import pyarrow.parquet
import pypdfium2
import recurring_ical_events
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas

ROOT = pathlib.Path(sys.argv[1])
WORDS = "tide bell harbour glass light north water stone quiet signal garden window letter number".split()
CASES = []


def case(provider, reference, library, run, config="fs = { \"/data\" = \"data\" }"):
    CASES.append({"provider": provider, "reference": reference, "library": library, "config": config, "run": run})


def place(provider):
    directory = ROOT / provider / "data"
    directory.mkdir(parents=True)
    return directory


def words(choose, count):
    return " ".join(choose.choice(WORDS) for _ in range(count))


def files():
    text = place("files") / "notes.md"
    text.write_text("# Notes\n" + "".join(words(random.Random(line), 12) + "\n" for line in range(800)))
    case("files", "notes.md", "open().read()", lambda: text.read_text())


def git():
    work = place("git")
    run = lambda *words: subprocess.run(["git", "-C", work, *words], check=True, capture_output=True)
    subprocess.run(["git", "init", "-q", work], check=True)
    for step in range(20):
        for name in range(40):
            (work / f"file-{name}.md").write_text("".join(words(random.Random(name * 100 + line + step * (line % 7 == 0)), 10) + "\n" for line in range(200)))
        run("add", "-A")
        run("-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", f"Step {step}")
    run("gc", "-q")
    batch = subprocess.Popen(["git", "-C", work, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def show():
        batch.stdin.write(b"HEAD:file-7.md\n")
        batch.stdin.flush()
        size = int(batch.stdout.readline().split()[2])
        batch.stdout.read(size + 1)

    case("git", "tree/HEAD/file-7.md", "git cat-file --batch", show)
    CASES[-1]["child"] = batch.pid


def tables():
    directory = place("tables")
    choose = random.Random(5)
    rows = [[number, words(choose, 2), choose.random() * 1000, f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}"] for number in range(5000)]
    names = ["number", "name", "amount", "day"]
    with open(directory / "sales.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        writer.writerows(rows)
    book = openpyxl.Workbook()
    for row in [names, *rows[:500]]:
        book.active.append(row)
    book.save(directory / "book.xlsx")
    table = pyarrow.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
    pyarrow.parquet.write_table(table, directory / "sales.parquet")
    case("tables", "sales.csv", "pandas.read_csv, 100 rows", lambda: pandas.read_csv(directory / "sales.csv", nrows=100).to_csv())
    case("tables", "book.xlsx/Sheet", "openpyxl, 100 rows", lambda: list(openpyxl.load_workbook(directory / "book.xlsx", read_only=True).active.iter_rows(max_row=101, values_only=True)))
    case("tables", "sales.parquet", "pyarrow, 100 rows", lambda: next(pyarrow.parquet.ParquetFile(directory / "sales.parquet").iter_batches(100)).to_pylist())


def pdf():
    path = place("pdf") / "report.pdf"
    page = canvas.Canvas(str(path), pagesize=A4)
    for number in range(30):
        for line in range(45):
            page.drawString(60, 780 - line * 16, words(random.Random(number * 50 + line), 11))
        page.showPage()
    page.save()

    def text():
        document = pypdfium2.PdfDocument(path)
        return document[9].get_textpage().get_text_range()

    case("pdf", "report.pdf/pages/10", "PDFium, one page", text)


def sqlite():
    path = place("sqlite") / "shop.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE readings (id INTEGER PRIMARY KEY, station TEXT, temperature REAL, note TEXT)")
    choose = random.Random(6)
    database.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", ((n, words(choose, 1), choose.random() * 30, words(choose, 4)) for n in range(50000)))
    database.commit()
    database.close()

    def page():
        connection = sqlite3.connect(path)
        rows = json.dumps(connection.execute("SELECT * FROM readings WHERE id > 20000 ORDER BY id LIMIT 100").fetchall())
        connection.close()
        return rows

    case("sqlite", "tables/readings?after=20000", "sqlite3, 100 rows", page, "fs = { \"/db\" = \"data\" }\nenv = { DATABASE = \"shop.db\" }")


def mail():
    directory = place("mail")
    message = email.message.EmailMessage(policy=email.policy.default)
    message["From"], message["To"], message["Subject"] = "Ann <a@example.com>", "Bob <b@example.com>", "The tides of \u00fcbermorgen"
    message["Date"], message["Message-ID"] = "Tue, 24 Nov 2026 10:00:00 +0000", "<1@example.com>"
    message.set_content("".join(words(random.Random(line), 10) + "\n" for line in range(60)))
    message.add_alternative("<p>" + words(random.Random(1), 300) + "</p>", subtype="html")
    message.add_attachment(os.urandom(20000), maintype="application", subtype="octet-stream", filename="data.bin")
    source = message.as_bytes()
    for folder in ("cur", "new", "tmp"):
        (directory / "Inbox" / folder).mkdir(parents=True)
    (directory / "Inbox" / "cur" / "1.a:2,S").write_bytes(source)

    def read():
        parsed = email.message_from_bytes(source, policy=email.policy.default)
        return [parsed["subject"], parsed["from"], parsed.get_body(("plain",)).get_content(), [part.get_filename() for part in parsed.iter_attachments()]]

    case("mail", "@message", "email, one message", read, "fs = { \"/mail\" = \"data\" }")


def calendar():
    path = place("calendar") / "team.ics"
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//example//EN"]
    for number in range(150):
        lines += ["BEGIN:VEVENT", f"UID:{number}@example.com", f"DTSTART;TZID=Europe/Berlin:2026{number % 12 + 1:02}{number % 28 + 1:02}T100000", "DURATION:PT1H", f"SUMMARY:{words(random.Random(number), 3)}"]
        if number % 5 == 0:
            lines.append("RRULE:FREQ=WEEKLY;BYDAY=MO,WE")
        lines.append("END:VEVENT")
    path.write_text("\r\n".join([*lines, "END:VCALENDAR", ""]))
    day = __import__("datetime").date(2026, 11, 23)
    case("calendar", "days/2026-11-23", "recurring_ical_events, a day", lambda: recurring_ical_events.of(icalendar.Calendar.from_ical(path.read_bytes())).at(day))


def logs():
    path = place("logs") / "app.log"
    levels = ["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"]
    with open(path, "w") as out:
        for number in range(8000):
            choose = random.Random(number)
            out.write(f"2026-11-24T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z {choose.choice(levels)} {words(choose, 9)}\n")
    pattern = re.compile(rb"^\S+ (WARN|ERROR) .*$", re.MULTILINE)
    case("logs", "app.log?level=warn", "re over the bytes", lambda: [line for line in pattern.findall(path.read_bytes())][-200:])


def web():
    place("web")
    items = "".join(f"<item><title>{words(random.Random(n), 5)}</title><link>https://example.com/{n}</link><guid>{n}</guid><pubDate>Tue, 24 Nov 2026 10:{n % 60:02}:00 GMT</pubDate><description>{words(random.Random(n), 40)}</description></item>" for n in range(50))
    feed = f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>https://example.com/</link><description>x</description>{items}</channel></rss>'.encode()

    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "application/rss+xml")
            self.send_header("content-length", str(len(feed)))
            self.end_headers()
            self.wfile.write(feed)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    config = f"cache = \"off\"\nenv = {{ WEB = 'news = \"{origin}/feed\"' }}\n\n[[mounts.web.http]]\norigin = \"{origin}\"\nnetworks = [\"127.0.0.1\"]"
    case("web", "news", "feedparser, 50 items", lambda: feedparser.parse(io.BytesIO(feed)), config)


def spent(one):
    """The processor time of this thread, or of the library's process, in nanoseconds."""
    if "child" in one:
        return int(pathlib.Path(f"/proc/{one['child']}/schedstat").read_text().split()[0])
    return time.thread_time_ns()


for make in (files, git, tables, pdf, sqlite, mail, calendar, logs, web):
    make()
print(json.dumps([{key: value for key, value in one.items() if key not in ("run", "child")} for one in CASES]), flush=True)
for line in sys.stdin:
    index, count = map(int, line.split())
    one = CASES[index]
    before = spent(one)
    for _ in range(count):
        one["run"]()
    print(spent(one) - before, flush=True)
