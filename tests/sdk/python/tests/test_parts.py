"""Tests of the SDK itself: parts that are cut out of contents in memory."""

import unittest
from datetime import timedelta

from belljar_guest import Contents, Extent, Invalid, NotFound, PartialReading, Parts, Provider, Range, Reading


def cut(body: str | bytes, range: Range | None, most: int) -> tuple[str | bytes, Extent | None]:
    reading = PartialReading.cut(Contents("a", body, "text/plain"), range, most)
    return reading.contents[0].body, reading.extent


class Book(Provider, Parts):
    def read(self, reference: str) -> Contents:
        return Contents(reference, "one\ntwo\n")

    def read_part(self, reference: str, range: Range | None, most: int) -> PartialReading:
        return PartialReading.cut(self.read(reference), range, most)


class PartsTest(unittest.TestCase):
    def test_parts_are_cut_out(self) -> None:
        text = "1\n2\n3\n4"
        for body, range, most, part, extent in [
            (text, None, 7, text, None),
            (text, None, 5, "1\n2\n", Extent.of("bytes", 0, 4, 7)),
            ("one two", None, 5, "one t", Extent.of("bytes", 0, 5, 7)),
            (text, Range("lines", 1, 3), 9, "2\n3\n", Extent.of("lines", 1, 3, 4)),
            (text, Range("lines", last=2), 9, "3\n4", Extent.of("lines", 2, 4, 4)),
            (text, Range("lines", 9), 9, "", Extent.of("lines", 4, 4, 4)),
            (text, Range("lines", 3, 1), 9, "", Extent.of("lines", 3, 3, 4)),
            (text, Range("lines"), 4, "1\n2\n", Extent.of("lines", 0, 2, 4)),
            (text, Range("bytes", last=3), 9, "3\n4", Extent.of("bytes", 4, 7, 7)),
            ("aé", Range("bytes", 2, 3), 9, "é", Extent.of("bytes", 1, 3, 3)),
            ("", Range("lines"), 9, "", Extent.of("lines", 0, 0, 0)),
            (b"\0\x9f\xff", Range("bytes", 1, 2), 9, b"\x9f", Extent.of("bytes", 1, 2, 3)),
            (b"\0\x9f\xff", None, 2, b"\0\x9f", Extent.of("bytes", 0, 2, 3)),
        ]:
            self.assertEqual(cut(body, range, most), (part, extent), (body, range, most))

    def test_parts_join_to_the_text(self) -> None:
        text = "aé€🔔\nb"
        for most in range(1, 12):
            at, joined, more = 0, "", True
            while more:
                part, extent = cut(text, Range("bytes", at), most)
                assert extent is not None and isinstance(part, str)
                self.assertGreater(extent.end, at)
                joined, at, more = joined + part, extent.end, extent.more
            self.assertEqual(joined, text, most)

    def test_parts_that_cannot_be_given_are_refused(self) -> None:
        with self.assertRaisesRegex(Invalid, r'line 1 has 5 bytes; the limit of a read is 4; read it with "\?bytes='):
            cut("12345", Range("lines"), 4)
        with self.assertRaisesRegex(Invalid, "has no lines"):
            cut(b"\x9f", Range("lines"), 4)
        two = Reading([Contents("a", "1"), Contents("a/b", "2")], timedelta(seconds=1))
        self.assertEqual(PartialReading.cut(two, None, 0), PartialReading(two.contents, None, two.fresh_for))
        with self.assertRaisesRegex(Invalid, "2 contents and no parts"):
            PartialReading.cut(two, Range("bytes"), 9)

    def test_a_provider_has_no_directories_by_default(self) -> None:
        book = Book()
        self.assertEqual(book.read_part("a", Range("lines", 1), 9).contents[0].body, "two\n")
        with self.assertRaises(NotFound):
            book.list_below("", None)


if __name__ == "__main__":
    unittest.main()
