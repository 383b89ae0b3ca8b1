"""The resources of this provider. Everything here is an example: replace it."""

from belljar_guest import Contents, Info, NotFound, Page, Provider, Resource


class MyProvider(Provider):
    def describe(self) -> Info:
        return Info(title="my-provider", version="0.1.0", description="A greeting.")

    def list_resources(self, cursor: str | None) -> Page:
        return Page.of([Resource("hello.txt", mime_type="text/plain")], cursor)

    def read(self, reference: str) -> Contents:
        if reference != "hello.txt":
            raise NotFound
        return Contents(reference, "Hello from my-provider.\n", "text/plain")
