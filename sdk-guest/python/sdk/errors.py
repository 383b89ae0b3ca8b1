"""Why a provider did not answer.

The kind decides how the failure is told to the caller; the text is shown to people as the provider's words, and should
say what to do. It must not hold anything that the caller may not know.
"""

import errno


class ProviderError(Exception):
    """Of one of the kinds below."""


class NotFound(ProviderError):
    """There is no such resource, or none that this caller may know of."""

    def __init__(self, message: str = "not found") -> None:
        super().__init__(message)


class Invalid(ProviderError):
    """The reference, cursor or argument is malformed; the text says how."""


class Denied(ProviderError):
    """Refused, or something that it needs was not granted; the text says what."""


class Unavailable(ProviderError):
    """Something that it depends on is down or busy; the same call may succeed later."""


class Failed(ProviderError):
    """Anything else."""


def from_exception(error: Exception) -> ProviderError:
    """The error that an exception stands for: files that are missing are not found, what the sandbox refuses is denied."""
    match error:
        case ProviderError():
            return error
        # Whatever is below a file is as absent as anything else.
        case FileNotFoundError() | NotADirectoryError():
            return NotFound()
        case PermissionError():
            return Denied(str(error))
        case TimeoutError() | BlockingIOError() | InterruptedError() | ConnectionError():
            return Unavailable(str(error))
        # WASI can name no such file, and Python's way of listing ends at the first.
        case OSError(errno=errno.EILSEQ):
            return Failed(f'"{error.filename}" holds a name that is not UTF-8: rename it')
        case _:
            return Failed(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
