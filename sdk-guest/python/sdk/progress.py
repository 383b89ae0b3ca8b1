"""Tells the caller how far a call is.

Outside of a component, and in a component whose world does not import ``progress``, ``report`` does nothing.
"""

from collections.abc import Callable

# The function of the host. ``belljar_guest.component`` sets it.
_host: Callable[[float, float | None, str | None], None] | None = None


def report(done: float, total: float | None = None, note: str | None = None) -> None:
    """Reports that ``done`` of ``total`` is done, in whatever unit.

    ``done`` must grow. ``note`` says what is being done, in at most 200 characters.
    """
    if _host is not None:
        _host(float(done), None if total is None else float(total), note)
