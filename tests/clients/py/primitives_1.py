"""A client with the Python SDK 1.30. Uses tools, prompts, questions and progress, and prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/clients/primitives.rs` documents both.
"""

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession, McpError, types
from primitives import Recorder, declared, report
from sdk_1 import transport


async def main(request):
    """Connects, makes the requests, and returns the report."""
    recorder = Recorder(request, types)
    async with transport(request) as streams, ClientSession(
        streams[0],
        streams[1],
        read_timeout_seconds=timedelta(seconds=60),
        elicitation_callback=recorder.answer,
    ) as session:
        greeting = await session.initialize()
        seen = await report(session, request, types, McpError, recorder)
        return seen | {"protocol": greeting.protocolVersion, "capabilities": declared(greeting.capabilities)}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
