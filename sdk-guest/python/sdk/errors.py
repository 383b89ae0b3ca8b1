"""The reason why a provider failed.

The kind decides how the host reports the failure. People read the text as the provider's words: it should say what to
do, and must not contain anything that the caller may not know.
"""

import errno


class ProviderError(Exception):
    """The base class of the errors below."""


class NotFound(ProviderError):
    """The resource does not exist, or this caller must not know of it."""

    def __init__(self, message: str = "not found") -> None:
        super().__init__(message)


class Invalid(ProviderError):
    """The reference, cursor or argument is malformed; the text says how."""


class Denied(ProviderError):
    """The provider refuses, or a grant is missing; the text says which."""


class Unavailable(ProviderError):
    """A backend is down or busy; the same call may succeed later."""


class Failed(ProviderError):
    """Any other failure."""


def from_exception(error: Exception) -> ProviderError:
    """Converts an exception to an error: a missing file is not found, a refusal of the sandbox is denied."""
    match error:
        case ProviderError():
            return error
        # A path below a file does not exist.
        case FileNotFoundError() | NotADirectoryError():
            return NotFound()
        case PermissionError():
            return Denied(str(error))
        case TimeoutError() | BlockingIOError() | InterruptedError() | ConnectionError():
            return Unavailable(str(error))
        # A file name that is not UTF-8: WASI cannot represent it, and Python's listing ends at the first one.
        case OSError(errno=errno.EILSEQ):
            return Failed(f'"{error.filename}" holds a name that is not UTF-8: rename it')
        case _:
            return Failed(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
