"""What both Python SDKs do with changes once they are connected: say what they are told, look again, say what they see.

Each line of the output is one JSON object, as `tests/e2e/watching.rs` documents them; so are the lines of the input.
"""

import asyncio
import json
import sys


def say(**said):
    """One line, at once."""
    print(json.dumps(said), flush=True)


class Follower:
    """Says what it is told, and looks again, one after the other."""

    def __init__(self):
        self.told = asyncio.Queue()

    def updated(self, uri):
        """A resource is said to have changed."""
        say(told="updated", uri=uri)
        self.told.put_nowait(uri)

    def list_changed(self):
        """The list is said to have changed."""
        say(told="list")
        self.told.put_nowait(None)

    async def look(self, read, uris):
        """Reads, or lists, what is said to have changed. Not where it is told: there a client may not wait for an answer."""
        while True:
            uri = await self.told.get()
            if uri is None:
                say(listed=await uris())
            else:
                say(read=uri, **await read(uri))


async def follow(looking, unwatch):
    """Does what it is asked: ends watching a URI. Ends with its input."""
    task = asyncio.create_task(looking)
    while line := await asyncio.to_thread(sys.stdin.readline):
        uri = json.loads(line)["unwatch"]
        await unwatch(uri)
        say(unwatched=uri)
    task.cancel()
