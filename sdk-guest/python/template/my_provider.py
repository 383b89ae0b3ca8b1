# belljar:if none
"""The resources of this provider. Everything here is an example: replace it."""
# belljar:end
# belljar:if any
"""What this provider offers. Everything here is an example: replace it."""
# belljar:end

import json
from base64 import b64decode
# belljar:if tools
from calendar import isleap
# belljar:end
from collections.abc import Iterator
# belljar:if tools
from dataclasses import dataclass
# belljar:end
from datetime import UTC, datetime
from pathlib import Path
# belljar:if any
from typing import Annotated
# belljar:end

from belljar_guest import (
    Annotations,
    Contents,
    Denied,
    # belljar:if tools
    Field,
    # belljar:end
    Info,
    Invalid,
    NotFound,
    Page,
    # belljar:if prompts
    PromptResult,
    # belljar:end
    Provider,
    Reading,
    Resource,
    Template,
    # belljar:if tools
    ToolResult,
    # belljar:end
    decode,
    encode_segment,
    # belljar:if prompts
    prompt,
    # belljar:end
    # belljar:if tools
    tool,
    # belljar:end
)

MONTHS = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
]

# A picture of one dot.
DOT = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


# belljar:if tools
@dataclass
class MonthDays:
    month: str
    days: int


# belljar:end
class MyProvider(Provider):
    """The host creates a new instance for each call; tests pass another directory."""

    def __init__(self, data: Path = Path("/data")) -> None:
        self.data = data

    def describe(self) -> Info:
        return Info(
            title="my-provider",
            version="0.1.0",
            description="A greeting, a picture, the months of a year, and the files of a directory.",
        )

    def list_resources(self, cursor: str | None) -> Page:
        return Page.of(self._resources(), cursor, 10)

    def list_templates(self) -> list[Template]:
        return [
            Template(
                "months/{month}",
                name="month",
                description="A month of the year by its number, from 1 to 12.",
                mime_type="application/json",
            ),
            Template("files/{name}", name="file", description="A file of the directory by its name; without a name, all files."),
        ]

    def read(self, reference: str) -> Contents | Reading:
        match reference.split("/"):
            case ["hello.txt"]:
                return Contents(reference, "Hello from my-provider.\n", "text/plain")
            case ["dot.png"]:
                return Contents(reference, DOT, "image/png")
            case ["months", number]:
                return self._month(reference, decode(number))
            case ["files", ""]:
                return self._all_files()
            case ["files", name]:
                return self._file(reference, decode(name))
            case _:
                raise NotFound

    # belljar:if tools
    @tool(effect="reads", idempotent=True, open_world=False)
    def month_days(
        self,
        month: Annotated[int, Field(description="The number of the month.", min=1, max=12)],
        year: Annotated[int | None, "The year, which decides about leap days."] = None,
    ) -> ToolResult[MonthDays]:
        """How many days a month has."""
        name, days = MONTHS[month - 1]
        if year is not None:
            days += month == 2 and isleap(year)
        when = name if year is None else f"{name} {year}"
        return ToolResult(f"{when} has {days} days.", MonthDays(name, days))

    # belljar:end
    # belljar:if prompts
    @prompt(suggest={"month": [name for name, _ in MONTHS]})
    def plan_month(
        self,
        month: Annotated[str, "The name of the month"],
        goal: Annotated[str | None, "What to achieve in it"] = None,
    ) -> PromptResult:
        """A plan for a month."""
        days = dict(MONTHS).get(month)
        if days is None:
            raise Invalid(f'a month is one of January to December, not "{month}"')
        text = f"Make a plan for {month}, which has {days} days."
        return PromptResult(text if goal is None else f"{text} My goal: {goal}.", f"A plan for {month}")

    # belljar:end
    # A generator, because it creates only the entries that a page shows.
    def _resources(self) -> Iterator[Resource]:
        yield Resource("hello.txt", mime_type="text/plain")
        yield Resource("dot.png", mime_type="image/png")
        for number, (name, _) in enumerate(MONTHS, 1):
            yield Resource(f"months/{number}", name, mime_type="application/json")
        for path in self._paths():
            found = path.stat()
            modified = Annotations(last_modified=datetime.fromtimestamp(int(found.st_mtime), UTC))
            reference = f"files/{encode_segment(path.name)}"
            yield Resource(
                reference, path.name, mime_type=mime_type(path.name), size=found.st_size, annotations=modified
            )

    def _paths(self) -> Iterator[Path]:
        if not self.data.is_dir():
            return
        for path in sorted(self.data.iterdir(), key=lambda path: path.name):
            if not path.is_symlink() and path.is_file():
                yield path

    def _month(self, reference: str, number: str) -> Contents:
        if not (number.isascii() and number.isdecimal()):
            raise Invalid(f'a month is a number from 1 to 12, not "{number}"')
        if len(number) > 2 or not 1 <= int(number) <= 12:
            raise NotFound
        name, days = MONTHS[int(number) - 1]
        month = {"month": int(number), "name": name, "days": days}
        return Contents(reference, json.dumps(month, separators=(",", ":")), "application/json")

    def _all_files(self) -> Reading:
        self._need_grant()
        contents = [self._file(f"files/{encode_segment(path.name)}", path.name) for path in self._paths()]
        if not contents:
            raise NotFound
        return Reading(contents)

    def _need_grant(self) -> None:
        if not self.data.is_dir():
            raise Denied('this needs the directory "/data", which was not granted')

    def _file(self, reference: str, name: str) -> Contents:
        self._need_grant()
        path = self.data / name
        if "/" in name or not path.is_file():
            raise NotFound
        return Contents.from_bytes(reference, path.read_bytes(), mime_type(name))


def mime_type(name: str) -> str:
    return "text/markdown" if name.endswith(".md") else "text/plain"
