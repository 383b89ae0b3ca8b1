"""A client with the Python SDK 2.3 that traces its requests with OpenTelemetry. Prints its own spans as one line of JSON.

argv[1] is a JSON request: the server (`command`, `args`, `env`, or `url`), and `read`, a list of URIs.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from results import attempt

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)


async def main(request):
    """Reads each URI."""
    if "url" in request:
        server = request["url"]
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    async with Client(server, cache=None, read_timeout_seconds=60) as client:
        await client.list_resources()
        return [await attempt(client.read_resource(uri), MCPError) for uri in request["read"]]


results = asyncio.run(main(json.loads(sys.argv[1])))
own = [
    {
        "name": span.name,
        "trace": f"{span.context.trace_id:032x}",
        "span": f"{span.context.span_id:016x}",
        "start": span.start_time,
        "end": span.end_time,
    }
    for span in spans.get_finished_spans()
]
print(json.dumps({"spans": own, "results": results}))
