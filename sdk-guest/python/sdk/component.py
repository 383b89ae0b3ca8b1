"""Connects a provider with the interfaces that a component exports.

Only the entry of a component imports this module, because it imports modules that the build of a component generates.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from componentize_py_types import Err, Ok
from wit_world.exports import resource_provider as exported
from wit_world.imports import types as wit

from . import calls, convert, errors, model, progress, prompts, tools
from .parts import Extent, Range, Unit
from .provider import Completion, Parts, Provider, Revisions, Skills

T = TypeVar("T")

try:
    # The build generates this module only for worlds that import progress.
    _progress = import_module("wit_world.imports.progress")
except ModuleNotFoundError:
    pass
else:
    progress._host = lambda done, total, note: _progress.report(done, total, convert.text(note))

try:
    # The build generates this module only for worlds that import wasi:http.
    import_module("wit_world.imports.outgoing_handler")
except ModuleNotFoundError:
    pass
else:
    import_module(".http", __package__).install()


def resource_provider(make: Callable[[], Provider]) -> type:
    """The class ``ResourceProvider`` that the component exports. ``make`` makes the provider of each call."""

    class ResourceProvider:
        def describe(self) -> exported.ProviderInfo:
            try:
                info = make().describe()
            except Exception:
                # In the interface, describe has no error.
                traceback.print_exc(file=sys.stderr)
                info = model.Info()
            title, version, description = (convert.text(one) for one in (info.title, info.version, info.description))
            return exported.ProviderInfo(title, version, description)

        def list_resources(self, cursor: str | None) -> exported.ResourcePage:
            def call() -> exported.ResourcePage:
                page = make().list_resources(cursor)
                return exported.ResourcePage(
                    [convert.resource(one) for one in page.resources], convert.text(page.next_cursor)
                )

            return _answer(call)

        def list_templates(self) -> list[wit.TemplateInfo]:
            return _answer(lambda: [convert.template(one) for one in make().list_templates()])

        def read(self, reference: str) -> exported.Reading:
            return _answer(lambda: convert.reading(make().read(reference)))

    return ResourceProvider


def completion(make: Callable[[], Completion]) -> type:
    """The class ``Completion`` of a component whose world exports it."""
    # The build generates this module only for worlds with completion.
    exported_completion = import_module("wit_world.exports.completion")

    class Completion:
        def complete(self, template: str, argument: Any, resolved: Sequence[Any]) -> Any:
            def call() -> Any:
                given = make().complete(template, model.Argument(argument.name, argument.value), _values(resolved))
                return exported_completion.Suggestions([convert.clean(value) for value in given.values], given.total)

            return _answer(call)

    return Completion


def revisions(make: Callable[[], Revisions]) -> type:
    """The class ``Revisions`` of a component whose world exports it."""

    class Revisions:
        def catalog_revision(self) -> str:
            return _answer(lambda: convert.clean(make().catalog_revision()))

        def resource_revisions(self, references: Sequence[str]) -> list[Any]:
            return [one(make, reference) for reference in references]

    def one(make: Callable[[], Any], reference: str) -> Any:
        try:
            return Ok(_answer(lambda: convert.clean(make().resource_revision(reference))))
        except Err as error:
            return error

    return Revisions


def parts(make: Callable[[], Parts]) -> type:
    """The class ``Parts`` of a component whose world exports it."""
    # The build generates this module only for worlds with parts.
    wire = import_module("wit_world.exports.parts")

    def asked(given: Any) -> Range | None:
        if given is None:
            return None
        unit: Unit = "lines" if given.unit == wire.Unit.LINES else "bytes"
        match given.positions:
            case wire.Positions_Last():
                return Range(unit, last=given.positions.value)
            case _:
                return Range(unit, given.positions.value.start, given.positions.value.end)

    def extent(one: Extent | None) -> Any:
        if one is None:
            return None
        unit = wire.Unit.LINES if one.unit == "lines" else wire.Unit.BYTES
        return wire.Extent(unit, one.start, one.end, one.total, one.more)

    class Parts:
        def read_part(self, reference: str, range: Any, most: int) -> Any:
            def call() -> Any:
                given = make().read_part(reference, asked(range), most)
                contents = [convert.contents(one) for one in given.contents]
                return wire.PartialReading(contents, convert.milliseconds(given.fresh_for), extent(given.extent))

            return _answer(call)

        def list_below(self, reference: str, cursor: str | None) -> Any:
            def call() -> Any:
                page = make().list_below(reference, cursor)
                return wire.BelowPage([convert.resource(one) for one in page.resources], convert.text(page.next_cursor))

            return _answer(call)

    return Parts


def tool_provider(make: Callable[[], Provider]) -> type:
    """The class ``ToolProvider`` of a component whose world exports ``tool-provider``."""
    converter = import_module(".convert_calls", __package__)
    if isinstance(make, type):
        # Makes the schemas now: a mistake is an error of the build, and no call has to make them.
        tools.definitions(make)

    class ToolProvider:
        def list_tools(self) -> list[Any]:
            return _answer(lambda: [converter.tool(one) for one in make().list_tools()])

        def call(self, name: str, arguments: str, context: Any) -> Any:
            return _answer(
                lambda: converter.tool_outcome(
                    make().call_tool(name, json.loads(arguments), converter.context(context))
                )
            )

    return ToolProvider


def prompt_provider(make: Callable[[], Provider]) -> type:
    """The class ``PromptProvider`` of a component whose world exports ``prompt-provider``."""
    converter = import_module(".convert_calls", __package__)
    if isinstance(make, type):
        prompts.definitions(make)

    class PromptProvider:
        def list_prompts(self) -> list[Any]:
            return _answer(lambda: [converter.prompt(one) for one in make().list_prompts()])

        def get(self, name: str, arguments: Sequence[Any], context: Any) -> Any:
            return _answer(
                lambda: converter.prompt_outcome(
                    make().get_prompt(name, _values(arguments), converter.context(context))
                )
            )

        def complete(self, name: str, argument: Any, resolved: Sequence[Any]) -> Any:
            def call() -> Any:
                partial = model.Argument(argument.name, argument.value)
                return converter.suggestions(make().complete_prompt(name, partial, _values(resolved)))

            return _answer(call)

    return PromptProvider


def skill_provider(make: Callable[[], Skills]) -> type:
    """The class ``SkillProvider`` of a component whose world exports ``skill-provider``."""
    # The build generates this module only for worlds with skills.
    exported_skills = import_module("wit_world.exports.skill_provider")

    def info(one: calls.Skill) -> Any:
        return exported_skills.SkillInfo(convert.clean(one.root), [convert.clean(file) for file in one.files])

    class SkillProvider:
        def list_skills(self, cursor: str | None) -> Any:
            def call() -> Any:
                page = make().list_skills(cursor)
                return exported_skills.SkillPage([info(one) for one in page.skills], convert.text(page.next_cursor))

            return _answer(call)

        def get_skill(self, root: str) -> Any:
            return _answer(lambda: info(make().get_skill(root)))

    return SkillProvider


def _values(arguments: Sequence[Any]) -> dict[str, str]:
    return {one.name: one.value for one in arguments}


def _answer(call: Callable[[], T]) -> T:
    try:
        return call()
    except Exception as error:
        converted = errors.from_exception(error)
        if converted is not error:
            traceback.print_exc(file=sys.stderr)
        raise Err(convert.error(converted)) from None
