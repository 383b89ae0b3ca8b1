"""Calendars of all kinds, and their occurrences as recurring_ical_events computes them.

Run as `calendar.py DIR`: writes .ics files to DIR, and prints the cases as JSON. A case expects the events of a span as
[summary, start, end]. Where the library differs from RFC 5545, the case says so and expects what the RFC says.
"""

import datetime
import json
import pathlib
import random
import sys

# This file has the name of a module that the libraries import.
sys.path.pop(0)

import zoneinfo

import icalendar
import recurring_ical_events

OUT = pathlib.Path(sys.argv[1])
# The zone of the mount.
HOME = zoneinfo.ZoneInfo("Europe/Berlin")
UTC = datetime.timezone.utc
DAY = datetime.timedelta(days=1)
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Kolkata", "America/Sao_Paulo", "UTC"]
WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
CASES = []


def write(name, text, encoding="utf-8"):
    (OUT / name).parent.mkdir(parents=True, exist_ok=True)
    (OUT / name).write_bytes(text.encode(encoding) if isinstance(text, str) else text)


def calendar(*parts, head=""):
    body = "\n".join(part.strip("\n") for part in parts)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//belljar//corpus//EN\n{head}{body}\nEND:VCALENDAR\n".replace("\n", "\r\n")


def event(*lines, uid="one", summary="One"):
    return "\n".join(["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20200101T000000Z", f"SUMMARY:{summary}", *lines, "END:VEVENT"])


def stamp(value):
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    value = value.replace(tzinfo=HOME) if value.tzinfo is None else value
    text = value.astimezone(UTC).astimezone(HOME).isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def span_of(reference):
    """The first day of the span of a reference, and the day after its last."""
    family, day = reference.split("/")
    if family == "days":
        first = datetime.date.fromisoformat(day)
        return first, first + DAY
    if family == "weeks":
        first = datetime.date.fromisocalendar(int(day[:4]), int(day[6:]), 1)
        return first, first + 7 * DAY
    year, month = int(day[:4]), int(day[5:])
    return datetime.date(year, month, 1), datetime.date(year + month // 12, month % 12 + 1, 1)


def midnight(day):
    return datetime.datetime(day.year, day.month, day.day, tzinfo=HOME)


def native(text, reference, exact=None):
    """What the library says. `exact` is the length of occurrences, for the events of which the RFC's length is exact."""
    first, after = span_of(reference)
    query = recurring_ical_events.of(icalendar.Calendar.from_ical(text))
    found = []
    for one in query.between(midnight(first), midnight(after)):
        start, end = one["DTSTART"].dt, one["DTEND"].dt
        if exact is not None and isinstance(start, datetime.datetime):
            end = start.astimezone(UTC) + exact if start.tzinfo else (start.replace(tzinfo=HOME).astimezone(UTC) + exact)
        found.append([str(one["SUMMARY"]), stamp(start), stamp(end)])
    return found


def case(name, file, reference, expected):
    CASES.append({"name": name, "reference": f"{reference}?calendar={file}&format=json", "expected": sorted(expected)})


def compare(name, file, text, *references, exact=None):
    """A file and spans for which the library is right."""
    write(file, text)
    for reference in references:
        case(name, file, reference, native(text, reference, exact))


def fixed(name, file, text, expected, encoding="utf-8"):
    """A file that the library refuses, or reads in another way than the RFC; `expected` has the events by span."""
    write(file, text, encoding)
    for reference, events in expected.items():
        case(name, file, reference, events)


# Generated rules ------------------------------------------------------------------------------------------------------


def some(chance, values, most):
    return sorted(chance.sample(values, chance.randint(1, most)))


def joined(values):
    return ",".join(map(str, values))


def limits(chance, frequency, all_day):
    """The BY parts of a rule, in a combination that the RFC allows for the frequency."""
    parts = {}
    signed = lambda values: [one * chance.choice([1, 1, -1]) for one in values]
    nth = lambda most: joined(f"{chance.choice([1, -1]) * chance.randint(1, most)}{day}" for day in some(chance, WEEKDAYS, 2))
    weekdays = lambda: joined(some(chance, WEEKDAYS, 4))
    if frequency == "YEARLY":
        kind = chance.randrange(7)
        if kind == 1:
            parts["BYMONTH"] = joined(some(chance, range(1, 13), 3))
        if kind == 2:
            parts |= {"BYMONTH": joined(some(chance, range(1, 13), 2)), "BYDAY": chance.choice([nth(4), weekdays()])}
        if kind == 3:
            parts["BYDAY"] = nth(20)
        if kind == 4:
            parts["BYYEARDAY"] = joined(signed(some(chance, range(1, 367), 3)))
        if kind == 5:
            parts |= {"BYWEEKNO": joined(signed(some(chance, range(1, 53), 2))), "BYDAY": weekdays()}
        if kind == 6:
            parts |= {"BYMONTH": joined(some(chance, range(1, 13), 2)), "BYMONTHDAY": joined(signed(some(chance, range(1, 32), 3)))}
    if frequency == "MONTHLY":
        kind = chance.randrange(6)
        if kind == 1:
            parts["BYMONTHDAY"] = joined(signed(some(chance, range(1, 32), 3)))
        if kind == 2:
            parts["BYDAY"] = nth(4)
        if kind == 3:
            parts |= {"BYDAY": weekdays(), "BYSETPOS": joined(signed(some(chance, range(1, 5), 2)))}
        if kind == 4:
            parts |= {"BYDAY": weekdays(), "BYMONTHDAY": joined(some(chance, range(1, 32), 9))}
        if kind == 5:
            parts |= {"BYMONTH": joined(some(chance, range(1, 13), 4)), "BYDAY": nth(4)}
    if frequency == "WEEKLY":
        if chance.random() < 0.7:
            parts["BYDAY"] = weekdays()
        if chance.random() < 0.15:
            parts["BYMONTH"] = joined(some(chance, range(1, 13), 5))
        if "BYDAY" in parts and chance.random() < 0.15:
            parts["BYSETPOS"] = str(chance.choice([1, -1]))
    if frequency in ("DAILY", "HOURLY", "MINUTELY"):
        if chance.random() < 0.3:
            parts["BYDAY"] = weekdays()
        if chance.random() < 0.2:
            parts["BYMONTH"] = joined(some(chance, range(1, 13), 5))
        if chance.random() < 0.15:
            parts["BYMONTHDAY"] = joined(signed(some(chance, range(1, 32), 9)))
    if not all_day:
        if frequency in ("HOURLY", "MINUTELY") or chance.random() < 0.15:
            parts["BYHOUR"] = joined(some(chance, range(24), 3))
        if frequency == "MINUTELY" or chance.random() < 0.1:
            parts["BYMINUTE"] = joined(some(chance, range(0, 60, 5), 2))
    if chance.random() < 0.25:
        parts["WKST"] = chance.choice(["MO", "SU", "WE"])
    return parts


def generated(seed):
    """A recurring event with a random rule, and two months of it: one at a time when clocks change, and any other one."""
    chance = random.Random(seed)
    all_day = chance.random() < 0.35
    zone = chance.choice(ZONES)
    frequency = chance.choice(["YEARLY", "MONTHLY", "MONTHLY", "WEEKLY", "WEEKLY", "DAILY", "DAILY"] + ([] if all_day else ["HOURLY", "MINUTELY"]))
    recent = frequency in ("HOURLY", "MINUTELY")
    day = datetime.date(2021 if recent else 1999, 1, 1) + chance.randrange(500 if recent else 9000) * DAY
    clock = datetime.time(chance.choice([0, 1, 2, 2, 3, 9, 17, 23]), chance.choice([0, 30, 15]))
    rule = {"FREQ": frequency}
    if chance.random() < 0.4:
        rule["INTERVAL"] = str(chance.randint(2, 5))
    rule |= limits(chance, frequency, all_day)
    years = chance.randint(1, 14)
    if chance.random() < 0.3:
        rule["COUNT"] = str(chance.choice([1, 3, 10, 50, 200, 700]))
    elif chance.random() < 0.3:
        until = day + years * 365 * DAY
        rule["UNTIL"] = until.strftime("%Y%m%d") if all_day else until.strftime("%Y%m%dT101500Z")
    begin = datetime.datetime.combine(day, clock)
    lines = ["RRULE:" + ";".join(f"{key}={value}" for key, value in rule.items())]
    if all_day:
        length = chance.randint(1, 3)
        lines += [f"DTSTART;VALUE=DATE:{day:%Y%m%d}", f"DTEND;VALUE=DATE:{day + length * DAY:%Y%m%d}"]
        exact = None
    else:
        exact = datetime.timedelta(minutes=chance.choice([15, 60, 90]))
        form = "%Y%m%dT%H%M%S"
        lines.append(f"DTSTART:{begin.strftime(form)}Z" if zone == "UTC" else f"DTSTART;TZID={zone}:{begin.strftime(form)}")
        lines.append(f"DURATION:PT{int(exact.total_seconds()) // 60}M")
    text = calendar(event(*lines))
    months = [f"months/{chance.randint(day.year, day.year + 12)}-{chance.choice([3, 10]):02}", f"months/{chance.randint(day.year, 2034)}-{chance.randint(1, 12):02}"]
    try:
        found = native(text, months[0], exact)
    except ValueError:
        # dateutil refuses parts that can never meet, such as BYSETPOS without days.
        return
    if not recent and chance.random() < 0.5 and found:
        # Without some of the occurrences.
        for _, start, _ in found[::3]:
            value = datetime.datetime.fromisoformat(start.replace("Z", "+00:00")) if "T" in start else None
            lines.append(f"EXDATE:{value.astimezone(UTC):%Y%m%dT%H%M%S}Z" if value else f"EXDATE;VALUE=DATE:{start.replace('-', '')}")
        text = calendar(event(*lines))
    compare(f"rule {seed}: {lines[0]} {lines[1]}", f"rules/{seed:04}.ics", text, *months, exact=exact)



# What real files do ---------------------------------------------------------------------------------------------------

BERLIN = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:DAYLIGHT
DTSTART:19810329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19961027T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE"""
MINE = """BEGIN:VTIMEZONE
TZID:Mine
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0500
TZOFFSETTO:+0545
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:20100404T030000
RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=1SU;UNTIL=20201231T000000Z
TZOFFSETFROM:+0545
TZOFFSETTO:+0645
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:20101003T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=1SU;UNTIL=20201231T000000Z
TZOFFSETFROM:+0645
TZOFFSETTO:+0545
END:STANDARD
END:VTIMEZONE"""
JULY = "months/2019-07"


def single(start, end, summary="One"):
    return [[summary, start, end]]


def zones():
    """Names of zones, and definitions of them."""
    for number, name in enumerate(["Europe/Berlin", "US/Eastern", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"]):
        lines = [f"DTSTART;TZID={name}:20190715T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY"]
        compare(f"the zone {name}", f"zones/{number}.ics", calendar(event(*lines)), JULY, "weeks/2019-W44", "weeks/2020-W10")
    # icalendar does not know the names with a path of other programs without their definitions.
    for number, name in enumerate(["/mozilla.org/20050126_1/Europe/Berlin", "/freeassociation.sourceforge.net/Europe/Berlin",
                                   "W. Europe Standard Time", "europe/berlin", '"Europe/Berlin"']):
        text = calendar(event(f"DTSTART;TZID={name}:20190715T100000", "DURATION:PT1H"))
        fixed(f"the zone {name}", f"zones/name{number}.ics", text, {"days/2019-07-15": single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00")})
    for name in ["Europe/Berlin", "/mozilla.org/20050126_1/Europe/Berlin", "Somewhere"]:
        lines = [f"DTSTART;TZID={name}:20190715T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO,TH"]
        text = calendar(BERLIN.format(name=name), event(*lines))
        compare(f"a definition of {name}", f"zones/defined-{len(name)}.ics", text, JULY, "weeks/2019-W44", "weeks/2020-W14")
    lines = ["DTSTART;TZID=Mine:20150415T033000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY"]
    compare("a zone of its own, with an end of its summer time", "zones/mine.ics", calendar(MINE, event(*lines)),
            "months/2015-10", "months/2016-04", "months/2020-10", "months/2024-04")
    for number, (offset, hour) in enumerate([("+0100", 15), ("-0500", 21)]):
        definition = f"BEGIN:VTIMEZONE\nTZID:Fixed{number}\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\nEND:STANDARD\nEND:VTIMEZONE"
        compare("a zone with one offset", f"zones/fixed{number}.ics", calendar(definition, event(f"DTSTART;TZID=Fixed{number}:20190715T140000", "DURATION:PT1H")), JULY)


def broken():
    """Properties in forms that the RFC does not allow; `problems` are parts of the notices that must be there."""
    good = event("DTSTART:20190715T080000Z", "DTEND:20190715T090000Z", uid="good", summary="Good")
    other = single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00", "Good")
    table = [
        ("a date without VALUE=DATE", ["DTSTART:20190715"], single("2019-07-15", "2019-07-16"), []),
        ("a date with a wrong VALUE", ["DTSTART;VALUE=DATE-TIME:20190715"], single("2019-07-15", "2019-07-16"), []),
        ("a time with VALUE=DATE", ["DTSTART;VALUE=DATE:20190715T000000"], single("2019-07-15", "2019-07-16"), []),
        ("dashes and colons", ["DTSTART:2019-07-15T10:00:00", "DTEND:2019-07-15T11:00:00"], single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00"), []),
        ("no seconds", ["DTSTART:20190715T1000Z", "DURATION:PT1H"], single("2019-07-15T12:00:00+02:00", "2019-07-15T13:00:00+02:00"), []),
        ("the end of the day", ["DTSTART:20190715T230000", "DTEND:20190715T240000"], single("2019-07-15T23:00:00+02:00", "2019-07-16T00:00:00+02:00"), []),
        ("a leap second", ["DTSTART:20190715T215960Z"], single("2019-07-15T23:59:59+02:00", "2019-07-15T23:59:59+02:00"), []),
        ("no such date", ["DTSTART:20190732T100000"], [], ["there is no such date"]),
        ("no such time", ["DTSTART:20190715T250000"], [], ["there is no such time"]),
        ("no date", ["DTSTART:soon"], [], ['DTSTART is "soon"']),
        ("the year 0", ["DTSTART:00000101T000000Z"], [], ["there is no such date"]),
        ("no start", ["DURATION:PT1H"], [], ["it has no DTSTART"]),
        ("no end", ["DTSTART:20190715T100000Z"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), []),
        ("an end before the start", ["DTSTART:20190715T100000Z", "DTEND:20190715T090000Z"], single("2019-07-15T11:00:00+02:00", "2019-07-15T12:00:00+02:00"), ["DTEND is before DTSTART"]),
        ("an all-day event without any day", ["DTSTART;VALUE=DATE:20190715", "DTEND;VALUE=DATE:20190715"], single("2019-07-15", "2019-07-16"), []),
        ("an end that is a date", ["DTSTART:20190715T100000", "DTEND;VALUE=DATE:20190716"], single("2019-07-15T10:00:00+02:00", "2019-07-16T00:00:00+02:00"), []),
        ("an absurd duration", ["DTSTART:20190715T100000Z", "DURATION:P99999999999D"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ["DURATION"]),
        ("a duration of years", ["DTSTART:20190715T100000Z", "DURATION:P1Y"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ['DURATION is "P1Y"']),
        ("a negative duration", ["DTSTART:20190715T100000Z", "DURATION:-PT1H"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ["negative"]),
        ("an end that is no date", ["DTSTART:20190715T100000Z", "DTEND:later"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ['DTEND is "later"']),
        ("a rule that is none", ["DTSTART:20190715T100000Z", "RRULE:FREQ=SOMETIMES"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ["SOMETIMES"]),
        ("a rule without interval", ["DTSTART:20190715T100000Z", "RRULE:FREQ=DAILY;INTERVAL=0"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ["INTERVAL"]),
        ("a rule that never ends, as a negative COUNT", ["DTSTART:20190701T100000Z", "RRULE:FREQ=MONTHLY;BYMONTHDAY=15;COUNT=-1"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), []),
        ("an EXDATE that is none", ["DTSTART:20190715T100000Z", "EXDATE:never"], single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), ['EXDATE is "never"']),
        ("an unknown zone", ["DTSTART;TZID=Mars/Olympus:20190715T100000"], single("2019-07-15T10:00:00+02:00", "2019-07-15T10:00:00+02:00"), ["Mars/Olympus"]),
        ("UTC with a TZID: the RFC forbids it, and UTC counts", ["DTSTART;TZID=America/New_York:20190715T080000Z"], single("2019-07-15T10:00:00+02:00", "2019-07-15T10:00:00+02:00"), []),
    ]
    for number, (name, lines, found, problems) in enumerate(table):
        text = calendar(event(*lines), good)
        write(f"broken/{number:02}.ics", text)
        events = sorted(found + other)
        CASES.append({"name": name, "reference": f"days/2019-07-15?calendar=broken/{number:02}.ics&format=json", "expected": {"events": events, "problems": problems}})
    # Nothing of a file with many broken events is lost.
    text = calendar(*(event(*lines, uid=f"u{number}", summary=f"S{number:02}") for number, (_, lines, _, _) in enumerate(table)), good)
    write("broken/all.ics", text)
    events = sorted([[f"S{number:02}", *times[0][1:]] for number, (_, _, times, _) in enumerate(table) if times] + other)
    problems = [words for *_, all_words in table for words in all_words]
    CASES.append({"name": "all of them in one file", "reference": "days/2019-07-15?calendar=broken/all.ics&format=json", "expected": {"events": events, "problems": problems}})


def files():
    """Files in forms that the RFC does not allow, or only allows."""
    lines = ["DTSTART;TZID=Europe/Berlin:20190715T100000", "DTEND;TZID=Europe/Berlin:20190715T110000"]
    found = {"days/2019-07-15": single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00", "Besprechung über Äpfel – 日本")}
    text = calendar(event(*lines, summary="Besprechung über Äpfel – 日本"))
    fixed("UTF-8", "files/utf8.ics", text, found)
    fixed("a byte order mark", "files/bom.ics", "\ufeff" + text, found)
    fixed("UTF-16", "files/utf16.ics", text, found, "utf-16")
    fixed("line feeds only", "files/lf.ics", text.replace("\r\n", "\n"), found)
    fixed("carriage returns only", "files/cr.ics", text.replace("\r\n", "\r"), found)
    fixed("empty lines", "files/empty-lines.ics", text.replace("\r\n", "\r\n\r\n"), found)
    fixed("no line break at the end", "files/no-end.ics", text.rstrip("\r\n"), found)
    fixed("lower case", "files/lower.ics", "".join(line.split(":")[0].lower() + ":" + line.split(":", 1)[1] if ":" in line else line for line in text.splitlines(True)).replace("begin:VEVENT", "begin:vevent"), found)
    for width in (5, 7, 20, 75):
        folded = []
        for line in text.encode().split(b"\r\n"):
            # Folds at bytes, within characters too.
            pieces = [line[at:at + width] for at in range(0, len(line), width)] or [b""]
            folded.append(b"\r\n ".join(pieces) if not line.startswith((b"BEGIN", b"END")) else line)
        fixed(f"lines folded at {width} bytes", f"files/folded{width}.ics", b"\r\n".join(folded), found)
    latin = {"days/2019-07-15": single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00", "Café “Größe”")}
    fixed("Windows-1252", "files/latin.ics", calendar(event(*lines, summary="Café “Größe”")), latin, "cp1252")
    both = {"days/2019-07-15": sorted(single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00") + single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00", "Two"))}
    second = event("DTSTART:20190715T100000Z", uid="two", summary="Two")
    fixed("two calendars in one file", "files/two.ics", calendar(event(*lines)) + calendar(second), both)
    unknown = "BEGIN:X-THING\nDTSTART:20000101T000000Z\nSUMMARY:No\nEND:X-THING"
    alarm = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-PT5M\nSUMMARY:No\nDESCRIPTION:No\nEND:VALARM"
    todo = "BEGIN:VTODO\nUID:t\nDUE:20190715T100000Z\nSUMMARY:No\nEND:VTODO"
    journal = "BEGIN:VJOURNAL\nUID:j\nDTSTART:20190715T100000Z\nSUMMARY:No\nEND:VJOURNAL"
    busy = "BEGIN:VFREEBUSY\nUID:f\nDTSTART:20190715T100000Z\nEND:VFREEBUSY"
    fixed("other components", "files/others.ics", calendar(todo, unknown, event(*lines, alarm, unknown), journal, busy, second), both)
    fixed("properties after an alarm", "files/alarm.ics", calendar(event(alarm, *lines), event(alarm, alarm, "DTSTART:20190115T100000Z", "RRULE:FREQ=MONTHLY", uid="two", summary="Two")),
          {"days/2019-07-15": sorted(single("2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00") + single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00", "Two"))})
    nameless = calendar(event(*lines), second).replace("UID:one\r\n", "").replace("UID:two\r\n", "")
    fixed("events without UID", "files/no-uid.ics", nameless, both)
    open_end = calendar(event(*lines), second).replace("END:VEVENT\r\nBEGIN", "BEGIN", 1)
    write("files/open.ics", open_end)
    CASES.append({"name": "an event without its end", "reference": "days/2019-07-15?calendar=files/open.ics&format=json", "expected": {"events": both["days/2019-07-15"], "problems": ["it has no END:VEVENT"]}})
    old = calendar(event("DTSTART:20190701T080000Z", "DTEND:20190701T090000Z", "RRULE:W1 MO WE #5", summary="x")).replace("VERSION:2.0", "VERSION:1.0")
    old = old.replace("SUMMARY:x", "SUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Caf=C3=A9 mit=\r\n Sahne")
    # Line breaks of quoted-printable text are no folding: the space belongs to the text.
    fixed("vCalendar 1.0", "files/old.vcs", old, {"weeks/2019-W28": [["Café mit Sahne", f"2019-07-{day:02}T10:00:00+02:00", f"2019-07-{day:02}T11:00:00+02:00"] for day in (8, 10)],
                                                  "weeks/2019-W29": [["Café mit Sahne", "2019-07-15T10:00:00+02:00", "2019-07-15T11:00:00+02:00"]]})


def repetitions():
    """RDATE, EXDATE, RECURRENCE-ID, SEQUENCE, and several of them."""
    weekly = ["DTSTART;TZID=Europe/Berlin:20190701T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=20"]
    instead = lambda when, *lines, summary="Moved": event(f"RECURRENCE-ID;TZID=Europe/Berlin:{when}", *lines, summary=summary)
    moved = ["DTSTART;TZID=Europe/Berlin:20190716T150000", "DURATION:PT30M"]
    spans = (JULY, "months/2019-08", "months/2019-10", "days/2019-07-15", "days/2019-07-16")
    table = {
        "rdate": [event(*weekly, "RDATE;TZID=Europe/Berlin:20190703T120000,20190717T120000")],
        "rdate of another zone": [event(*weekly, "RDATE:20190703T120000Z")],
        "rdate with a period": [event(*weekly, "RDATE;TZID=Europe/Berlin;VALUE=PERIOD:20190703T120000/PT3H,20190717T120000/20190717T123000")],
        "rdate alone": [event("DTSTART;TZID=Europe/Berlin:20190701T100000", "DURATION:PT1H", "RDATE;TZID=Europe/Berlin:20190703T120000")],
        "rdate of dates": [event("DTSTART;VALUE=DATE:20190701", "RDATE;VALUE=DATE:20190703,20190817")],
        "exdate": [event(*weekly, "EXDATE;TZID=Europe/Berlin:20190708T100000,20190722T100000")],
        "exdate twice": [event(*weekly, "EXDATE;TZID=Europe/Berlin:20190708T100000", "EXDATE;TZID=Europe/Berlin:20190722T100000")],
        "exdate in utc": [event(*weekly, "EXDATE:20190708T080000Z")],
        "exdate in another zone": [event(*weekly, "EXDATE;TZID=America/New_York:20190708T040000")],
        "exdate of a date": [event(*weekly, "EXDATE;VALUE=DATE:20190708")],
        "exdate of the start": [event(*weekly, "EXDATE;TZID=Europe/Berlin:20190701T100000")],
        "exdate of an all-day event": [event("DTSTART;VALUE=DATE:20190701", "RRULE:FREQ=DAILY;COUNT=10", "EXDATE;VALUE=DATE:20190703")],
        "a moved occurrence": [event(*weekly), instead("20190715T100000", *moved)],
        "a moved occurrence before its event": [instead("20190715T100000", *moved), event(*weekly)],
        "an occurrence moved to another month": [event(*weekly), instead("20190715T100000", "DTSTART;TZID=Europe/Berlin:20190816T150000", "DURATION:PT30M")],
        "a moved occurrence alone": [instead("20190715T100000", *moved)],
        "a moved and an excluded occurrence": [event(*weekly, "EXDATE;TZID=Europe/Berlin:20190715T100000"), instead("20190715T100000", *moved)],
        "a recurrence-id in utc": [event(*weekly), event("RECURRENCE-ID:20190715T080000Z", *moved, summary="Moved")],
        "two versions of a moved occurrence": [event(*weekly), instead("20190715T100000", "SEQUENCE:2", *moved), instead("20190715T100000", "SEQUENCE:1", "DTSTART;TZID=Europe/Berlin:20190717T150000", summary="Older")],
        "this and future": [event(*weekly), event("RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20190715T100000", *moved, summary="Later")],
        "this and future, twice": [event(*weekly), event("RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20190715T100000", *moved, summary="Later"),
                                   event("RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20190812T100000", "DTSTART;TZID=Europe/Berlin:20190812T080000", "DURATION:PT2H", summary="Earlier")],
        "an older and a newer version": [event(*weekly, "SEQUENCE:1"), event("DTSTART;TZID=Europe/Berlin:20190702T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=3", "SEQUENCE:2", summary="Newer")],
        "a newer version outside of the span": [event("DTSTART:20190715T100000Z", "SEQUENCE:1"), event("DTSTART:20230715T100000Z", "SEQUENCE:2")],
        "two rules": [event("DTSTART;TZID=Europe/Berlin:20190701T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=5", "RRULE:FREQ=MONTHLY;BYMONTHDAY=2")],
        "a start that the rule does not meet": [event("DTSTART;TZID=Europe/Berlin:20190702T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO")],
        "an end before the start": [event("DTSTART;TZID=Europe/Berlin:20190702T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;UNTIL=20190101T000000Z")],
        "until at the last occurrence": [event("DTSTART;TZID=Europe/Berlin:20190701T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;UNTIL=20190722T080000Z")],
        "until a second before": [event("DTSTART;TZID=Europe/Berlin:20190701T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;UNTIL=20190722T075959Z")],
        "until a date, for times": [event("DTSTART;TZID=Europe/Berlin:20190701T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;UNTIL=20190722")],
        "until a date, for dates": [event("DTSTART;VALUE=DATE:20190701", "RRULE:FREQ=WEEKLY;UNTIL=20190722")],
        "until a time, for dates": [event("DTSTART;VALUE=DATE:20190701", "RRULE:FREQ=WEEKLY;UNTIL=20190722T100000Z")],
        "a long event": [event("DTSTART;VALUE=DATE:20190620", "DTEND;VALUE=DATE:20190805")],
        "a repeated event of several days": [event("DTSTART;VALUE=DATE:20190628", "DTEND;VALUE=DATE:20190703", "RRULE:FREQ=MONTHLY;BYDAY=-1FR")],
        "a long event that started long ago": [event("DTSTART:20050101T000000Z", "DTEND:20300101T000000Z")],
        "floating times": [event("DTSTART:20190701T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=40", "EXDATE:20190703T100000")],
        "cancelled": [event(*weekly, "STATUS:CANCELLED")],
        "a rule of every second": [event("DTSTART:20190715T080000Z", "RRULE:FREQ=SECONDLY;INTERVAL=1800;COUNT=30")],
    }
    for number, (name, events) in enumerate(table.items()):
        compare(name, f"repetitions/{number:02}.ics", calendar(*events), *spans)
    # Night shifts: recurring_ical_events adds the length to the local time; the RFC says that the length of DTEND is exact,
    # and that of DURATION in hours too.
    for number, end in enumerate(["DTEND;TZID=Europe/Berlin:20190701T060000", "DURATION:PT8H"]):
        night = calendar(event("DTSTART;TZID=Europe/Berlin:20190630T220000", end, "RRULE:FREQ=DAILY"))
        expected = {"days/2019-10-26": [["One", f"2019-10-{day}T22:00:00+02:00", after] for day, after in [(25, "2019-10-26T06:00:00+02:00"), (26, "2019-10-27T05:00:00+01:00")]],
                    "days/2020-03-28": [["One", f"2020-03-{day}T22:00:00+01:00", after] for day, after in [(27, "2020-03-28T06:00:00+01:00"), (28, "2020-03-29T07:00:00+02:00")]]}
        fixed("a night when the clocks change", f"repetitions/night{number}.ics", night, expected)
    # dateutil takes all seven days of a week; the RFC takes what a rule does not say from DTSTART.
    week = calendar(event("DTSTART;VALUE=DATE:20190513", "RRULE:FREQ=YEARLY;BYWEEKNO=20"))
    fixed("a week of the year without a weekday", "repetitions/week.ics", week, {"months/2020-05": single("2020-05-11", "2020-05-12")})
    # dateutil takes the days that are in both lists; the RFC joins them.
    mixed = calendar(event("DTSTART;VALUE=DATE:20190701", "RRULE:FREQ=MONTHLY;BYDAY=1MO,FR"))
    fixed("weekdays with and without a number", "repetitions/mixed.ics", mixed, {"months/2019-08": [["One", f"2019-08-{day:02}", f"2019-08-{day + 1:02}"] for day in (2, 5, 9, 16, 23, 30)]})


def google():
    """X-WR-TIMEZONE: the zone of times without one, and of the repetition of times in UTC."""
    head = "X-WR-TIMEZONE:America/New_York\n"
    table = {
        "a time in UTC": ["DTSTART:20190715T120000Z", "DTEND:20190715T130000Z"],
        "a time without a zone": ["DTSTART:20190715T120000", "DTEND:20190715T130000"],
        "a repeated time in UTC": ["DTSTART:20190105T023000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=FR"],
        "a repeated time without a zone": ["DTSTART:20190104T223000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=FR", "EXDATE:20190719T223000"],
        "a time with another zone": ["DTSTART;TZID=Asia/Tokyo:20190715T120000", "DURATION:PT1H"],
        "a date": ["DTSTART;VALUE=DATE:20190715"],
    }
    for number, (name, lines) in enumerate(table.items()):
        compare(f"X-WR-TIMEZONE, {name}", f"google/{number}.ics", calendar(event(*lines), head=head), JULY, "months/2019-03", "months/2019-11")
    write("google/unknown.ics", calendar(event("DTSTART:20190715T120000"), head="X-WR-TIMEZONE:Nowhere\n"))
    CASES.append({"name": "X-WR-TIMEZONE, unknown", "reference": "days/2019-07-15?calendar=google/unknown.ics&format=json",
                  "expected": {"events": single("2019-07-15T12:00:00+02:00", "2019-07-15T12:00:00+02:00"), "problems": ['X-WR-TIMEZONE is "Nowhere"']}})


def far():
    """Years in which nobody plans anything, and days on which zones change."""
    compare("the year 1", "far/1.ics", calendar(event("DTSTART;VALUE=DATE:00010201", "RRULE:FREQ=YEARLY")), "months/2019-02", "days/2019-02-01")
    fixed("the year 9999", "far/9999.ics", calendar(event("DTSTART:99991231T100000Z", "DTEND:99991231T110000Z")), {"days/9999-12-31": single("9999-12-31T11:00:00+01:00", "9999-12-31T12:00:00+01:00")})
    birthday = calendar(event("DTSTART;VALUE=DATE:19040229", "RRULE:FREQ=YEARLY"))
    compare("a birthday of 1904, on a leap day", "far/birthday.ics", birthday, "months/2019-02", "months/2019-03", "months/2020-02", "months/2000-02")
    for number, zone in enumerate(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo", "America/Caracas"]):
        for clock in ("003000", "020000", "023000", "030000"):
            lines = [f"DTSTART;TZID={zone}:20100101T{clock}", "DURATION:PT15M", "RRULE:FREQ=DAILY"]
            compare(f"each day at {clock} in {zone}", f"far/{number}-{clock}.ics", calendar(event(*lines)),
                    "weeks/2019-W13", "weeks/2019-W44", "weeks/2019-W10", "weeks/2019-W14", "weeks/2038-W13", exact=datetime.timedelta(minutes=15))
    # Samoa had no 30 December 2011. The time before the change and the time after it are the same; the library gives both.
    samoa = calendar(event("DTSTART;TZID=Pacific/Apia:20100101T120000", "RRULE:FREQ=DAILY"))
    fixed("a day that a zone skips", "far/samoa.ics", samoa, {"weeks/2011-W52": [["One", start, start] for start in [f"2011-12-{day}T23:00:00+01:00" for day in range(26, 31)] + ["2011-12-31T23:00:00+01:00", "2012-01-01T23:00:00+01:00"]]})


zones()
broken()
files()
repetitions()
google()
far()
# Another number of rules can be given, to look for differences.
for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 100):
    generated(seed)
print(json.dumps(CASES))
