"""A client with the Python SDK 2.3. Uses tools, prompts, questions and progress, and prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/clients/primitives.rs` documents both.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError
from primitives import Recorder, declared, report


async def main(request):
    """Connects, makes the requests, and returns the report."""
    recorder = Recorder(request, types)
    if "url" in request:
        server = request["url"]
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    async with Client(
        server, mode=request["mode"], cache=None, read_timeout_seconds=60, elicitation_callback=recorder.answer
    ) as client:
        seen = await report(client, request, types, MCPError, recorder)
        return seen | {"protocol": client.protocol_version, "capabilities": declared(client.server_capabilities)}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
