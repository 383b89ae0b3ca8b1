"""A client with the Python SDK 1.30. Watches resources with `resources/subscribe`.

argv[1] is a JSON request, which `tests/integration/clients/subscriptions.rs` documents.
"""

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession, McpError, types
from sdk_1 import transport
from watch import Follower, follow, print_line


async def main(request):
    """Connects, watches the URIs of the request, and handles notifications."""
    follower = Follower()

    async def handle(message):
        """Handles a notification of the session."""
        notification = getattr(message, "root", None)
        if isinstance(notification, types.ResourceUpdatedNotification):
            follower.updated(str(notification.params.uri))
        elif isinstance(notification, types.ResourceListChangedNotification):
            follower.list_changed()

    async def read(uri):
        try:
            return {"text": (await session.read_resource(uri)).contents[0].text}
        except McpError as failure:
            return {"code": failure.error.code}

    async def uris():
        found, cursor = [], None
        while True:
            page = await session.list_resources(params=types.PaginatedRequestParams(cursor=cursor))
            found += [str(resource.uri) for resource in page.resources]
            cursor = page.nextCursor
            if cursor is None:
                return found

    async with transport(request) as streams, ClientSession(
        streams[0], streams[1], read_timeout_seconds=timedelta(seconds=60), message_handler=handle
    ) as session:
        greeting = await session.initialize()
        await uris()
        for uri in request["watches"]:
            await read(uri)
            await session.subscribe_resource(uri)
        print_line(ready=greeting.protocolVersion)
        await follow(follower.handle_changes(read, uris), session.unsubscribe_resource)


asyncio.run(main(json.loads(sys.argv[1])))
