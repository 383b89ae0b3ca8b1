"""The Python SDK 2.3 as a client: prints, as one JSON line, what it saw of a server.

argv[1] is the JSON request that `tests/e2e/clients.rs` documents; the report has the shape documented there too.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError


def plain(model):
    """A result as the wire spells it, without what was absent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def collect(fetch, key):
    """Every page of a listing, and how many pages there were."""
    items, pages, cursor = [], 0, None
    while True:
        page = plain(await fetch(cursor))
        items += page[key]
        pages += 1
        cursor = page.get("nextCursor")
        if cursor is None:
            return items, pages


async def read(client, uri):
    """One read: the contents, or the error that came instead."""
    try:
        return {"contents": plain(await client.read_resource(uri))["contents"]}
    except MCPError as failure:
        return {"error": plain(failure.error)}


def person(answers, questions):
    """Who answers questions, one after the other: an action, or a choice that is accepted."""

    async def answer(_, params):
        questions.append(plain(params))
        word = answers.pop(0)
        if word in ("decline", "cancel"):
            return types.ElicitResult(action=word)
        return types.ElicitResult(action="accept", content={"consent": word})

    return answer


async def main(request):
    """Connects, walks everything, reads what was asked, reports."""
    questions = []
    callback = person(list(request["answers"]), questions) if "answers" in request else None
    if "url" in request:
        server = request["url"]
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    # A server is asked each time: what a client remembers says nothing about the server.
    async with Client(
        server, mode=request["mode"], cache=None, read_timeout_seconds=60, elicitation_callback=callback
    ) as client:
        resources, pages = await collect(lambda cursor: client.list_resources(cursor=cursor), "resources")
        templates, _ = await collect(
            lambda cursor: client.list_resource_templates(cursor=cursor), "resourceTemplates"
        )
        reads = {uri: await read(client, uri) for uri in request["reads"]}
        return {
            "client": "python mcp " + version("mcp"),
            "protocol": client.protocol_version,
            "server": client.server_info.name,
            "resources": resources,
            "pages": pages,
            "templates": templates,
            "reads": reads,
            "questions": questions,
        }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
