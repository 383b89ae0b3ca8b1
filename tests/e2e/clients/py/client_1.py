"""The Python SDK 1.30 as a client: prints, as one JSON line, what it saw of a server.

argv[1] is the JSON request that `tests/e2e/clients.rs` documents; the report has the shape documented there too.
"""

import asyncio
import json
import sys
from datetime import timedelta
from importlib.metadata import version

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def plain(model):
    """A result as the wire spells it, without what was absent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def collect(fetch, key):
    """Every page of a listing, and how many pages there were."""
    items, pages, cursor = [], 0, None
    while True:
        page = plain(await fetch(params=types.PaginatedRequestParams(cursor=cursor)))
        items += page[key]
        pages += 1
        cursor = page.get("nextCursor")
        if cursor is None:
            return items, pages


async def read(session, uri):
    """One read: the contents, or the error that came instead."""
    try:
        return {"contents": plain(await session.read_resource(uri))["contents"]}
    except McpError as failure:
        return {"error": plain(failure.error)}


async def main(request):
    """Connects, walks everything, reads what was asked, reports."""
    if "url" in request:
        transport = streamable_http_client(request["url"])
    else:
        transport = stdio_client(
            StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
        )
    async with transport as streams, ClientSession(
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
