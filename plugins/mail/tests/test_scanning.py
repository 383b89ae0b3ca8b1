"""Tests of finding messages in files: from the end, across the borders of blocks, and by search."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from belljar_guest import Invalid

from mail_provider import mbox, search
from mail_provider.mbox import Mbox
from mail_provider.provider import PAGE, Mail
from tests.mailboxes import PLAIN, write_mbox


def numbered(number: int, size: int = 0) -> bytes:
    body = f"number {number}\n".encode() + b"x" * size
    return PLAIN.replace(b"<plan@", f"<plan{number}@".encode()).replace(b"Hello Ben,", body)


class Scanning(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "inbox"
        self.mail = Mail(directory.name, {})

    def test_every_message_is_found_once_for_all_sizes_of_blocks(self) -> None:
        sizes = [0, 1, 200, 3000, 7, 0, 1500, 64]
        write_mbox(self.path, *(numbered(number, size) for number, size in enumerate(sizes)))
        for chunk in (1024, 1025, 1500, 4096, 1 << 20):
            with mock.patch.object(mbox, "_CHUNK", chunk):
                box = Mbox(str(self.path))
                entries = list(box.newest(None))
                self.assertEqual(len(entries), len(sizes), chunk)
                self.assertEqual(sum(entry.size for entry in entries), self.path.stat().st_size)
                for number, entry in enumerate(reversed(entries)):
                    self.assertIn(f"\nnumber {number}\n".encode(), entry.source())
                    found = box.find(entry.id)
                    assert found is not None
                    self.assertEqual((found.id, found.source()), (entry.id, entry.source()))
                mentioned = [entry.id for entry in box.mentions(b"<plan3@example.org>")]
                self.assertEqual(mentioned, [entries[len(sizes) - 1 - 3].id])

    def test_a_line_that_begins_with_from_ends_no_message(self) -> None:
        separator = b"From anna@example.org Fri Nov 20 10:00:00 2026\n"
        self.path.write_bytes(separator + PLAIN + b"\n" + separator.replace(b"\n", b"\r\n") + PLAIN.replace(b"\n", b"\r\n"))
        self.assertEqual(len(list(Mbox(str(self.path)).newest(None))), 2)

    def test_pages_go_back_to_the_first_message(self) -> None:
        count = 2 * PAGE + 5
        write_mbox(self.path, *(numbered(number) for number in range(count)))
        reference, seen = "folders/inbox", []
        for _ in range(4):
            answer = json.loads(str(self.mail.read(reference).body))
            seen += [row["reference"] for row in answer["messages"]]
            if "next" not in answer:
                break
            reference = answer["next"]
        self.assertEqual((len(seen), len(set(seen))), (count, count))
        with self.assertRaisesRegex(Invalid, '"before" is ".*": expected the position'):
            self.mail.read("folders/inbox?before=x")

    def test_a_search_finds_messages_and_names_the_next_search(self) -> None:
        write_mbox(self.path, *(numbered(number) for number in range(30)))

        def found(query: str) -> list[str]:
            return [row["reference"] for row in json.loads(str(self.mail.read(f"search/inbox?{query}").body))["messages"]]

        self.assertEqual(len(found("text=NUMBER%207")), 1)
        self.assertEqual(len(found("from=berg&to=BEN&subject=plan")), 30)
        self.assertEqual(found("from=nobody"), [])
        self.assertEqual(len(found("since=2026-11-20&until=2026-11-21")), 30)
        self.assertEqual(found("since=2026-11-21"), [])
        with self.assertRaisesRegex(Invalid, '"since" is ".*": expected a day such as'):
            found("since=soon")
        with mock.patch.object(search, "BYTES", 40_000):
            references, seen = "search/inbox?text=number", 0
            for _ in range(30):
                answer = json.loads(str(self.mail.read(references).body))
                seen += len(answer["messages"])
                if "next" not in answer:
                    break
                references = answer["next"]
            self.assertEqual(seen, 30)


if __name__ == "__main__":
    unittest.main()
