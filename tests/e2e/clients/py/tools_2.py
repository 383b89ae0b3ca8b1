"""The Python SDK 2.3 calling tools and completing: prints, as one JSON line, what it saw of a server.

argv[1] is the JSON request that `tests/e2e/tools.rs` documents; the report has the shape documented there too.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError


def plain(model):
    """A result as the wire spells it, without what was absent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def attempt(work):
    """A result, or the error that came instead. What is not as its schema says, the SDK raises as something else."""
    try:
        return {"result": plain(await work)}
    except MCPError as failure:
        return {"error": plain(failure.error)}


def complete(client, wish):
    """One completion."""
    return client.complete(
        types.ResourceTemplateReference(type="ref/resource", uri=wish["template"]),
        {"name": wish["name"], "value": wish["value"]},
        context_arguments=wish.get("known"),
    )


async def main(request):
    """Connects, lists the tools, calls and completes what was asked, reports."""
    if "url" in request:
        server = request["url"]
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    async with Client(server, mode=request["mode"], cache=None, read_timeout_seconds=60) as client:
        capabilities = client.server_capabilities
        return {
            "protocol": client.protocol_version,
            "capabilities": [name for name in ("tools", "completions") if getattr(capabilities, name) is not None],
            "tools": plain(await client.list_tools())["tools"],
            "calls": [await attempt(client.call_tool(call["name"], call["arguments"])) for call in request["calls"]],
            "completions": [await attempt(complete(client, wish)) for wish in request["completions"]],
        }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
