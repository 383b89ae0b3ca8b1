"""Converts the data of tools and prompts to the types that the build of a component generates, and back.

Only ``component`` imports this module, and only for worlds with tools or prompts. Other worlds lack these types.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wit_world.imports import types as wit

from . import calls, convert, model, schema

wit_calls: Any = import_module("wit_world.imports.call_types")


def _exported(name: str) -> Any:
    module = f"wit_world.exports.{name}"
    return import_module(module) if find_spec(module) else None


wit_tools: Any = _exported("tool_provider")
wit_prompts: Any = _exported("prompt_provider")


def context(given: Any) -> calls.Context:
    return calls.Context(given.can_ask, {one.key: _answer(one) for one in given.answers}, given.state)


def _answer(given: Any) -> calls.Answer:
    return calls.Answer(given.action.name.lower(), None if given.content is None else json.loads(given.content))


def tool(one: calls.ToolInfo) -> Any:
    view = None if one.view is None else wit_tools.View(convert.clean(one.view.page), one.view.app_only)
    return wit_tools.ToolInfo(
        name=convert.clean(one.name),
        title=convert.text(one.title),
        description=convert.clean(one.description),
        input=convert.as_json(one.input),
        output=None if one.output is None else convert.as_json(one.output),
        effect=wit_tools.Effect[one.effect.upper()],
        idempotent=one.idempotent,
        open_world=one.open_world,
        view=view,
        icons=convert.icons(one.icons),
        meta=convert.meta(one.meta),
    )


def tool_outcome(given: calls.ToolResult[Any] | calls.Ask) -> Any:
    if isinstance(given, calls.Ask):
        return wit_tools.Outcome_Ask(_ask(given))
    result = wit_tools.ToolResult(
        content=[_block(one) for one in calls.blocks(given.content)],
        structured=None if given.structured is None else convert.as_json(given.structured),
        is_error=given.is_error,
        meta=convert.meta(given.meta),
    )
    return wit_tools.Outcome_Done(result)


def prompt(one: calls.PromptInfo) -> Any:
    arguments = [
        wit_prompts.PromptArgument(
            convert.clean(argument.name),
            convert.text(argument.title),
            convert.text(argument.description),
            argument.required,
        )
        for argument in one.arguments
    ]
    return wit_prompts.PromptInfo(
        name=convert.clean(one.name),
        title=convert.text(one.title),
        description=convert.clean(one.description),
        arguments=arguments,
        icons=convert.icons(one.icons),
        meta=convert.meta(one.meta),
    )


def prompt_outcome(given: calls.PromptResult | calls.Ask) -> Any:
    if isinstance(given, calls.Ask):
        return wit_prompts.Outcome_Ask(_ask(given))
    messages = [
        wit_calls.Message(_role(one.role), _block(block))
        for one in calls.messages(given.messages)
        for block in calls.blocks(one.content)
    ]
    return wit_prompts.Outcome_Done(wit_prompts.PromptResult(convert.text(given.description), messages))


def suggestions(given: model.Suggestions) -> Any:
    return wit_calls.Suggestions([convert.clean(value) for value in given.values], given.total)


def _ask(given: calls.Ask) -> Any:
    questions: Sequence[calls.Question] = (
        [given.questions] if isinstance(given.questions, calls.Question) else given.questions
    )
    converted = [
        wit_calls.Question(
            convert.clean(one.key),
            convert.clean(one.message),
            convert.as_json(schema.form_schema(one.form, f'the question "{one.key}"')),
        )
        for one in questions
    ]
    return wit_calls.Ask(converted, convert.text(given.state))


def _role(role: str) -> wit.Role:
    return wit.Role.ASSISTANT if role == "assistant" else wit.Role.USER


def _block(one: calls.Block) -> Any:
    return wit_calls.Block(_body(one), convert.hints(one.annotations))


def _body(one: calls.Block) -> Any:
    match one:
        case calls.Text(text):
            return wit_calls.BlockBody_Text(convert.clean(text))
        case calls.Image(data, mime_type):
            return wit_calls.BlockBody_Image(wit_calls.Media(convert.clean(mime_type), bytes(data)))
        case calls.Audio(data, mime_type):
            return wit_calls.BlockBody_Audio(wit_calls.Media(convert.clean(mime_type), bytes(data)))
        case calls.Embedded(contents):
            return wit_calls.BlockBody_Embedded(convert.contents(contents))
        case calls.Link():
            link = wit_calls.Link(
                reference=convert.clean(one.reference),
                name=convert.clean(one.reference if one.name is None else one.name),
                title=convert.text(one.title),
                description=convert.text(one.description),
                mime_type=convert.text(one.mime_type),
                size=one.size,
            )
            return wit_calls.BlockBody_Link(link)
