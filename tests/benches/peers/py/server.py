"""FastMCP as fast as it goes, and no sandbox: static resources, bodies that are made once, stateless HTTP, one JSON answer for
each request, no log of requests.

`server.py stdio FILE` serves stdio, `server.py http FILE PORT` HTTP; with `list` at the end it has a hundred resources and no
others, with `sessions` it has sessions, which cost less than a new one for each request where clients are of the older era.
"""

import sys
from pathlib import Path

from fastmcp import FastMCP

transport, path, *rest = sys.argv[1:]
mcp = FastMCP("bench")


def serve(name, kind, body):
    """Answers with what was made before."""
    mcp.resource(f"bench://{name}", mime_type=kind)(lambda: body)


def read() -> str:
    """Reads the file anew."""
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
