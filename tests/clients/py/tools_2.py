"""A client with the Python SDK 2.3. Calls tools, completes arguments, and prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/clients/tools.rs` documents both.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError
from results import attempt, plain


def complete(client, wanted):
    """Requests one completion. `wanted` is an entry of the request's `completions`."""
    return client.complete(
        types.ResourceTemplateReference(type="ref/resource", uri=wanted["template"]),
        {"name": wanted["name"], "value": wanted["value"]},
        context_arguments=wanted.get("known"),
    )


async def main(request):
    """Connects, lists the tools, makes the requested calls and completions, and returns the report."""
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
            "calls": [
                await attempt(client.call_tool(call["name"], call["arguments"]), MCPError) for call in request["calls"]
            ],
            "completions": [await attempt(complete(client, wanted), MCPError) for wanted in request["completions"]],
        }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
