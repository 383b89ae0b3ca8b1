"""A server with FastMCP and its fastest settings, without a sandbox: static resources, bodies that are created once, stateless HTTP,
one JSON answer for each request, no log of requests. The benches compare belljar with this server.

`server.py stdio FILE` serves stdio. `server.py http FILE PORT` serves HTTP. With the last argument `list`, the server has a hundred
resources and no others. With the last argument `sessions`, the server has sessions: if clients use the older protocol revision, this
costs less than a new session for each request.
"""

import sys
from pathlib import Path

from fastmcp import FastMCP

transport, path, *rest = sys.argv[1:]
mcp = FastMCP("bench")


def serve(name, kind, body):
    """Adds a resource with a fixed body."""
    mcp.resource(f"bench://{name}", mime_type=kind)(lambda: body)


def read() -> str:
    """Reads the file, in each request."""
    return Path(path).read_text()


if "list" in rest:
    for at in range(1, 101):
        serve(f"n/{at:06}", "text/plain", "x")
else:
    for size in (1024, 65536, 1048576):
        serve(f"text/{size}", "text/plain", "x" * size)
    serve("blob/1048576", "application/octet-stream", b"\xa5" * 1048576)
    mcp.resource("bench://file", mime_type="text/plain")(read)

if transport == "stdio":
    mcp.run(transport="stdio", show_banner=False, log_level="warning")
else:
    mcp.run(
        transport="http",
        host="127.0.0.1",
        port=int(rest[0]),
        show_banner=False,
        log_level="warning",
        stateless_http="sessions" not in rest,
        json_response=True,
    )
