"""Requests of ``urllib.request`` in a component, through ``wasi:http``.

``belljar_guest.component`` imports this module if the world imports ``wasi:http``. Then ``urllib.request.urlopen`` asks the
host, which decides about each request. Outside of a component, ``urllib.request`` is what it always is.
"""

from __future__ import annotations

import contextlib
import io
import urllib.request
import urllib.response
from collections.abc import Callable, Iterable, Iterator
from email.message import Message
from http.client import HTTPMessage, responses
from importlib import import_module
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import quote, urlsplit

from componentize_py_types import Err, Ok

from . import errors

handler: Any = import_module("wit_world.imports.outgoing_handler")
streams: Any = import_module("wit_world.imports.streams")
wit: Any = import_module("wit_world.imports.http_types")

# The headers that a redirect takes to another origin. Any other may hold a credential.
TRAVELS = {"accept", "accept-language", "user-agent"}

# The bytes that are read at once where the body is a file.
CHUNK = 64 * 1024

# The methods with a case of their own.
METHODS = {
    name: getattr(wit, f"Method_{name.capitalize()}")
    for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
}


# Programs that know nothing of belljar catch these as errors of urllib.
class Denied(errors.Denied, URLError):
    """No grant allows the request."""


class Unavailable(errors.Unavailable, URLError):
    """The server is down, or takes too long."""


class Failed(errors.Failed, URLError):
    """Any other reason for a request without an answer."""


def install() -> None:
    """Makes ``urllib.request.urlopen`` send its requests through the host."""
    opener = urllib.request.OpenerDirector()
    for one in (
        HostHandler(),
        RedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.DataHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(one)
    urllib.request.install_opener(opener)


class RedirectHandler(urllib.request.HTTPRedirectHandler):
    """Follows redirects as urllib does, and takes no credentials to another origin."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if following is not None:
            if _origin(following.full_url) != _origin(req.full_url):
                kept = {name: value for name, value in following.headers.items() if name.lower() in TRAVELS}
                following.headers = kept
            following.came_from = req.full_url  # type: ignore[attr-defined]
        return following


class HostHandler(urllib.request.BaseHandler):
    """Sends requests through the host."""

    def http_open(self, request: urllib.request.Request) -> Any:
        return _exchange(request)

    https_open = http_open


def _exchange(request: urllib.request.Request) -> urllib.response.addinfourl:
    with contextlib.ExitStack() as held:
        outgoing, body = _outgoing(request)
        try:
            future = held.enter_context(handler.handle(outgoing, _options(request)))
        except Err as error:
            raise _failure(request, error.value) from None
        if body is not None:
            _send(body, _pieces(request.data))
        with future.subscribe() as pollable:
            pollable.block()
        match future.get():
            case Ok(Ok(response)):
                return _answer(request, response)
            case Ok(Err(code)):
                raise _failure(request, code)
            case _:
                raise Failed("internal error: the answer was taken twice")


def _outgoing(request: urllib.request.Request) -> tuple[Any, Any]:
    """The request for the host, and its body."""
    url = urlsplit(request.full_url)
    headers = {name.lower(): value for name, value in (*request.unredirected_hdrs.items(), *request.headers.items())}
    if isinstance(request.data, (bytes, bytearray, memoryview)):
        headers.setdefault("content-length", str(len(request.data)))
    if request.data is not None:
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
    fields = wit.Fields()
    for name, value in headers.items():
        # The host makes this header itself.
        if name == "host":
            continue
        try:
            fields.append(name, value.encode("latin-1"))
        except (Err, UnicodeEncodeError):
            raise _malformed(request, f'the header "{name}"') from None
    outgoing = wit.OutgoingRequest(fields)
    method = request.get_method()
    path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~[]")
    if url.query:
        path += "?" + quote(url.query, safe="/%:@!$&'()*+,;=~[]?")
    case = METHODS[method]() if method in METHODS else wit.Method_Other(method)
    changes: list[tuple[str, Callable[[], None]]] = [
        ("the method", lambda: outgoing.set_method(case)),
        ("the scheme", lambda: outgoing.set_scheme(wit.Scheme_Https() if url.scheme == "https" else wit.Scheme_Http())),
        ("the host", lambda: outgoing.set_authority(url.netloc)),
        ("the path", lambda: outgoing.set_path_with_query(path)),
    ]
    for part, change in changes:
        try:
            change()
        except Err:
            raise _malformed(request, part) from None
    return outgoing, None if request.data is None else outgoing.body()


def _options(request: urllib.request.Request) -> Any:
    # Without a time-out, urllib sets an object that is no number.
    if not isinstance(request.timeout, (int, float)):
        return None
    nanoseconds = int(request.timeout * 1e9)
    options = wit.RequestOptions()
    options.set_connect_timeout(nanoseconds)
    options.set_first_byte_timeout(nanoseconds)
    options.set_between_bytes_timeout(nanoseconds)
    return options


def _pieces(data: Any) -> Iterable[bytes]:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return [bytes(data)]
    if hasattr(data, "read"):
        return _read(data)
    if isinstance(data, str):
        raise TypeError("the data of a request is bytes, a file, or an iterable of bytes, not str: encode it")
    return data  # type: ignore[no-any-return]


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _send(body: Any, pieces: Iterable[bytes]) -> None:
    """Sends a body. If the host no longer takes it, its answer says why."""
    try:
        with body.write() as stream:
            for piece in pieces:
                _write(stream, piece)
            stream.blocking_flush()
        wit.OutgoingBody.finish(body, None)
    except Err:
        pass


def _write(stream: Any, piece: bytes) -> None:
    at = 0
    while at < len(piece):
        room = stream.check_write()
        if room > 0:
            stream.write(piece[at : at + room])
            at += room
        else:
            with stream.subscribe() as pollable:
                pollable.block()


class _Body(io.RawIOBase):
    """The body of an answer. It is read in pieces, as the host gives them."""

    def __init__(self, request: urllib.request.Request, response: Any) -> None:
        self._request = request
        self._held = contextlib.ExitStack()
        # They are dropped in reverse order: each is a child of the one before.
        self._held.enter_context(response)
        body = self._held.enter_context(response.consume())
        self._stream = self._held.enter_context(body.stream())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._stream is None or len(buffer) == 0:
            return 0
        try:
            piece = self._stream.blocking_read(len(buffer))
        except Err as error:
            if isinstance(error.value, streams.StreamError_Closed):
                self._stream = None
                return 0
            with error.value.value as cause:
                code = wit.http_error_code(cause)
            if code is None:
                raise Unavailable(f"no whole answer from {_shown(self._request)}: it ended too early") from None
            raise _failure(self._request, code) from None
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream = None
        self._held.close()
        super().close()


def _answer(request: urllib.request.Request, response: Any) -> urllib.response.addinfourl:
    status = response.status()
    headers = HTTPMessage()
    with response.headers() as fields:
        for name, value in fields.entries():
            headers.add_header(name, value.decode("latin-1"))
    answer = urllib.response.addinfourl(
        io.BufferedReader(_Body(request, response), CHUNK),
        headers,
        request.full_url,
        status,
    )
    answer.msg = responses.get(status, "")  # type: ignore[attr-defined]
    return answer


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _shown(request: urllib.request.Request | str) -> str:
    """The URL for messages: without its query, which may hold values of a client."""
    url = urlsplit(request if isinstance(request, str) else request.full_url)
    return f'"{url.scheme}://{url.netloc}{url.path or "/"}"'


def _malformed(request: urllib.request.Request, part: str) -> Failed:
    return Failed(
        f"the request to {_shown(request)} cannot be sent: {part} is malformed, or belljar does not let a provider set it"
    )


_NAME, _REACH, _SLOW = "its name cannot be resolved", "it cannot be reached", "it took too long"

# The reasons after which the same request may succeed later.
_LATER = {
    wit.ErrorCode_DnsTimeout: _NAME,
    wit.ErrorCode_DnsError: _NAME,
    wit.ErrorCode_DestinationNotFound: _NAME,
    wit.ErrorCode_DestinationUnavailable: _REACH,
    wit.ErrorCode_DestinationIpUnroutable: _REACH,
    wit.ErrorCode_ConnectionRefused: "it refused the connection",
    wit.ErrorCode_ConnectionTerminated: "the connection was closed",
    wit.ErrorCode_ConnectionLimitReached: "too many connections are open",
    wit.ErrorCode_ConnectionTimeout: _SLOW,
    wit.ErrorCode_ConnectionReadTimeout: _SLOW,
    wit.ErrorCode_ConnectionWriteTimeout: _SLOW,
    wit.ErrorCode_HttpResponseTimeout: _SLOW,
    wit.ErrorCode_HttpResponseIncomplete: "its answer ended too early",
}

_NEVER = {
    wit.ErrorCode_TlsProtocolError: "TLS failed",
    wit.ErrorCode_TlsCertificateError: "its certificate is not trusted",
    wit.ErrorCode_TlsAlertReceived: "it refused TLS",
    wit.ErrorCode_HttpRequestBodySize: "the body of the request is larger than the host allows",
    wit.ErrorCode_HttpResponseBodySize: "its answer is larger than the host allows",
    wit.ErrorCode_HttpProtocolError: "it does not speak HTTP as it should",
}


def _failure(request: urllib.request.Request, code: Any) -> URLError:
    """The error for an error code of the host."""
    to, came_from = _shown(request), getattr(request, "came_from", None)
    match code:
        case wit.ErrorCode_HttpRequestDenied() | wit.ErrorCode_DestinationIpProhibited():
            if came_from is not None:
                return Denied(f"{_shown(came_from)} redirects to {to}, and no request to there was granted")
            return Denied(f"no request to {to} was granted")
        case wit.ErrorCode_InternalError(value):
            return Failed(f"no answer from {to}: the host failed: {value or 'it gives no reason'}")
    if type(code) in _LATER:
        return Unavailable(f"no answer from {to}: {_LATER[type(code)]}")
    return Failed(f"no answer from {to}: {_NEVER.get(type(code), type(code).__name__.removeprefix('ErrorCode_'))}")
