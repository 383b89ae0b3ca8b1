"""Writes the corpus of tables, and prints what pyarrow, openpyxl, odfpy, xlrd, pyxlsb, pandas and csv say of it.

A case expects `rows` (all cells, as text, `null` or nested JSON), `header`, words of an `error`, or words that the answer
`says`.
"""

import bz2
import csv
import datetime
import decimal
import gzip
import io
import json
import lzma
import math
import pathlib
import struct
import sys
import urllib.parse
import uuid
import zipfile

import numpy
import odf.opendocument
import odf.table
import odf.text
import openpyxl
import pandas
import pyarrow
import pyarrow.parquet
import pyxlsb
import xlrd
import zstandard

HERE = pathlib.Path(sys.argv[1])
CASES = []


def case(name, reference, **expected):
    CASES.append({"name": name, "reference": reference, "expected": expected})


def cell(value):
    """A value as text, as `null`, or as nested JSON."""
    if value is None or value is pandas.NaT:
        return None
    if isinstance(value, (bool, numpy.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return [nested(one) for one in value]
    if isinstance(value, dict):
        return {key: nested(one) for key, one in value.items()}
    if isinstance(value, (datetime.date, datetime.time)):
        zone = "Z" if getattr(value, "tzinfo", None) else ""
        if isinstance(value, pandas.Timestamp):
            text = value.tz_localize(None).isoformat()
        else:
            text = (value.replace(tzinfo=None) if zone else value).isoformat()
        return (text.rstrip("0") if "." in text else text) + zone
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
        return "PT%dH%dM%dS" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        plain = "\ufffd" not in text and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text)
        return (text or None) if plain else "0x" + value.hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (float, numpy.floating)):
        return repr(float(value))
    return str(value) or None


def nested(value):
    if isinstance(value, (bool, int, float)) and not (isinstance(value, float) and math.isnan(value)):
        return value
    if value == "":
        return ""
    return cell(value)


def reference(name, **query):
    path = urllib.parse.quote(name)
    return path + "?" + urllib.parse.urlencode({**query, "format": "json"}, quote_via=urllib.parse.quote)


# Text files


def texts():
    rows = [["id", "name", "amount"], ["1", "Anna", "10.50"], ["007", "Grün, \"Jo\"", ""], ["3", "a\nb", "-7"]]

    def written(**dialect):
        out = io.StringIO(newline="")
        csv.writer(out, **dialect).writerows(rows)
        return out.getvalue()

    def expect(name, data, about, header=None, body=None, **query):
        (HERE / name).write_bytes(data)
        lines = body or rows[1:]
        wanted = [[one or None for one in row] for row in lines]
        case(about, reference(name, **query), rows=wanted, header=header or rows[0])

    for delimiter, about in [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "pipe")]:
        for end in ["\n", "\r\n"]:
            text = written(delimiter=delimiter, lineterminator=end)
            expect(f"{about}{len(end)}.csv", text.encode(), f"{about}, lines end in {end!r}")
    text = written(lineterminator="\n")
    expect("mark.csv", b"\xef\xbb\xbf" + text.encode(), "byte order mark")
    expect("quoted.csv", written(quoting=csv.QUOTE_ALL, lineterminator="\n").encode(), "all quoted")
    expect("no-end.csv", text.rstrip("\n").encode(), "no final line end")
    expect("cr.csv", b"id,name\r1,x\r2,y", "lines end in CR", ["id", "name"], [["1", "x"], ["2", "y"]])
    expect("blank.csv", b"id,name\n\n1,x\n\n\n2,y\n\n", "empty lines", ["id", "name"], [["1", "x"], ["2", "y"]])
    expect("sep.csv", b"sep=;\nid;name\n1;x,y\n", "a sep line", ["id", "name"], [["1", "x,y"]])
    expect("middle.csv", b'id,name\n1,6" pipe\n2,a "b" c\n', "quotes within a cell", ["id", "name"], [["1", '6" pipe'], ["2", 'a "b" c']])
    expect("nul.csv", b"id,name\n1,a\0b\n", "a NUL byte", ["id", "name"], [["1", "a\0b"]])
    expect("odd.csv", "id,name\n1,\u2028x\u00a0\n2,\U0001f600\n".encode(), "odd characters", ["id", "name"], [["1", "\u2028x\u00a0"], ["2", "\U0001f600"]])
    for name, pack in [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zstandard.compress)]:
        expect(f"packed.csv.{name}", pack(text.encode()), f"packed as {name}")
    expect("two.csv.gz", gzip.compress(text[:20].encode()) + gzip.compress(text[20:].encode()), "two members of gzip")
    expect("two.csv.zst", zstandard.compress(text[:20].encode()) + zstandard.compress(text[20:].encode()), "two frames")

    samples = {
        "cp1251": ["Москва", "Санкт-Петербург", "Население города на начало года", "Товар отгружен полностью"],
        "koi8-r": ["Москва", "Санкт-Петербург", "Население города на начало года", "Товар отгружен полностью"],
        "shift_jis": ["東京都", "大阪府の人口は増えています", "表計算ソフトのデータ", "カタカナ、ひらがな"],
        "euc-jp": ["東京都", "大阪府の人口は増えています", "表計算ソフトのデータ", "カタカナ、ひらがな"],
        "gbk": ["北京市", "上海市的人口正在增加", "电子表格数据文件", "今天天气很好我们去公园"],
        "gb18030": ["北京市", "上海市的人口正在增加", "电子表格数据文件", "今天天气很好我们去公园"],
        "big5": ["臺北市", "高雄市的人口正在增加", "電子表格資料檔案", "今天天氣很好我們去公園"],
        "euc-kr": ["서울특별시", "부산광역시의 인구는 늘고 있습니다", "표 계산 자료", "오늘은 날씨가 좋습니다"],
        "cp1252": ["Müller – Söhne", "Crème brûlée", "Straße nach Köln", "“quoted” text"],
        "utf-16": ["Ж東京", "Müller", "a", "b"],
        "utf-16-le": ["Żółw", "Müller", "a", "b"],
        "utf-16-be": ["Żółw", "Müller", "a", "b"],
        "utf-8-sig": ["Ж東京", "Müller", "a", "b"],
    }
    for encoding, words in samples.items():
        body = [[str(n), words[n % 4], words[(n + 1) % 4]] for n in range(24)]
        for delimiter in [",", ";", "|"]:
            text = "\n".join(delimiter.join(row) for row in [["id", "name", "note"]] + body) + "\n"
            name = f"{encoding}-{ord(delimiter)}.csv"
            expect(name, text.encode(encoding), f"encoding {encoding}", ["id", "name", "note"], body)
            if encoding not in ["utf-16", "utf-8-sig"]:
                expect(name, text.encode(encoding), f"encoding {encoding}, given", ["id", "name", "note"], body, encoding=encoding.replace("cp", "windows-"))
    (HERE / "note.csv").write_bytes("id,name\n1,Москва\n2,Население города\n".encode("cp1251"))
    case("a guessed encoding is said", "note.csv", says=["taken for windows-1251", "encoding="])
    mixed = ("id,name\n" + "".join(f"{n},Grün\n" for n in range(60))).encode() + b"99,gr\xfcn\n"
    expect("mixed.csv", mixed, "one damaged character in UTF-8", ["id", "name"], [[str(n), "Grün"] for n in range(60)] + [["99", "grün"]])

    report = "Sales of all shops\nCreated 2026-01-31\n\nid,name,amount\n1,x,2\n2,y,3\n"
    expect("report.csv", report.encode(), "a preamble", ["id", "name", "amount"], [["1", "x", "2"], ["2", "y", "3"]])
    case("a preamble is said", "report.csv", says=["the first 2 rows are left out", "Sales of all shops", "skip=0"])
    expect("report.csv", report.encode(), "lines that are skipped", ["id", "name", "amount"], [["1", "x", "2"], ["2", "y", "3"]], skip=3)
    (HERE / "ragged.csv").write_bytes(b"a,b,c\n1\n1,2,3,4\n5,6,7\n")
    case("ragged rows are said", "ragged.csv", says=["fewer than 3 cells", "more than 3 cells"])

    lines = [{"id": 1, "name": "x", "deep": {"a": [1, None, "y"]}, "big": 12345678901234567890}, {"id": 2.5, "more": True, "name": ""}, {"name": None, "id": -1e-7}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    header = ["id", "name", "deep", "big", "more"]
    body = [[cell(line.get(key)) for key in header] for line in lines]
    for name, data in [("a.jsonl", text.encode()), ("a.ndjson", text.replace("\n", "\r\n\r\n").encode()), ("a.jsonl.gz", gzip.compress(text.encode())), ("named.csv", text.encode())]:
        expect(name, data, f"JSON lines in {name}", header, body)
    expect("arrays.jsonl", b'[1,"x"]\n[2,"y"]\n', "JSON arrays", ["A", "B"], [["1", "x"], ["2", "y"]])


# Conditions and orders


def searches():
    count = 500
    frame = pandas.DataFrame(
        {
            "id": range(count),
            "amount": [(n * 37 % 100) / 4 for n in range(count)],
            "name": [f"name {'AbC'[n % 3]} {n % 17}" for n in range(count)],
            "day": [str(datetime.date(2026, 1, 1) + datetime.timedelta(n % 60)) for n in range(count)],
            "note": [None if n % 5 else f"n{n}" for n in range(count)],
        }
    )
    frame.to_csv(HERE / "search.csv", index=False)
    frame.to_json(HERE / "search.jsonl", orient="records", lines=True)
    frame.to_excel(HERE / "search.xlsx", index=False, sheet_name="S")
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame), HERE / "search.parquet", row_group_size=100, compression="zstd")
    conditions = {
        "amount>20": frame.amount > 20,
        "amount >= 20 and amount < 22.5": (frame.amount >= 20) & (frame.amount < 22.5),
        "amount=0.25": frame.amount == 0.25,
        "id!=7": frame.id != 7,
        "name~NAME a 1": frame.name.str.contains("name a 1", case=False),
        "name!~c": ~frame.name.str.contains("c", case=False),
        "day>=2026-02-20": frame.day >= "2026-02-20",
        "day=2026-01-05 and note!=": (frame.day == "2026-01-05") & frame.note.notna(),
        "note=": frame.note.isna(),
        "name=name A 3": frame.name == "name A 3",
        "name>name b": frame.name > "name b",
    }
    def rows(frame):
        return [[None if value is None or value != value else cell(value) for value in row] for row in frame.itertuples(index=False)]

    for name in ["search.csv", "search.jsonl", "search.xlsx/S", "search.parquet"]:
        for condition, mask in conditions.items():
            case(f"where {condition}", reference(name, rows="1-1000", where=condition), rows=rows(frame[mask]), header=list(frame))
        for order, column, ascending in [("-amount", "amount", False), ("day,-id", ["day", "id"], [True, False]), ("note", "note", True)]:
            ordered = frame.sort_values(column, ascending=ascending, kind="stable")
            case(f"sort {order}", reference(name, rows="11-60", sort=order), rows=rows(ordered[10:60]))
    case("where and sort", reference("search.csv", rows="1-5", where="amount>5", sort="-id", columns="id"), rows=rows(frame[frame.amount > 5].sort_values("id", ascending=False)[["id"]][:5]))
    case("an unknown column", reference("search.csv", where="nope>5"), error="no column")
    case("no operator", reference("search.csv", where="amount"), error="such as amount>10")


# Workbooks


def sheet_rows(values):
    """Rows without empty cells at their ends, and without empty rows at the end."""
    rows = [[cell(value) for value in row] for row in values]
    return [row for row in rows if any(one is not None for one in row)]


def xlsx():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Values"
    dates = "yyyy-mm-dd"
    stamps = "yyyy-mm-dd hh:mm:ss"
    values = [
        ("int", 7, None), ("float", 0.1, None), ("huge", 1e300, None), ("tiny", 1e-9, None), ("negative", -12.5, None),
        ("true", True, None), ("false", False, None), ("text", "a|b<c>&\"'", None), ("lines", "a\nb", None), ("spaces", "  x  ", None),
        ("digits", "007", "@"), ("date", 45943, dates), ("moment", 45943.5, stamps), ("time", 0.25, "hh:mm:ss"), ("zero time", 0, "hh:mm"),
        ("old date", 1, dates), ("last of February", 59, dates), ("first of March", 61, dates),
        ("negative date", -1, dates), ("negative moment", -100000.25, stamps), ("far date", 2900000, dates),
        ("duration", 1.5, "[h]:mm:ss"), ("percent", 0.5, "0%"), ("money", 12.5, '#,##0.00 "EUR"'), ("coloured", 3, "[Red]0.0"),
        ("general date", 45943, "d. mmm. yy"), ("quoted", 5, '0 "days"'), ("emoji", "\U0001f600 ok", None), ("long", "x" * 900, None),
    ]  # fmt: skip
    for row, (name, value, style) in enumerate(values, 1):
        sheet.cell(row, 1, name)
        target = sheet.cell(row, 2, value)
        if style:
            target.number_format = style
    for row, code in enumerate(["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"], len(values) + 1):
        sheet.cell(row, 1, "error")
        target = sheet.cell(row, 2)
        target.value, target.data_type = code, "e"
    rich = openpyxl.cell.rich_text.CellRichText("plain ", openpyxl.cell.rich_text.TextBlock(openpyxl.cell.text.InlineFont(b=True), "bold"))
    sheet.cell(60, 1, "rich").value = rich
    sheet.cell(60, 2, "far below")
    other = book.create_sheet("1904 & <more>")
    other.append(["a", "b"])
    other.append([1, "x"])
    book.create_sheet("Empty")
    book.save(HERE / "values.xlsx")

    def compare(name, about):
        read = openpyxl.load_workbook(HERE / name, data_only=True)
        for sheet in read.worksheets:
            # Ranges of one row each would be many reads; empty rows have no cells in either.
            rows = sheet_rows(sheet.iter_rows(values_only=True))
            if rows:
                midnight = [[one[:10] if one and one.endswith("T00:00:00") else one for one in row] for row in rows]
                case(f"{about}: {sheet.title}", reference(f"{name}/{sheet.title}", header="no", rows="1-1000", skip=0), rows=midnight)

    compare("values.xlsx", "xlsx")
    with zipfile.ZipFile(HERE / "values.xlsx") as old:
        parts = {name: old.read(name) for name in old.namelist()}

    def save(name, parts):
        with zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_DEFLATED) as new:
            for part, data in parts.items():
                new.writestr(part, data)

    # A macro sheet: a relationship of another kind.
    macro = dict(parts)
    macro["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        b"</Relationships>",
        b'<Relationship Id="rIdM" Type="http://schemas.microsoft.com/office/2006/relationships/xlMacrosheet" Target="macrosheets/sheet1.xml"/></Relationships>',
    )
    macro["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b"</sheets>", b'<sheet name="Macro1" sheetId="99" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" r:id="rIdM"/></sheets>')
    macro["xl/macrosheets/sheet1.xml"] = b'<xm:macrosheet xmlns:xm="http://schemas.microsoft.com/office/excel/2006/main"/>'
    save("macro.xlsm", macro)
    wanted = [c for c in CASES if c["reference"].startswith("values.xlsx/")]
    for one in wanted:
        case("a macro sheet beside: " + one["name"], one["reference"].replace("values.xlsx", "macro.xlsm"), **one["expected"])
    case("a macro sheet is said", "macro.xlsm", says=["Values", "left out", "Macro1"])
    late = dict(parts)
    late["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b"<workbookPr", b'<workbookPr date1904="1"', 1)
    save("late.xlsx", late)
    compare("late.xlsx", "the epoch 1904")
    bare = openpyxl.Workbook(write_only=True)
    sheet = bare.create_sheet("S")
    for n in range(40):
        sheet.append([n, "x", n * 1.5] + (["further"] if n == 30 else []))
    bare.save(HERE / "bare.xlsx")
    case("a sheet without dimensions", "bare.xlsx/S?header=no", says=["cells up to column 4", "columns=4-4"])
    head = openpyxl.Workbook()
    for row in [["Quarterly report"], [], ["made by", "Anna"], [], ["id", "name", "amount", "day", "note", "more"], [1, "x", 2, None, "n", "m"], [2, "y", 3, None, "n", "m"]]:
        head.active.append(row)
    head.save(HERE / "head.xlsx")
    case("a preamble in a sheet", reference("head.xlsx/Sheet"), rows=[["1", "x", "2", None, "n", "m"], ["2", "y", "3", None, "n", "m"]], header=["id", "name", "amount", "day", "note", "more"])
    case("a preamble in a sheet is said", "head.xlsx/Sheet", says=["2 rows are left out", "Quarterly report"])
    with open(HERE / "locked.xlsx", "wb") as file:
        file.write(compound([("EncryptionInfo", bytes(64)), ("EncryptedPackage", bytes(64))]))
    case("a password", "locked.xlsx", error="protected by a password")
    with open(HERE / "letter.xls", "wb") as file:
        file.write(compound([("WordDocument", bytes(64))]))
    case("a Word document named .xls", "letter.xls", error="letter.xls")


def compound(streams):
    """A compound file with small streams, each in a sector of its own."""
    sector = 512
    data = [content.ljust(4096, b"\0") for _, content in streams]
    fat, sectors = [], []
    for content in data:
        count = len(content) // sector
        start = len(fat)
        fat += [start + n + 1 for n in range(count - 1)] + [0xFFFFFFFE]
        sectors.append((start, content))

    def entry(name, kind, start, size, child=0xFFFFFFFF, right=0xFFFFFFFF):
        encoded = (name + "\0").encode("utf-16-le")
        return encoded.ljust(64, b"\0") + struct.pack("<HBBIII16sIQQIQ", len(encoded), kind, 1, 0xFFFFFFFF, right, child, bytes(16), 0, 0, 0, start, size)

    directory = entry("Root Entry", 5, 0xFFFFFFFE, 0, child=1)
    for number, ((name, _), (start, content)) in enumerate(zip(streams, sectors), 1):
        directory += entry(name, 2, start, len(content), right=number + 1 if number < len(streams) else 0xFFFFFFFF)
    directory = directory.ljust(-(-len(directory) // sector) * sector, b"\0")
    first_directory = len(fat)
    count = len(directory) // sector
    fat += [first_directory + n + 1 for n in range(count - 1)] + [0xFFFFFFFE]
    fat_sector = len(fat)
    fat.append(0xFFFFFFFD)
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(sector, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, first_directory, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header += struct.pack("<I", fat_sector) + b"\xff" * (109 * 4 - 4)
    return header + b"".join(content for _, content in sectors) + directory + table


def ods():
    document = odf.opendocument.OpenDocumentSpreadsheet()
    table = odf.table.Table(name="Open")

    def add(*cells, **row):
        line = odf.table.TableRow(**row)
        for one in cells:
            line.addElement(one)
        table.addElement(line)

    def text(*lines, **more):
        one = odf.table.TableCell(**more)
        for line in lines:
            one.addElement(odf.text.P(text=line))
        return one

    def typed(kind, shown, **more):
        return text(shown, valuetype=kind, **more)

    def label(name):
        return typed("string", name)

    rows = []
    for name, made, wanted in [
        ("float", typed("float", "7", value=7), "7.0"),
        ("decimal", typed("float", "0.1", value=0.1), "0.1"),
        ("percentage", typed("percentage", "50 %", value=0.5), "0.5"),
        ("currency", typed("currency", "12 EUR", value=12.5, currency="EUR"), "12.5"),
        ("true", typed("boolean", "TRUE", booleanvalue="true"), "true"),
        ("date", typed("date", "31.01.26", datevalue="2026-01-31"), "2026-01-31"),
        ("moment", typed("date", "31.01.26 10:30", datevalue="2026-01-31T10:30:00"), "2026-01-31T10:30:00"),
        ("old date", typed("date", "1626", datevalue="1626-03-15"), "1626-03-15"),
        ("time", typed("time", "06:15", timevalue="PT06H15M00S"), "06:15:00"),
        ("paragraphs", text("a", "b", valuetype="string"), "a\nb"),
        ("division", typed("float", "#DIV/0!", value=0, formula="of:=1/0"), "#DIV/0!"),
        ("not available", typed("string", "#N/A", formula="of:=NA()"), "#N/A"),
        ("error 502", typed("float", "Err:502", value=0, formula="of:=ACOS(5)"), "Err:502"),
        ("stated zero", typed("float", "0", value=0, formula="of:=1-1"), "0.0"),
    ]:
        add(label(name), made)
        rows.append([name, wanted])
    add(typed("string", "twice", numbercolumnsrepeated=2), numberrowsrepeated=2)
    rows += [["twice", "twice"]] * 2
    add(odf.table.TableCell(numbercolumnsrepeated=1024), numberrowsrepeated=100)
    add(label("after a gap"), typed("float", "1", value=1))
    rows.append(["after a gap", "1.0"])
    add(odf.table.TableCell(numbercolumnsrepeated=16384), numberrowsrepeated=1047000)
    document.spreadsheet.addElement(table)
    document.save(HERE / "values.ods")
    frame = pandas.read_excel(HERE / "values.ods", engine="odf", header=None, nrows=4)
    assert frame.iloc[0, 1] == 7 and frame.iloc[3, 1] == 12.5, frame
    # pandas gives 0 or nothing for errors; LibreOffice shows the text.
    case("ods", reference("values.ods/Open", header="no", rows="1-2000", skip=0), rows=rows)


def old_excel():
    """Excel 2 to 5: streams of records without a container."""

    def record(kind, data=b""):
        return struct.pack("<HH", kind, len(data)) + data

    def stream(version):
        bof = {2: 0x0009, 3: 0x0209, 4: 0x0409, 5: 0x0809}[version]
        extra = {2: b"", 3: b"\0\0", 4: b"\0\0", 5: bytes(4)}[version]
        number = {2: 0x0002, 3: 0x0300, 4: 0x0400, 5: 0x0500}[version]
        out = record(bof, struct.pack("<HH", number, 0x10) + extra)
        out += record(0x0042, struct.pack("<H", 1252)) + record(0x0022, struct.pack("<H", 0))
        formats = [b"General", b"0.00", b"yyyy\\-mm\\-dd", b"h:mm:ss"]
        for at, text in enumerate(formats):
            if version < 4:
                out += record(0x001E, struct.pack("<B", len(text)) + text)
            else:
                out += record(0x041E, struct.pack("<HB", at + 164 if version == 5 else 0, len(text)) + text)
        for at in range(len(formats)):
            if version == 2:
                out += record(0x0043, struct.pack("<BBBB", 0, 0, at, 0))
            elif version == 3:
                out += record(0x0243, struct.pack("<BBHHHI", 0, at, 1, 0, 0, 0))
            elif version == 4:
                out += record(0x0443, struct.pack("<BBHBBHI", 0, at, 1, 0, 0, 0, 0))
            else:
                out += record(0x00E0, struct.pack("<HHHHHHHH", 0, at + 164, 1, 0, 0, 0, 0, 0))
        out += record(0x0000 if version == 2 else 0x0200, struct.pack("<HHHH", 0, 4, 0, 3) + (b"" if version == 2 else b"\0\0"))

        def at(row, column, style=0):
            style = struct.pack("<BBB", style, style, 0) if version == 2 else struct.pack("<H", style)
            return struct.pack("<HH", row, column) + style

        def label(row, column, text):
            data = text.encode("cp1252")
            length = struct.pack("<B" if version == 2 else "<H", len(data))
            return record(0x0004 if version == 2 else 0x0204, at(row, column) + length + data)

        def double(row, column, value, style=0):
            return record(0x0003 if version == 2 else 0x0203, at(row, column, style) + struct.pack("<d", value))

        out += label(0, 0, "name") + label(0, 1, "größe") + label(0, 2, "day")
        out += label(1, 0, "x") + double(1, 1, 1.5, 1) + double(1, 2, 45943.0, 2)
        out += label(2, 0, "y") + double(2, 1, -7.0) + double(2, 2, 0.25, 3)
        if version == 2:
            out += label(3, 0, "z") + record(0x0002, at(3, 1) + struct.pack("<H", 42))
        else:
            out += label(3, 0, "z") + record(0x027E, at(3, 1) + struct.pack("<I", (1234 << 2) | 3))
        out += record(0x0005 if version == 2 else 0x0205, at(3, 2) + struct.pack("<BB", 1, 0))
        return out + record(0x000A)

    for version in [2, 3, 4]:
        data = stream(version)
        name = f"excel{version}.XLS"
        (HERE / name).write_bytes(data)
        book = xlrd.open_workbook(file_contents=data, formatting_info=version > 2)
        sheet = book.sheet_by_index(0)
        rows = []
        for row in range(sheet.nrows):
            line = []
            for one in sheet.row(row):
                if one.ctype == xlrd.XL_CELL_DATE:
                    moment = xlrd.xldate_as_tuple(one.value, book.datemode)
                    line.append(str(datetime.date(*moment[:3])) if moment[0] else str(datetime.time(*moment[3:])))
                elif one.ctype == xlrd.XL_CELL_BOOLEAN:
                    line.append(cell(bool(one.value)))
                elif one.ctype == xlrd.XL_CELL_EMPTY:
                    line.append(None)
                else:
                    line.append(cell(one.value))
            rows.append(line)
        case(f"Excel {version}", reference(f"{name}/{sheet.name if sheet.name else 'Sheet1'}", header="no", skip=0), rows=rows)
    (HERE / "locked.xls").write_bytes(stream(4)[:10] + record(0x002F, bytes(4)) + stream(4)[10:])
    case("an old workbook with a password", "locked.xls", error="protected by a password")


def xlsb():
    """A binary workbook: parts of records with lengths in seven-bit groups."""

    def record(kind, data=b""):
        out = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        length = len(data)
        while length >= 128:
            out += bytes([length & 0x7F | 0x80])
            length >>= 7
        return out + bytes([length]) + data

    def wide(text):
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    texts = ["name", "größe", "x", "Ж"]
    shared = record(159, struct.pack("<II", 4, 4)) + b"".join(record(19, b"\0" + wide(text)) for text in texts) + record(160)
    sheet = record(129) + record(148, struct.pack("<IIII", 0, 3, 0, 2)) + record(145)

    def row(number, *cells):
        return record(0, struct.pack("<IIHBBB", number, 0, 300, 0, 0, 0) + struct.pack("<I", 0)) + b"".join(cells)

    def head(column, style=0):
        return struct.pack("<II", column, style)

    sheet += row(0, record(7, head(0) + struct.pack("<I", 0)), record(7, head(1) + struct.pack("<I", 1)), record(6, head(2) + wide("inline")))
    sheet += row(1, record(7, head(0) + struct.pack("<I", 2)), record(5, head(1) + struct.pack("<d", 1.5)), record(4, head(2) + b"\1"))
    sheet += row(2, record(7, head(0) + struct.pack("<I", 3)), record(2, head(1) + struct.pack("<I", (-5 << 2 | 2) & 0xFFFFFFFF)), record(3, head(2) + b"\x07"))
    sheet += row(3, record(1, head(0)), record(5, head(1, 1) + struct.pack("<d", 45943.0)))
    sheet += record(146) + record(130)
    workbook = record(131) + record(153, struct.pack("<II", 0, 0) + wide("")) + record(143)
    workbook += record(156, struct.pack("<II", 0, 1) + wide("rId1") + wide("Bin")) + record(144) + record(132)
    styles = record(278) + record(617, struct.pack("<I", 2))
    for number in [0, 14]:
        styles += record(47, struct.pack("<HHHHHBBHBB", 0, number, 0, 0, 0, 0, 0, 0, 0, 0))
    styles += record(618) + record(279)
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    relations = '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">%s</Relationships>'
    inner = "".join(f'<Relationship Id="{a}" Type="{kinds}{b}" Target="{c}"/>' for a, b, c in [("rId1", "worksheet", "worksheets/sheet1.bin"), ("rId2", "sharedStrings", "sharedStrings.bin"), ("rId3", "styles", "styles.bin")])
    with zipfile.ZipFile(HERE / "binary.xlsb", "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("[Content_Types].xml", '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>')
        new.writestr("_rels/.rels", relations % f'<Relationship Id="rId1" Type="{kinds}officeDocument" Target="xl/workbook.bin"/>')
        new.writestr("xl/_rels/workbook.bin.rels", relations % inner)
        for name, data in [("workbook", workbook), ("sharedStrings", shared), ("styles", styles), ("worksheets/sheet1", sheet)]:
            new.writestr(f"xl/{name}.bin", data)
    with pyxlsb.open_workbook(str(HERE / "binary.xlsb")) as book:
        with book.get_sheet(1) as read:
            rows = [[cell(one.v) for one in row] for row in read.rows()]
    # pyxlsb gives nothing for inline texts, the number of an error, and numbers for dates.
    rows[0][2], rows[2][2], rows[3][1] = "inline", "#DIV/0!", "2025-10-13"
    case("xlsb", reference("binary.xlsb/Bin", header="no", skip=0), rows=rows)


# Parquet


def parquet():
    def write(name, table, about=None, compared=True, **options):
        path = HERE / name
        pyarrow.parquet.write_table(table, path, **options)
        read = pyarrow.parquet.read_table(path)
        columns = [column.to_pylist(maps_as_pydicts="lossy") if hasattr(column, "to_pylist") else list(column) for column in read.columns]
        rows = [[cell(value) for value in row] for row in zip(*columns)][:1000] if columns else []
        case(f"parquet: {about or name}", reference(name, rows="1-1000"), rows=rows, header=read.column_names)

    count = 300
    flat = {
        "bool": pyarrow.array([n % 3 == 0 if n % 7 else None for n in range(count)]),
        "utf8": pyarrow.array([f"text {n}" if n % 7 else None for n in range(count)]),
        "empty": pyarrow.array(["" if n % 2 else "x" for n in range(count)]),
        "large": pyarrow.array([f"l{n}" for n in range(count)], pyarrow.large_string()),
        "binary": pyarrow.array([bytes([n % 256, 255]) for n in range(count)]),
        "fixed": pyarrow.array([struct.pack("<I", n) for n in range(count)], pyarrow.binary(4)),
        "float16": pyarrow.array([numpy.float16(n / 8) for n in range(count)], pyarrow.float16()),
        "float32": pyarrow.array([n / 8 for n in range(count)], pyarrow.float32()),
        "float64": pyarrow.array([n / 3 if n % 5 else None for n in range(count)]),
        "odd": pyarrow.array([[math.inf, -math.inf, 1e300, -0.5][n % 4] for n in range(count)]),
        "date32": pyarrow.array([datetime.date(1969, 12, 1) + datetime.timedelta(n) for n in range(count)]),
        "time32": pyarrow.array([datetime.time(n % 24, 1, 2, 3000) for n in range(count)], pyarrow.time32("ms")),
        "time64": pyarrow.array([datetime.time(n % 24, 1, 2, 30) for n in range(count)], pyarrow.time64("us")),
        "nulls": pyarrow.nulls(count),
        "words": pyarrow.array([f"w{n % 4}" for n in range(count)]).dictionary_encode(),
    }
    for name, kind in [("int8", pyarrow.int8()), ("int16", pyarrow.int16()), ("int32", pyarrow.int32()), ("int64", pyarrow.int64())]:
        flat[name] = pyarrow.array([n % 100 - 50 for n in range(count)], kind)
    for name, kind in [("uint8", pyarrow.uint8()), ("uint16", pyarrow.uint16()), ("uint32", pyarrow.uint32()), ("uint64", pyarrow.uint64())]:
        flat[name] = pyarrow.array([2**kind.bit_width - 1 - n % 100 for n in range(count)], kind)
    for unit in ["s", "ms", "us", "ns"]:
        for zone in [None, "UTC", "Europe/Berlin"]:
            stamps = [datetime.datetime(1969, 12, 31, 23, 59, 59) + datetime.timedelta(hours=n * 31) for n in range(count)]
            column = pyarrow.array(stamps, pyarrow.timestamp(unit, zone))
            if zone == "Europe/Berlin":
                continue
            flat[f"{unit} {zone}"] = column
    for precision, scale in [(5, 2), (9, 0), (18, 6), (38, 10)]:
        flat[f"decimal {precision}"] = pyarrow.array([decimal.Decimal(n - 150).scaleb(-scale) if n % 9 else None for n in range(count)], pyarrow.decimal128(precision, scale))
    flat["decimal 76"] = pyarrow.array([decimal.Decimal(10**70 + n).scaleb(-5) * (-1) ** n for n in range(count)], pyarrow.decimal256(76, 5))
    table = pyarrow.table(flat)
    for codec in ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]:
        write(f"flat-{codec}.parquet", table, f"flat columns, {codec}", compression=codec)
        write(f"flat2-{codec}.parquet", table, f"data page 2, {codec}", compression=codec, data_page_version="2.0", row_group_size=70, data_page_size=500)
    write("old.parquet", table.select(["utf8", "int32", "float64", "decimal 18"]), "version 1.0", version="1.0")
    write("integers.parquet", table.select(["decimal 5", "decimal 9", "decimal 18"]), "decimals in integers", store_decimal_as_integer=True)
    write("int96.parquet", table.select(["ns None", "us None"]), "INT96", use_deprecated_int96_timestamps=True)
    write("index.parquet", table.select(["int64", "utf8"]), "page index", write_page_index=True, data_page_size=300)
    write("checked.parquet", table.select(["int64", "utf8"]), "checksums", write_page_checksum=True)
    write("plain.parquet", table.select(["utf8", "int64", "bool"]), "no dictionary", use_dictionary=False)
    write("groups.parquet", table.select(["int64", "utf8"]), "many row groups", row_group_size=3)
    for encoding, columns in {
        "DELTA_BINARY_PACKED": ["int32", "int64"],
        "DELTA_LENGTH_BYTE_ARRAY": ["utf8", "binary"],
        "DELTA_BYTE_ARRAY": ["utf8", "binary", "fixed"],
        "BYTE_STREAM_SPLIT": ["float32", "float64", "int64", "int32", "fixed"],
        "RLE": ["bool"],
        "PLAIN": ["utf8", "int64", "bool", "fixed"],
    }.items():
        for page in ["1.0", "2.0"]:
            for codec in ["zstd", "snappy"]:
                write(f"{encoding}-{page}-{codec}.parquet", table.select(columns), f"{encoding}, page {page}, {codec}", use_dictionary=False, column_encoding={column: encoding for column in columns}, data_page_version=page, compression=codec)
    write("none.parquet", table.slice(0, 0), "no rows")
    write("uuid.parquet", pyarrow.table({"id": pyarrow.array([uuid.UUID(int=n).bytes for n in range(5)], pyarrow.uuid())}), "UUID")
    write("json.parquet", pyarrow.table({"doc": pyarrow.array(['{"a":1}', None], pyarrow.json_())}), "JSON")

    deep = pyarrow.table(
        {
            "list": pyarrow.array([[1, None, 3], [], None, [4]]),
            "lists": pyarrow.array([[[1], [], None], None, [], [[2, 3], [4]]]),
            "struct": pyarrow.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}, {"a": 4, "b": "y"}]),
            "structs": pyarrow.array([[{"a": 1, "b": [1, 2]}, None], [], None, [{"a": None, "b": None}, {"a": 2, "b": []}]]),
            "map": pyarrow.array([[("k", 1), ("l", None)], [], None, [("m", 2)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
            "maps": pyarrow.array([[("k", [1, 2])], [("l", None), ("m", [])], None, []], pyarrow.map_(pyarrow.string(), pyarrow.list_(pyarrow.int64()))),
            "inner": pyarrow.array([{"s": {"t": {"u": [True]}}}, {"s": None}, None, {"s": {"t": None}}]),
            "fixed": pyarrow.array([[1, 2], None, [3, 4], [5, None]], pyarrow.list_(pyarrow.int32(), 2)),
            "large": pyarrow.array([["a"], [], None, ["", "b"]], pyarrow.large_list(pyarrow.string())),
            "days": pyarrow.array([[datetime.date(2026, 1, 1)], None, [None], []]),
            "required": pyarrow.array([1, 2, 3, 4]),
        }
    )
    for codec in ["zstd", "snappy", "none"]:
        for page in ["1.0", "2.0"]:
            write(f"deep-{codec}-{page}.parquet", deep, f"nested, {codec}, page {page}", compression=codec, data_page_version=page)
    many = pyarrow.concat_tables([deep] * 200).combine_chunks()
    write("deep-many.parquet", many, "nested, many pages", data_page_size=200, row_group_size=333, compression="zstd")
    case("parquet: nested rows far inside", reference("deep-many.parquet", rows="701-704", columns="structs,required"), rows=[[cell(many["structs"][n].as_py()), cell(many["required"][n].as_py())] for n in range(700, 704)])
    nullable = pyarrow.schema([pyarrow.field("a", pyarrow.int64(), nullable=False), pyarrow.field("l", pyarrow.list_(pyarrow.field("element", pyarrow.string(), nullable=False)), nullable=False)])
    write("required.parquet", pyarrow.table({"a": [1, 2], "l": [["x"], []]}, schema=nullable), "required fields")
    write("legacy.parquet", deep.select(["list", "structs"]), "lists of older programs", use_compliant_nested_type=False)
    write("wide.parquet", pyarrow.table({f"c{n}": [n] for n in range(50)}), "many columns")
    write("names.parquet", pyarrow.table({"ä.b": [1], "x y": ["y"]}), "odd names")
    import pyarrow.parquet.encryption as encryption

    class Keys(encryption.KmsClient):
        def __init__(self, config):
            super().__init__()

        def wrap_key(self, key, master):
            return key

        def unwrap_key(self, key, master):
            return key

    factory = encryption.CryptoFactory(Keys)
    for name, plain in [("hidden.parquet", False), ("half.parquet", True)]:
        settings = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["utf8"]}, plaintext_footer=plain)
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
        pyarrow.parquet.write_table(table.select(["utf8", "int64"]), HERE / name, encryption_properties=properties)
        case(f"parquet: {name}, encrypted", reference(name, columns="utf8"), error="encrypted")


def misnamed():
    for name, data, words in [
        ("zip.csv", None, "a zip archive with a.txt"),
        ("pdf.csv", b"%PDF-1.7\n...", "a PDF document"),
        ("html.xls", b"\n<HTML><body><table><tr><td>1</td></tr></table>", "an HTML page"),
        ("table.xls", b"\xef\xbb\xbf<table><tr><td>1</td></tr></table>", "an HTML page"),
        ("2003.xls", b'<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>', "Excel 2003"),
        ("web.xls", b"MIME-Version: 1.0\nContent-Type: multipart/related\n", "MHTML"),
        ("image.csv", b"\x89PNG\r\n\x1a\n....", "a PNG image"),
        ("noise.csv", bytes(range(256)) * 8, "binary data"),
        ("seven.csv", b"7z\xbc\xaf\x27\x1c....", "a 7z archive"),
        ("feather.parquet", b"ARROW1\0\0....", "Arrow"),
        ("page.csv.gz", gzip.compress(b"<html></html>"), "an HTML page"),
        ("cut.csv.gz", gzip.compress(b"a,b\n" * 100)[:20], "unpack"),
    ]:
        if data is None:
            with zipfile.ZipFile(HERE / name, "w") as new:
                new.writestr("a.txt", "a,b\n1,2\n")
        else:
            (HERE / name).write_bytes(data)
        case(f"{words} named {name}", name, error=words)
    (HERE / "text.xls").write_bytes(b"id\tname\n1\tx\n")
    case("text named .xls", reference("text.xls"), rows=[["1", "x"]], header=["id", "name"])


for make in [texts, searches, xlsx, ods, old_excel, xlsb, parquet, misnamed]:
    make()
json.dump(CASES, sys.stdout)
