"""Unit tests of the provider as plain Python, without belljar and without a component."""

import tempfile
import unittest
from pathlib import Path

from belljar_guest import Contents, Denied, Invalid, NotFound, Reading
# belljar:if tools
from belljar_guest import Text, ToolResult
# belljar:end
# belljar:if prompts
from belljar_guest import Argument, PromptResult
# belljar:end

# belljar:if tools
from my_provider import MonthDays
# belljar:end
from my_provider import MyProvider

PICTURE = b"\x89PNG\r\n\x1a\n"


class ProviderTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.data = Path(directory.name)
        (self.data / "plan b.md").write_text("# Plan B\n")
        (self.data / "picture").write_bytes(PICTURE)
        (self.data / "folder").mkdir()
        self.provider = MyProvider(self.data)
        self.without_grant = MyProvider(self.data / "nowhere")

    def one(self, reference: str) -> Contents:
        contents = self.provider.read(reference)
        assert isinstance(contents, Contents)
        return contents

    def listed(self, provider: MyProvider) -> list[str]:
        references: list[str] = []
        cursor = None
        while True:
            page = provider.list_resources(cursor)
            references += [resource.reference for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                return references

    def test_lists_page_by_page(self) -> None:
        first = self.provider.list_resources(None)
        self.assertEqual((len(first.resources), first.next_cursor), (10, "10"))
        self.assertEqual(len(self.listed(self.without_grant)), 14)
        self.assertEqual(self.listed(self.provider)[14:], ["files/picture", "files/plan%20b.md"])
        for cursor in ["x", "", "-1", "999"]:
            with self.assertRaisesRegex(Invalid, f'the cursor "{cursor}" is not one'):
                self.provider.list_resources(cursor)

    def test_every_listed_resource_can_be_read(self) -> None:
        for reference in self.listed(self.provider):
            self.assertEqual(self.one(reference).reference, reference)

    def test_reads_text_bytes_and_json(self) -> None:
        self.assertEqual(self.one("hello.txt").body, "Hello from my-provider.\n")
        self.assertEqual(self.one("months/2").body, '{"month":2,"name":"February","days":28}')
        self.assertEqual(self.one("files/plan%20b.md").mime_type, "text/markdown")
        self.assertEqual(self.one("files/picture").body, PICTURE)

    def test_reads_all_files(self) -> None:
        expected = Reading([self.one("files/picture"), self.one("files/plan%20b.md")])
        self.assertEqual(self.provider.read("files/"), expected)

    def test_failures_have_reasons(self) -> None:
        for reference in ["", "nothing", "months/13", "months/0", "months/1/2", "files/nope.md", "files/folder"]:
            with self.assertRaises(NotFound, msg=reference):
                self.provider.read(reference)
        with self.assertRaises(NotFound):
            self.provider.read("files/folder%2F..%2Fpicture")
        with self.assertRaisesRegex(Invalid, 'a month is a number from 1 to 12, not "x"'):
            self.provider.read("months/x")
        with self.assertRaisesRegex(Denied, 'this needs the directory "/data"'):
            self.without_grant.read("files/plan%20b.md")

    # belljar:if tools
    def test_the_tool_counts_days(self) -> None:
        for month, year, text, days in [
            (2, None, "February has 28 days.", 28),
            (2, 2024, "February 2024 has 29 days.", 29),
            (2, 1900, "February 1900 has 28 days.", 28),
            (12, 2024, "December 2024 has 31 days.", 31),
        ]:
            result = self.provider.month_days(month, year)
            self.assertEqual((result.text, result.structured), (text, MonthDays(text.split()[0], days)))

    def test_a_client_calls_the_tool_with_json(self) -> None:
        result = self.provider.call_tool("month_days", {"month": 2, "year": 2024})
        expected = ToolResult((Text("February 2024 has 29 days."),), {"month": "February", "days": 29})
        self.assertEqual(result, expected)
        [tool] = self.provider.list_tools()
        self.assertEqual(tool.input["required"], ["month"])
        self.assertEqual(tool.input["properties"]["month"]["maximum"], 12)
        with self.assertRaisesRegex(Invalid, '"month" must be a whole number, not "May"'):
            self.provider.call_tool("month_days", {"month": "May"})

    # belljar:end
    # belljar:if prompts
    def test_the_prompt_makes_a_plan(self) -> None:
        text = "Make a plan for February, which has 28 days."
        self.assertEqual(self.provider.plan_month("February"), PromptResult(text, "A plan for February"))
        self.assertEqual(self.provider.plan_month("February", "rest").messages, f"{text} My goal: rest.")
        with self.assertRaisesRegex(Invalid, 'a month is one of January to December, not "Feb"'):
            self.provider.get_prompt("plan_month", {"month": "Feb"})

    def test_the_names_of_months_are_suggested(self) -> None:
        for name, text, values in [("month", "Ma", ["March", "May"]), ("month", "x", []), ("goal", "r", [])]:
            suggestions = self.provider.complete_prompt("plan_month", Argument(name, text))
            self.assertEqual(suggestions.values, values)

    # belljar:end

if __name__ == "__main__":
    unittest.main()
