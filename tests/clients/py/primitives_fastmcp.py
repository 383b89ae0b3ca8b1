"""The client of FastMCP 4. Uses tools, prompts, questions, progress and skills, and prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/clients/primitives.rs` documents both.
"""

import asyncio
import json
import sys

import mcp_types
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills.client import SkillsClientExtension
from mcp.shared.exceptions import MCPError
from primitives import Recorder, declared, report
from results import plain


class Adapter:
    """A client of FastMCP with the method names of the Python SDK. The methods of FastMCP that end in `_mcp` return whole results."""

    def __init__(self, client):
        self.client = client
        self.list_tools, self.list_prompts = client.list_tools_mcp, client.list_prompts_mcp
        self.get_prompt, self.complete = client.get_prompt_mcp, client.complete_mcp

    async def call_tool(self, name, arguments, progress_callback=None):
        """Calls a tool."""
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress_callback)


async def skills(client):
    """Lists the skills, and reads each. FastMCP raises an error if a size, a digest or the frontmatter differs.

    It refuses to read skills by an older protocol.
    """
    seen = []
    if client.protocol_version < "2026-07-28":
        return seen
    for entry in await client.list_skills():
        read = await client.read_skill(entry.uri)
        seen.append({"listed": plain(entry), "files": sorted(str(name) for name in read.files)})
    return seen


async def main(request):
    """Connects, makes the requests, and returns the report."""
    recorder = Recorder(request, mcp_types)
    if "url" in request:
        transport = request["url"]
    else:
        transport = StdioTransport(request["command"], request["args"], env=request["env"], keep_alive=False)

    async def answer(_message, _form, params, context):
        return await recorder.answer(context, params)

    async with Client(
        transport,
        mode=request["mode"],
        timeout=60,
        elicitation_handler=answer,
        cache=False,
        extensions=[SkillsClientExtension()],
    ) as client:
        seen = await report(Adapter(client), request, mcp_types, MCPError, recorder)
        seen["skills"] = await skills(client)
        return seen | {"protocol": client.protocol_version, "capabilities": declared(client.server_capabilities)}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
