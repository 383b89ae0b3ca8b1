"""Writes PDF documents of the kinds that real data has, and prints the words that PDFium finds on their pages.

All contents are invented. The documents embed no font.
"""

import json
import pathlib
import sys

import pypdfium2

HERE = pathlib.Path(sys.argv[1])
CASES = []
HELVETICA = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def stream(content, entries=""):
    data = content.encode("latin-1")
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries.encode(), len(data), data)


def document(name, about, content, font=HELVETICA, more=(), page="", catalog="", expected=None):
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 400] /Contents 4 0 R "
        f"/Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >> {page} >>",
        stream(content),
        font,
        *more,
    ]
    out, places = b"%PDF-1.7\n", []
    for at, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (at, body if isinstance(body, bytes) else body.encode("latin-1"))
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, len(out))
    out += b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (count, table, trailer)
    (HERE / f"{name}.pdf").write_bytes(out)
    if expected is None:
        pdf = pypdfium2.PdfDocument(out)
        expected = pdf[0].get_textpage().get_text_range().split()
    CASES.append({"name": about, "reference": f"{name}.pdf/pages/1", "expected": expected})


def text(*parts):
    return "BT /F 12 Tf 40 350 Td " + " ".join(parts) + " ET"


def composite(encoding, ordering="Identity", to_unicode=False):
    below = (
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /DW 600 "
        f"/CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) /Supplement 0 >> >>"
    )
    entry = "/ToUnicode 6 0 R" if to_unicode else ""
    return f"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /{encoding} {entry} /DescendantFonts [{below}] >>"


def unicode_map(*ranges):
    lines = "\n".join(f"<{first:04x}> <{last:04x}> <{first:04x}>" for first, last in ranges)
    return stream(
        "begincmap\n1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(ranges)} beginbfrange\n{lines}\nendbfrange\nendcmap"
    )


def codes(words):
    return "<" + words.encode("utf-16-be").hex() + "> Tj"


def main():
    document("plain", "plain words", text("(The quick brown fox) Tj 0 -14 Td (jumps over it.) Tj"))
    document("kerned", "words in one array with adjustments", text("[(W) 80 (ord) -280 (an) -15 (other) -300 (th) 10 (ird)] TJ"))
    document("word-space", "word spacing", text("6 Tw (three words here) Tj"))
    document("stretched", "horizontal scaling", text("60 Tz (narrow words here) Tj"))
    document("placed", "words that are placed one by one", text("(one) Tj 30 0 Td (two) Tj 30 0 Td (three) Tj"))
    document("letters", "letters that are placed one by one", "BT /F 12 Tf " + " ".join(
        f"1 0 0 1 {x} 350 Tm ({c}) Tj" for x, c in zip((40, 46.7, 53.4, 56.1, 58.8, 70, 76.7), "hello to".replace(" ", ""))
    ) + " ET")
    document("ansi", "characters of WinAnsi", text("(Gr\\374\\337e \\200 5 \\226 \\223quoted\\224) Tj"))
    document("names", "glyph names", text("(\\001\\002\\003) Tj"),
             "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences [1 /Lslash /uni00E9 /zcaron] >> >>")
    document("form", "a form within a form", "/X Do", more=[
        stream("BT /F 12 Tf 40 300 Td (inner words) Tj ET",
               "/Type /XObject /Subtype /Form /BBox [0 0 400 400] /Resources << /Font << /F 5 0 R >> >>")])
    document("rotated", "a turned page", text("(turned words) Tj 0 -14 Td (below) Tj"), page="/Rotate 90",
             expected=["turned", "words", "below"])
    document("invisible", "the invisible text of scanning software", text("3 Tr (scanned words) Tj"))
    document("bold", "words drawn twice for bold", text("(Heavy words) Tj 0.3 0 Td (Heavy words) Tj"),
             expected=["Heavy", "words"])
    document("divided", "a divided word", text("(a hyphen-) Tj 0 -14 Td (ated word) Tj"), expected=["a", "hyphenated", "word"])
    document("mapped", "Cyrillic, Greek and a character beyond the basic plane", text(codes("Привет"), "0 -14 Td", codes("ελληνικά")),
             composite("Identity-H", to_unicode=True), [unicode_map((0x20, 0x7E), (0x370, 0x4FF))])
    # A line stands on the page from left to right; its reading order is known.
    for name, words in (("hebrew", "שלום עולם"), ("arabic", "سلام عليكم")):
        document(name, f"{name} in visual order", text(codes(words[::-1])), composite("Identity-H", to_unicode=True),
                 [unicode_map((0x20, 0x7E), (0x590, 0x6FF))], expected=words.split())
    document("shapes", "Arabic presentation forms", text("<FEE1FEFCFEB3> Tj"), composite("Identity-H", to_unicode=True),
             [unicode_map((0xFE80, 0xFEFC))], expected=["سلام"])
    for encoding, ordering, words, codec in (
        ("UniJIS-UTF16-H", "Japan1", "日本語の文", "utf-16-be"),
        ("90ms-RKSJ-H", "Japan1", "日本語の文", "cp932"),
        ("UniGB-UTF16-H", "GB1", "中文字符", "utf-16-be"),
        ("GBK-EUC-H", "GB1", "中文字符", "gbk"),
        ("ETen-B5-H", "CNS1", "中文字型", "big5"),
        ("KSCms-UHC-H", "Korea1", "한국어", "cp949"),
        ("UniJIS-UTF16-V", "Japan1", "日本語の文", "utf-16-be"),
        ("90ms-RKSJ-V", "Japan1", "日本語の文", "cp932"),
    ):
        document(encoding, f"the predefined encoding {encoding}", text(f"<{words.encode(codec).hex()}> Tj"),
                 composite(encoding, ordering), expected=[words])
    document("field", "the value of a field without a picture", text("(Name:) Tj"),
             page="/Annots [<< /Subtype /Widget /FT /Tx /V (Ada Lovelace) /Rect [100 345 200 365] >>]",
             expected=["Name:", "Ada", "Lovelace"])
    document("actual", "replacement text", text("/Span << /ActualText (whole) >> BDC (wh0le) Tj EMC"), expected=["whole"])
    print(json.dumps(CASES))


main()
