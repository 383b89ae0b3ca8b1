"""Code that the Python clients share: results and errors as JSON."""


def plain(model):
    """A result as JSON, with the names of the protocol and without absent fields."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def attempt(work, error_of_server):
    """Returns the result of a request, or the error of the server. SDKs raise other errors for results that break their schema."""
    try:
        return {"result": plain(await work)}
    except error_of_server as failure:
        return {"error": plain(failure.error)}
