"""A client with the Python SDK 2.3. Watches resources. With protocol revision 2026-07-28, it opens one `subscriptions/listen` for
each resource, and one for the list. With the older revision, it uses `resources/subscribe`. The client caches answers, which is the
default of the SDK.

argv[1] is a JSON request, which `tests/integration/clients/subscriptions.rs` documents.
"""

import asyncio
import json
import sys
import warnings

from mcp import Client, StdioServerParameters, types
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from watch import Follower, follow, print_line

# The SDK warns at each `subscribe` that this method belongs to the older revision.
warnings.simplefilter("ignore")


async def main(request):
    """Connects, watches the URIs of the request, and handles notifications."""
    follower = Follower()
    listens = {}

    async def handle(message):
        """Handles a notification of a session, outside of `subscriptions/listen`."""
        if isinstance(message, types.ResourceUpdatedNotification):
            follower.updated(str(message.params.uri))
        elif isinstance(message, types.ResourceListChangedNotification):
            follower.list_changed()

    async def read(uri):
        try:
            return {"text": (await client.read_resource(uri)).contents[0].text}
        except MCPError as failure:
            return {"code": failure.error.code}

    async def uris():
        found, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            found += [str(resource.uri) for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def listen(opened, **wanted):
        try:
            async with client.listen(**wanted) as subscription:
                opened.set_result(subscription.honored)
                async for event in subscription:
                    if isinstance(event, ResourceUpdated):
                        follower.updated(event.uri)
                    else:
                        follower.list_changed()
        except Exception as failure:
            if opened.done():
                print_line(failed=repr(failure))
            else:
                opened.set_exception(failure)

    async def open_listen(name, **wanted):
        opened = asyncio.get_running_loop().create_future()
        listens[name] = asyncio.create_task(listen(opened, **wanted))
        await opened

    async def unwatch(uri):
        if uri in listens:
            listens[uri].cancel()
            await asyncio.wait([listens.pop(uri)])
        else:
            await client.unsubscribe_resource(uri)

    if "url" in request:
        server = request["url"]
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    is_older = request["mode"] == "legacy"
    handler = {"message_handler": handle} if is_older else {}
    async with Client(server, mode=request["mode"], read_timeout_seconds=60, **handler) as client:
        await uris()
        if not is_older:
            await open_listen("", resources_list_changed=True)
        for uri in request["watches"]:
            await read(uri)
            if is_older:
                await client.subscribe_resource(uri)
            else:
                await open_listen(uri, resource_subscriptions=[uri])
        print_line(ready=client.protocol_version)
        await follow(follower.handle_changes(read, uris), unwatch)
        for task in listens.values():
            task.cancel()
        if listens:
            await asyncio.wait(listens.values())


asyncio.run(main(json.loads(sys.argv[1])))
