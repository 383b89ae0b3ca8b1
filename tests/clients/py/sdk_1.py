"""Code that the clients with the Python SDK 1.30 share: the connection to a server."""

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def transport(request):
    """The transport to the server of a request: a URL, or a command."""
    if "url" in request:
        return streamable_http_client(request["url"])
    return stdio_client(StdioServerParameters(command=request["command"], args=request["args"], env=request["env"]))
