"""Code that both Python clients share: for each notification, prints the notification, reads or lists again, and prints the result.

Each line of the output and of the input is one JSON object. `tests/integration/clients/subscriptions.rs` documents them.
"""

import asyncio
import json
import sys


def print_line(**fields):
    """Prints one line of JSON at once."""
    print(json.dumps(fields), flush=True)


class Follower:
    """Prints each notification, and then reads or lists again."""

    def __init__(self):
        # The changes to handle: a URI, or None for the list.
        self.changes = asyncio.Queue()

    def updated(self, uri):
        """Handles a notification of a changed resource."""
        print_line(told="updated", uri=uri)
        self.changes.put_nowait(uri)

    def list_changed(self):
        """Handles a notification of a changed list."""
        print_line(told="list")
        self.changes.put_nowait(None)

    async def handle_changes(self, read, uris):
        """Reads or lists again after each change. A handler of a notification may not wait for an answer, so this is a task."""
        while True:
            uri = await self.changes.get()
            if uri is None:
                print_line(listed=await uris())
            else:
                print_line(read=uri, **await read(uri))


async def follow(handle_changes, unwatch):
    """Runs the task. Each line of the input ends the watch of one URI. Returns at the end of the input."""
    task = asyncio.create_task(handle_changes)
    while line := await asyncio.to_thread(sys.stdin.readline):
        uri = json.loads(line)["unwatch"]
        await unwatch(uri)
        print_line(unwatched=uri)
    task.cancel()
