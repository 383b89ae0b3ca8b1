"""Tests of messages, their text and their parts, read through the provider."""

import json
import tempfile
import unittest
from base64 import b64encode, encodebytes
from pathlib import Path
from typing import Any

from belljar_guest import Denied, Failed, Invalid, NotFound

from mail_provider.provider import Mail
from tests.mailboxes import ANSWER, ATTACHED, BROKEN, HTML, PICTURE, PLAIN, write_maildir, write_mbox


class Case(unittest.TestCase):
    """A provider over an mbox file with messages of all kinds, and a Maildir."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        write_mbox(self.root / "Archive" / "2026 ü", PLAIN, ANSWER, HTML, ATTACHED, BROKEN)
        write_maildir(self.root / "Mail", firstS=PLAIN, second=HTML)
        write_maildir(self.root / "Mail" / ".Sent", third=ANSWER)
        (self.root / "notes.txt").write_text("From here to there\n")
        self.mail = Mail(str(self.root), {})

    def text(self, reference: str) -> str:
        body = self.mail.read(reference).body
        assert isinstance(body, str)
        return body

    def json(self, reference: str) -> Any:
        return json.loads(self.text(reference))

    def reference_of(self, subject: str, folder: str = "Archive/2026%20%C3%BC") -> str:
        """The reference of the message with this subject."""
        rows = self.json(f"folders/{folder}")["messages"]
        return str(next(row["reference"] for row in rows if row["subject"] == subject))


class Reading(Case):
    def test_a_message_reads_as_text(self) -> None:
        self.assertEqual(
            self.text(self.reference_of("The plan")),
            "Subject: The plan\nFrom: Anna Berg <anna@example.org>\nTo: Ben <ben@example.org>\n"
            "Date: 2026-11-20 10:00+01:00\n\nHello Ben,\n\nFrom now on we meet on Mondays.\n",
        )

    def test_encoded_words_and_charsets_are_decoded(self) -> None:
        text = self.text(self.reference_of("Re: The plan – agreed"))
        self.assertIn("From: Ben Müller <ben@example.org>", text)
        self.assertIn("see you in the café.", text)

    def test_html_is_read_as_text(self) -> None:
        body = self.text(self.reference_of("Offer")).partition("\n\n")[2]
        self.assertEqual(
            body, "Bells & jars\n\nOnly today:\na jar <https://shop.example.com/jar>\n\n- small\n- large\n"
        )

    def test_attachments_are_named_and_read_by_number(self) -> None:
        reference = self.reference_of("Photo")
        text = self.text(reference)
        self.assertIn(f"Attachment: büro.png (image/png), {reference}?part=3\n", text)
        self.assertTrue(text.endswith("\n\nHere it is.\n"), text)
        read = self.mail.read(f"{reference}?part=3")
        self.assertEqual((read.body, read.mime_type), (PICTURE, "image/png"))
        with self.assertRaises(NotFound):
            self.mail.read(f"{reference}?part=4")
        with self.assertRaisesRegex(Invalid, '"part" is "x": expected the number of an attachment'):
            self.mail.read(f"{reference}?part=x")

    def test_broken_messages_are_read_as_far_as_possible(self) -> None:
        rows = self.json("folders/Archive/2026%20%C3%BC")["messages"]
        newest = rows[0]
        self.assertEqual((newest["from"], newest["date"]), ("Jürgen <j@example.org>", None))
        self.assertIn("café", newest["subject"])
        self.assertTrue(self.text(newest["reference"]).endswith("\n\nnaïve ÿ\n"))

    def test_large_attachments_are_not_parsed(self) -> None:
        large = PICTURE * 4000
        line = b64encode(PICTURE)
        for broken, expected in [(b"", large), (b"!!", large), (b"Q", large)]:
            write_mbox(self.root / "Large", ATTACHED.replace(line, encodebytes(large) + broken))
            text = self.text(reference := self.reference_of("Photo", "Large"))
            self.assertIn(f"{reference}?part=3\n", text)
            self.assertTrue(text.endswith("\n\nHere it is.\n"), text[-100:])
            self.assertEqual(self.mail.read(f"{reference}?part=3").body, expected)

    def test_a_large_text_is_cut_with_a_note(self) -> None:
        write_mbox(self.root / "Large", PLAIN + b"One more line.\n" * 400_000)
        text = self.text(reference := self.reference_of("The plan", "Large"))
        self.assertTrue("Note: only the first 4 MiB of the text are shown; view=source gives" in text[:1000], text[:1000])
        self.assertLess(len(text), 5_000_000)
        self.assertEqual(self.mail.read(f"{reference}?view=source&bytes=0-10").body, PLAIN[:11])
        self.assertEqual(self.mail.read(f"{reference}?view=source&bytes=-16").body, b"One more line.\n\n")

    def test_an_attachment_that_is_too_large_names_the_way_on(self) -> None:
        write_mbox(self.root / "Large", ATTACHED.replace(b64encode(PICTURE), encodebytes(PICTURE * 34_000)))
        reference = self.reference_of("Photo", "Large") + "?part=3"
        with self.assertRaisesRegex(Failed, r"part 3 has 8704000 bytes, .* in pieces: .*\?part=3&bytes=0-4194303"):
            self.mail.read(reference)
        self.assertEqual(self.mail.read(f"{reference}&bytes=255-257").body, bytes([255, 0, 1]))
        for wrong in ("5", "x-", "9-5", "99999999-"):
            with self.assertRaisesRegex(Invalid, f'"bytes" is "{wrong}": '):
                self.mail.read(f"{reference}&bytes={wrong}")

    def test_headers_and_source(self) -> None:
        reference = self.reference_of("The plan")
        self.assertIn({"name": "Message-ID", "value": "<plan@example.org>"}, self.json(f"{reference}?view=headers"))
        self.assertEqual(self.mail.read(f"{reference}?view=source").body, PLAIN.decode() + "\n")
        with self.assertRaisesRegex(Invalid, '"view" is "x": expected "text", "headers" or "source"'):
            self.mail.read(f"{reference}?view=x")

    def test_a_thread_has_the_message_its_answers_and_the_messages_it_answers(self) -> None:
        thread = self.json(self.reference_of("Re: The plan – agreed").replace("messages/", "threads/", 1))
        self.assertEqual([row["subject"] for row in thread["messages"]], ["The plan", "Re: The plan – agreed"])


class Listing(Case):
    def test_mailboxes_of_both_kinds_are_found(self) -> None:
        page = self.mail.list_resources(None)
        folders = [one.title for one in page.resources if one.reference.startswith("folders/")]
        self.assertEqual(folders, ["Archive/2026 ü", "Mail", "Mail/.Sent"])
        self.assertIsNone(page.next_cursor)
        for one in page.resources:
            self.assertEqual(self.mail.read(one.reference).reference, one.reference)
        self.assertIn("[Archive/2026 ü](folders/Archive/2026%20%C3%BC) | mbox |", self.text(""))

    def test_only_the_newest_messages_are_listed(self) -> None:
        page = Mail(str(self.root), {"RECENT": "1"}).list_resources(None)
        titles = [one.title for one in page.resources if one.reference.startswith("messages/")]
        self.assertEqual(titles[1:], ["Offer", "Re: The plan – agreed"])

    def test_pages_end(self) -> None:
        for number in range(25):
            write_mbox(self.root / f"box {number:02}", PLAIN)
        cursor, folders, pages = None, [], 0
        while pages < 10:
            page = self.mail.list_resources(cursor)
            folders += [one.title for one in page.resources if one.reference.startswith("folders/")]
            cursor, pages = page.next_cursor, pages + 1
            if cursor is None:
                break
        self.assertEqual((pages, len(folders), len(set(folders))), (3, 28, 28))
        with self.assertRaisesRegex(Invalid, 'the cursor "nope" is not from'):
            self.mail.list_resources("nope")

    def test_a_granted_maildir_is_the_inbox(self) -> None:
        mail = Mail(str(self.root / "Mail"), {})
        titles = [one.title for one in mail.list_resources(None).resources if one.reference.startswith("folders/")]
        self.assertEqual(titles, [".Sent", "INBOX"])
        self.assertEqual(len(json.loads(str(mail.read("folders/INBOX").body))["messages"]), 2)

    def test_absent_mailboxes_and_messages(self) -> None:
        for reference in [
            "nothing",
            "folders/nope",
            "folders/notes.txt",
            "folders/..",
            "folders/Mail%2F..%2FMail/x",
            "folders/Mail/../Mail",
            "messages/Mail/nope",
            "messages/Mail",
            "threads/Mail/nope",
            "messages/Archive/2026%20%C3%BC/0-000000000000",
        ]:
            with self.assertRaises(NotFound, msg=reference):
                self.mail.read(reference)
        with self.assertRaisesRegex(Denied, "was not granted"):
            Mail("/nowhere", {}).list_resources(None)
        with self.assertRaisesRegex(Denied, "was not granted"):
            Mail("/nowhere", {}).read("folders/Mail")


class Changing(Case):
    def test_changes_change_revisions(self) -> None:
        before = self.mail.catalog_revision(), self.mail.resource_revision("folders/Mail")
        self.assertEqual(before, (self.mail.catalog_revision(), self.mail.resource_revision("folders/Mail")))
        (self.root / "Mail" / "new" / "1763700000.more.host").write_bytes(PLAIN)
        self.assertNotEqual(before[0], self.mail.catalog_revision())
        self.assertNotEqual(before[1], self.mail.resource_revision("folders/Mail"))
        self.assertEqual(self.mail.resource_revision(self.reference_of("Photo")), "received")

    def test_a_message_that_was_moved_within_its_file_is_found(self) -> None:
        reference = self.reference_of("Photo")
        write_mbox(self.root / "Archive" / "2026 ü", HTML, ATTACHED)
        self.assertIn("Subject: Photo", self.text(reference))
        write_mbox(self.root / "Archive" / "2026 ü", HTML)
        with self.assertRaises(NotFound):
            self.mail.read(reference)

    def test_a_message_that_was_read_keeps_its_reference(self) -> None:
        reference = self.reference_of("Offer", "Mail")
        new = next((self.root / "Mail" / "new").iterdir())
        new.rename(self.root / "Mail" / "cur" / f"{new.name}:2,S")
        self.assertIn("Subject: Offer", self.text(reference))


if __name__ == "__main__":
    unittest.main()
