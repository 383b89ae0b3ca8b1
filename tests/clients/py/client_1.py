"""A client with the Python SDK 1.30. Connects to a server, lists and reads its resources, and prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/clients/programs.rs` documents both.
"""

import asyncio
import json
import sys
from datetime import timedelta
from importlib.metadata import version

from mcp import ClientSession, McpError, types
from results import plain
from sdk_1 import transport


async def collect(fetch, key):
    """Requests all pages of a list. Returns all items and the number of pages."""
    items, pages, cursor = [], 0, None
    while True:
        page = plain(await fetch(params=types.PaginatedRequestParams(cursor=cursor)))
        items += page[key]
        pages += 1
        cursor = page.get("nextCursor")
        if cursor is None:
            return items, pages


async def read(session, uri):
    """Reads a resource. Returns its contents, or the error of the server."""
    try:
        return {"contents": plain(await session.read_resource(uri))["contents"]}
    except McpError as failure:
        return {"error": plain(failure.error)}


async def main(request):
    """Connects, requests all lists, reads the requested resources, and returns the report."""
    async with transport(request) as streams, ClientSession(
        streams[0], streams[1], read_timeout_seconds=timedelta(seconds=60)
    ) as session:
        greeting = await session.initialize()
        resources, pages = await collect(session.list_resources, "resources")
        templates, _ = await collect(session.list_resource_templates, "resourceTemplates")
        reads = {uri: await read(session, uri) for uri in request["reads"]}
        return {
            "client": "python mcp " + version("mcp"),
            "protocol": greeting.protocolVersion,
            "server": greeting.serverInfo.name,
            "resources": resources,
            "pages": pages,
            "templates": templates,
            "reads": reads,
        }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
