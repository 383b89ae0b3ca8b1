"""A client with the Python SDK 2.3. Connects to a server, lists and reads its resources, and prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/clients/programs.rs` documents both.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError
from results import plain


async def collect(fetch, key):
    """Requests all pages of a list. Returns all items and the number of pages."""
    items, pages, cursor = [], 0, None
    while True:
        page = plain(await fetch(cursor))
        items += page[key]
        pages += 1
        cursor = page.get("nextCursor")
        if cursor is None:
            return items, pages


async def read(client, uri):
    """Reads a resource. Returns its contents, or the error of the server."""
    try:
        return {"contents": plain(await client.read_resource(uri))["contents"]}
    except MCPError as failure:
        return {"error": plain(failure.error)}


def elicitation_handler(answers, questions):
    """A handler that records each question, and takes the next of `answers`: "decline", "cancel", or a choice to accept."""

    async def answer(_, params):
        questions.append(plain(params))
        choice = answers.pop(0)
        if choice in ("decline", "cancel"):
            return types.ElicitResult(action=choice)
        return types.ElicitResult(action="accept", content={"consent": choice})

    return answer


async def main(request):
    """Connects, requests all lists, reads the requested resources, and returns the report."""
    questions = []
    callback = elicitation_handler(list(request["answers"]), questions) if "answers" in request else None
    if "url" in request:
        server = request["url"]
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    # Turn off the cache of the client, so that each answer comes from the server.
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
