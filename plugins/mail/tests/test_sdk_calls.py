"""Tests of the tools, prompts and skills of the Python SDK."""

import unittest
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from belljar_guest import (
    Answer,
    Argument,
    Ask,
    Contents,
    Context,
    Field,
    Image,
    Invalid,
    Link,
    Message,
    NotFound,
    PromptResult,
    Provider,
    Question,
    Skill,
    SkillPage,
    Skills,
    Suggestions,
    Text,
    ToolInfo,
    ToolResult,
    View,
    progress,
    prompt,
    tool,
)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)
    color: Color | None = None


class Filter(TypedDict):
    words: Annotated[list[str], Field(min=1)]
    limit: NotRequired[int]


@dataclass
class Sure:
    delete: bool
    why: Annotated[str | None, "For the log"] = None


class Example(Provider):
    def read(self, reference: str) -> Contents:
        return Contents(reference, "")

    @tool(effect="reads", view=View("page.html"))
    def everything(
        self,
        number: Annotated[int, Field(description="A number.", min=1, max=9)],
        text: Annotated[str, Field(max=5, pattern="^a", format="email")],
        point: Point,
        found: Filter,
        *,
        size: Literal["small", "large"] = "small",
        color: Color = Color.BLUE,
        ratio: float | None = None,
        flags: Mapping[str, bool] | None = None,
        either: int | str = 1,
        nothing: str | None,
        free: Any = None,
    ) -> dict[str, int]:
        """Takes arguments of every type."""
        self.given = (number, text, point, found, size, color, ratio, flags, either, nothing, free)
        return {"number": number}

    @tool
    def erase(self, name: str, context: Context) -> str | Ask:
        """Erases a note, if a person agrees."""
        if not context.can_ask:
            raise Invalid("this needs a client that can ask a person")
        if "sure" not in context.answers:
            return Ask(Question("sure", f"Erase {name}?", Sure), state=name)
        sure = context.accepted("sure")
        return f"Erased {context.state}." if sure and sure["delete"] else "Nothing was erased."

    @tool
    def count(self, to: int) -> str:
        """Counts."""
        for number in range(1, to + 1):
            progress.report(number, to, f"at {number}")
        return f"Counted to {to}."

    @tool(name="other-name", description="Not the docstring.")
    def show(self) -> Sequence[str | Text | Image | Link]:
        """A picture and a link."""
        return ["Look:", Image(b"\x89PNG", "image/png"), Link("hello.txt")]

    @prompt
    def greet(self, name: str, tone: Literal["kind", "short"] = "kind") -> list[str | Message]:
        """Greets."""
        return [f"Greet {name}, {tone}.", Message("Hello.", "assistant")]

    def _names(self, text: str, others: Mapping[str, str]) -> Suggestions:
        return Suggestions([f"{text}{others.get('suffix', '')}"], 7)

    @prompt(title="Farewell", suggest={"name": _names})
    def part(self, name: str, context: Context, suffix: str | None = None) -> PromptResult | Ask:
        """Says goodbye."""
        if context.can_ask and "when" not in context.answers:
            return Ask([Question("when", "When?", {"type": "object", "properties": {"when": {"type": "string"}}})])
        return PromptResult(f"Bye {name}{suffix or ''}.", "Goodbye")


class Derived(Example):
    @tool(effect="adds")
    def count(self, to: int) -> str:
        """Counts in another way."""
        return f"{to}!"


class Tools(unittest.TestCase):
    def setUp(self) -> None:
        self.provider = Example()
        self.tools = {one.name: one for one in self.provider.list_tools()}

    def call(self, name: str, arguments: Mapping[str, Any], context: Context = Context()) -> ToolResult[Any]:
        result = self.provider.call_tool(name, arguments, context)
        assert isinstance(result, ToolResult)
        return result

    def test_types_make_the_schema(self) -> None:
        found = self.tools["everything"].input
        self.assertEqual(found["required"], ["number", "text", "point", "found", "nothing"])
        self.assertIs(found["additionalProperties"], False)
        color = {"type": "string", "enum": ["red", "blue"]}
        point = {
            "x": {"type": "number"},
            "y": {"type": "number", "default": 0.0},
            "tags": {"type": "array", "items": {"type": "string"}},
            "color": color,
        }
        words = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        expected = {
            "number": {"type": "integer", "description": "A number.", "minimum": 1, "maximum": 9},
            "text": {"type": "string", "pattern": "^a", "format": "email", "maxLength": 5},
            "point": {"type": "object", "properties": point, "required": ["x"]},
            "found": {
                "type": "object",
                "properties": {"words": words, "limit": {"type": "integer"}},
                "required": ["words"],
            },
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
            "color": color | {"default": "blue"},
            "ratio": {"type": "number"},
            "flags": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
            "nothing": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "free": {},
        }
        self.assertEqual(found["properties"], expected)
        self.assertEqual(
            self.tools["everything"].output, {"type": "object", "additionalProperties": {"type": "integer"}}
        )

    def test_json_becomes_values_of_these_types(self) -> None:
        arguments: dict[str, Any] = {
            "number": 2.0,
            "text": "a",
            "point": {"x": 1, "tags": ["t"], "color": "red"},
            "found": {"words": ["w"]},
            "either": "e",
            "nothing": None,
            "flags": {"f": True},
        }
        result = self.call("everything", arguments)
        self.assertEqual((result.structured, result.text), ({"number": 2}, '{"number":2}'))
        point = Point(1.0, 0.0, ["t"], Color.RED)
        expected = (2, "a", point, {"words": ["w"]}, "small", Color.BLUE, None, {"f": True}, "e", None, None)
        self.assertEqual(self.provider.given, expected)
        self.assertIs(type(self.provider.given[0]), int)
        changes: list[tuple[dict[str, Any], str]] = [
            ({"number": 2.5}, '"number" must be a whole number, not "2.5"'),
            ({"number": True}, '"number" must be a whole number, not "True"'),
            ({"point": {}}, '"x" of "point" is missing'),
            ({"point": {"x": "1"}}, '"x" must be a number, not "1"'),
            ({"found": {"words": ["w", 1]}}, 'item 2 of "words" must be a text, not "1"'),
            ({"size": "huge"}, '"size" must be one of small, large, not "huge"'),
            ({"flags": {"f": 1}}, '"f" of "flags" must be true or false, not "1"'),
            ({"either": None}, '"either" must be of one of the types integer, string, not "None"'),
        ]
        for change, why in changes:
            with self.assertRaises(Invalid) as raised:
                self.provider.call_tool("everything", arguments | change)
            self.assertEqual(str(raised.exception), why)

    def test_a_definition_has_the_words_of_the_method(self) -> None:
        erase = self.tools["erase"]
        self.assertEqual((erase.description, erase.effect), ("Erases a note, if a person agrees.", "destroys"))
        # The context is no argument of the caller.
        self.assertEqual(list(erase.input["properties"]), ["name"])
        self.assertIsNone(erase.output)
        self.assertEqual(self.tools["other-name"].description, "Not the docstring.")
        self.assertEqual(self.tools["everything"].view, View("page.html"))
        self.assertEqual([one.name for one in Derived().list_tools()], ["everything", "erase", "count", "other-name"])
        self.assertEqual(Derived().call_tool("count", {"to": 3}), ToolResult((Text("3!"),)))
        with self.assertRaises(NotFound):
            self.provider.call_tool("show", {})

    def test_a_method_may_have_other_decorators(self) -> None:
        def loud(method: Callable[..., str]) -> Callable[..., str]:
            @wraps(method)
            def wrapper(*args: Any, **kwargs: Any) -> str:
                return method(*args, **kwargs).upper()

            return wrapper

        def say(self: Any, what: str) -> str:
            """Says it."""
            return what

        for method in (tool(loud(say)), loud(tool(say))):
            provider = made(say=method)
            self.assertIn("say", [one.name for one in provider.list_tools()])
            self.assertEqual(provider.call_tool("say", {"what": "x"}), ToolResult((Text("X"),)))

    def test_results_are_converted(self) -> None:
        self.assertEqual(self.call("count", {"to": 2}), ToolResult((Text("Counted to 2."),)))
        picture = Image(b"\x89PNG", "image/png")
        self.assertEqual(self.call("other-name", {}).content, (Text("Look:"), picture, Link("hello.txt")))

        def of(value: Any) -> ToolResult[Any]:
            class One(Provider):
                def read(self, reference: str) -> Contents:
                    raise NotFound

                @tool
                def one(self):  # type: ignore[no-untyped-def]
                    """Returns the value."""
                    return value

            result = One().call_tool("one", {})
            assert isinstance(result, ToolResult)
            return result

        self.assertEqual(of(None).text, "Done.")
        self.assertEqual(of([1, 2]), ToolResult((Text("[1,2]"),)))
        point = {"x": 1.0, "y": 0.0, "tags": [], "color": "red"}
        self.assertEqual(of(Point(1.0, color=Color.RED)).structured, point)
        self.assertEqual(of(ToolResult("no", is_error=True)), ToolResult((Text("no"),), is_error=True))
        with self.assertRaisesRegex(TypeError, 'a structured result must be a dict.*, not "list"'):
            of(ToolResult("x", [1]))

    def test_a_question_comes_before_the_result(self) -> None:
        with self.assertRaisesRegex(Invalid, "a client that can ask"):
            self.provider.call_tool("erase", {"name": "n"})
        asked = self.provider.call_tool("erase", {"name": "n"}, Context(can_ask=True))
        self.assertEqual(asked, Ask(Question("sure", "Erase n?", Sure), "n"))
        for answer, text in [
            (Answer("accept", {"delete": True}), "Erased n."),
            (Answer("accept", {"delete": False}), "Nothing was erased."),
            (Answer("decline"), "Nothing was erased."),
        ]:
            context = Context(can_ask=True, answers={"sure": answer}, state="n")
            self.assertEqual(self.call("erase", {"name": "n"}, context).text, text)

    def test_progress_goes_to_the_host(self) -> None:
        reports: list[tuple[float, float | None, str | None]] = []
        progress._host = lambda *report: reports.append(report)
        try:
            self.call("count", {"to": 2})
        finally:
            progress._host = None
        self.assertEqual(reports, [(1.0, 2.0, "at 1"), (2.0, 2.0, "at 2")])

    def test_mistakes_are_errors_of_the_build(self) -> None:
        def define(function: Any) -> Sequence[ToolInfo]:
            return made(one=tool(function)).list_tools()

        def no_type(self, name) -> str:  # type: ignore[no-untyped-def]
            """Text."""
            return ""

        def no_schema(self: Any, name: complex) -> str:
            """Text."""
            return ""

        def no_name(self: Any, *names: str) -> str:
            """Text."""
            return ""

        def no_description(self: Any) -> str:
            return ""

        async def later(self: Any) -> str:
            """Text."""
            return ""

        def limits(self: Any, yes: Annotated[bool, Field(min=1)]) -> str:
            """Text."""
            return ""

        for function, why in [
            (no_type, 'the argument "name" of the tool "no_type" has no type: write "name: str"'),
            (no_schema, "complex.* has no schema: use str, int"),
            (no_name, 'the argument "names" of the tool "no_name" has no name for callers'),
            (no_description, 'the tool "no_description" has no description: write a docstring'),
            (later, 'the tool "later" must be a plain method'),
            (limits, '"min" and "max" are for numbers, texts and lists'),
        ]:
            with self.assertRaisesRegex(TypeError, why):
                define(function)
        with self.assertRaisesRegex(TypeError, 'the tool "limits" must be a plain method: remove'):
            made(one=staticmethod(tool(limits))).list_tools()
        with self.assertRaisesRegex(TypeError, 'the name of the tool "a b" must be'):
            tool(name="a b")(no_schema)
        with self.assertRaisesRegex(TypeError, '"count" and "one" are both the tool "count": rename one'):
            made(one=tool(name="count")(limits)).list_tools()


def made(**methods: Any) -> Provider:
    """A provider with these methods beside those of the example."""
    provider: Provider = type("One", (Example,), methods)()
    return provider


class Prompts(unittest.TestCase):
    def setUp(self) -> None:
        self.provider = Example()

    def test_texts_are_the_arguments(self) -> None:
        greet, part = self.provider.list_prompts()
        self.assertEqual((greet.name, greet.description), ("greet", "Greets."))
        self.assertEqual([(one.name, one.required) for one in greet.arguments], [("name", True), ("tone", False)])
        self.assertEqual(part.title, "Farewell")

    def test_messages_are_converted(self) -> None:
        expected = PromptResult((Message(Text("Greet Ann, short.")), Message(Text("Hello."), "assistant")))
        self.assertEqual(self.provider.get_prompt("greet", {"name": "Ann", "tone": "short"}), expected)
        with self.assertRaisesRegex(Invalid, '"tone" must be one of kind, short, not "long"'):
            self.provider.get_prompt("greet", {"name": "Ann", "tone": "long"})
        with self.assertRaises(NotFound):
            self.provider.get_prompt("nothing", {})

    def test_a_prompt_can_ask(self) -> None:
        asked = self.provider.get_prompt("part", {"name": "Ann", "suffix": "!"}, Context(can_ask=True))
        self.assertIsInstance(asked, Ask)
        expected = PromptResult((Message(Text("Bye Ann!.")),), "Goodbye")
        self.assertEqual(self.provider.get_prompt("part", {"name": "Ann", "suffix": "!"}), expected)

    def test_values_are_suggested(self) -> None:
        complete = self.provider.complete_prompt
        self.assertEqual(complete("greet", Argument("tone", "K")), Suggestions(["kind"]))
        self.assertEqual(complete("greet", Argument("name", "A")), Suggestions([]))
        self.assertEqual(complete("part", Argument("name", "A"), {"suffix": "!"}), Suggestions(["A!"], 7))
        many = Suggestions.starting_with("1", (str(number) for number in range(1000)))
        self.assertEqual((len(many.values), many.total), (100, 111))

    def test_mistakes_are_errors_of_the_build(self) -> None:
        def number(self: Any, number: int) -> str:
            """Text."""
            return ""

        with self.assertRaisesRegex(TypeError, 'the argument "number" of the prompt "number" must be a text'):
            made(number=prompt(number)).list_prompts()
        wrong = prompt(suggest={"nobody": ["x"]})(Example.greet)
        with self.assertRaisesRegex(TypeError, 'has suggestions for "nobody"'):
            made(greet=wrong).list_prompts()


class TwoSkills(Skills):
    def list_skills(self, cursor: str | None) -> SkillPage:
        number = int(cursor or "1")
        return SkillPage([Skill(f"s{number}", [f"s{number}/SKILL.md"])], "2" if number == 1 else None)


class SkillsTest(unittest.TestCase):
    def test_a_listed_skill_is_found_on_any_page(self) -> None:
        self.assertEqual(TwoSkills().get_skill("s2"), Skill("s2", ["s2/SKILL.md"]))
        with self.assertRaises(NotFound):
            TwoSkills().get_skill("s3")


if __name__ == "__main__":
    unittest.main()
