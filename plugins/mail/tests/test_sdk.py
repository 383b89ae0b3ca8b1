"""Tests of the Python SDK."""

import errno
import unittest
from collections.abc import Iterator

from belljar_guest import (
    Contents,
    Denied,
    Failed,
    Invalid,
    NotFound,
    Page,
    Resource,
    Unavailable,
    decode,
    encode_path,
    encode_segment,
    errors,
    split,
)


class Sdk(unittest.TestCase):
    def test_encoding_and_decoding_are_inverse(self) -> None:
        for name in ["", "plain.md", "a b/c#d?e.md", "100%.txt", "a:b", "ümläut/日本語", "😀", "it's (1)+2,3;4=5@!$&*~"]:
            self.assertTrue(encode_path(name).isascii())
            self.assertEqual(decode(encode_path(name)), name)
            self.assertNotIn("/", encode_segment(name))
            self.assertEqual(decode(encode_segment(name)), name)
        with self.assertRaises(Invalid):
            decode("%FF")

    def test_a_reference_is_split_at_its_first_question_mark(self) -> None:
        self.assertEqual(split("a?b=1%2B1&c&b=2&=x?"), ("a", {"b": "1+1", "c": "", "": "x?"}))
        self.assertEqual(split("a"), ("a", {}))

    def test_a_page_takes_only_the_entries_that_it_shows(self) -> None:
        used = 0

        def entries() -> Iterator[Resource]:
            nonlocal used
            for number in range(25):
                used += 1
                yield Resource(str(number))

        self.assertEqual((Page.of(entries(), None, 10).next_cursor, used), ("10", 11))
        last = Page.of(entries(), "20", 10)
        self.assertEqual([one.reference for one in last.resources], ["20", "21", "22", "23", "24"])
        self.assertIsNone(last.next_cursor)
        for cursor in ["x", "", " 1", "1_0", "+1", "-1", "٣", "99", "9" * 40]:
            with self.assertRaises(Invalid) as raised:
                Page.of(entries(), cursor, 10)
            self.assertEqual(str(raised.exception), f'the cursor "{cursor}" is not one of this provider\'s')

    def test_utf8_is_text_and_other_bytes_are_blobs(self) -> None:
        self.assertEqual(Contents.from_bytes("a", "ä".encode(), "text/markdown"), Contents("a", "ä", "text/markdown"))
        self.assertEqual(Contents.from_bytes("a", b"\xff"), Contents("a", b"\xff", "application/octet-stream"))

    def test_exceptions_keep_their_kind(self) -> None:
        for error, kind in [
            (FileNotFoundError(), NotFound),
            (NotADirectoryError(), NotFound),
            (PermissionError("why"), Denied),
            (ConnectionRefusedError("why"), Unavailable),
            (TimeoutError(), Unavailable),
            (OSError(errno.EILSEQ, "why", "/data"), Failed),
            (KeyError("x"), Failed),
        ]:
            self.assertIs(type(errors.from_exception(error)), kind)
        self.assertEqual(str(errors.from_exception(KeyError("x"))), "KeyError: 'x'")
        same = Invalid("why")
        self.assertIs(errors.from_exception(same), same)


if __name__ == "__main__":
    unittest.main()
