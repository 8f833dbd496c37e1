"""HTTP with the standard library: JSON in and out, connections that are reused, errors as exceptions.

`http.client` rather than `urllib.request`, which opens a connection for every request and follows redirects with the token.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Callable, Union
from urllib.parse import quote, urlencode, urlsplit

from ._version import __version__
from .errors import ApiError, ConnectionFailed, api_error

Token = Union[str, Callable[[], str]]

#: A request without a body, which is not the same as one whose body is `null`.
NO_BODY: Any = object()

_CONNECT_SECONDS = 10.0
_MAX_IDLE = 8
_BASE = "/api/v1"
#: What a header can have: visible characters of ASCII, and spaces between them.
_TOKEN = re.compile(r"[\x20-\x7e]+")


class TooLarge(ApiError):
    """413, found before anything was sent.

    A server that responds and closes the connection before it has read the whole body looks like one that is away.
    """

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(413, "too_large", f"the request has {size} bytes of JSON, and the server takes at most {limit}")


class Interrupt:
    """Ends a request in progress from another thread: the server notices the disconnect."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_set = False

    def set(self) -> None:
        """End the request in progress, and let no other begin."""
        with self._lock:
            self._is_set = True
            if self._socket is not None:
                _shut(self._socket)

    @contextmanager
    def covers(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """Let this interrupt end what happens on a connection meanwhile."""
        with self._lock:
            if self._is_set:
                raise ConnectionFailed("interrupted")
            self._socket = connection.sock
        try:
            yield
        finally:
            with self._lock:
                self._socket = None


class _NoInterrupt(Interrupt):
    @contextmanager
    def covers(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        yield


_NEVER = _NoInterrupt()


def _shut(sock: socket.socket) -> None:
    with suppress(OSError):  # It may be closed already.
        sock.shutdown(socket.SHUT_RDWR)


def path_of(*segments: object) -> str:
    """Join segments to a path. Each is escaped, so a name with a slash stays one segment."""
    return "".join("/" + quote(str(segment), safe="") for segment in segments)


class Transport:
    """Sends requests to one server. Threads may share it."""

    def __init__(
        self,
        url: str | None,
        token: Token | None,
        tenant: str | None,
        timeout: float,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        url = url or os.environ.get("EBB_URL")
        token = token or os.environ.get("EBB_TOKEN")
        if not url or not token:
            missing, variable = ("url", "EBB_URL") if not url else ("token", "EBB_TOKEN")
            raise ValueError(f"`{missing}` is missing: pass it, or set the variable {variable}")
        scheme, self._host, self._port, path = _parts(url)
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._token = token if callable(token) else _usable(token)
        self._tenant = tenant or os.environ.get("EBB_TENANT")
        self._base = path.rstrip("/") + _BASE
        self._ssl = (ssl_context or ssl.create_default_context()) if scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._is_closed = False
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"Transport({self.url!r})"

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = NO_BODY,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        timeout: float | None = None,
        is_repeatable: bool = False,
        interrupt: Interrupt = _NEVER,
        max_bytes: int | None = None,
    ) -> Any:
        """Send one request and return the JSON of its response; raise `ApiError` or `ConnectionFailed`.

        A body of more than `max_bytes` is not sent, and raises `TooLarge`.

        A kept connection that turns out to be closed is replaced without an error if the request may be repeated: servers
        close idle connections whenever they like.
        """
        headers, payload = self._headers(key), None
        if body is not NO_BODY:
            payload = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
            headers["Content-Type"] = "application/json"
            if max_bytes is not None and len(payload) > max_bytes:
                raise TooLarge(len(payload), max_bytes)
        request = _Request(method, self._target(path, query), payload, headers, timeout or self.timeout)
        is_repeatable = is_repeatable or method == "GET" or key is not None
        connection, is_reused = self._take()
        try:
            try:
                response, content = request.send(connection, interrupt)
            except (ConnectionError, http.client.BadStatusLine):
                if not (is_reused and is_repeatable):
                    raise
                connection.close()
                connection = self._new()
                response, content = request.send(connection, interrupt)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from error
        except BaseException:
            connection.close()
            raise
        self._put(connection)
        return _json_of(response, content)

    @contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        last_event: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Open a stream of server-sent events on a connection of its own."""
        headers = {**self._headers(None), "Accept": "text/event-stream"}
        if last_event is not None:
            headers["Last-Event-ID"] = last_event
        connection = self._new()
        try:
            connection.connect()
            connection.sock.settimeout(timeout or self.timeout)
            connection.request("GET", self._target(path, query), headers=headers)
            response = connection.getresponse()
            with closing(response):
                if response.status != http.client.OK:
                    _json_of(response, response.read())
                yield response
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close all connections; those in use once their request has ended. Later requests open new ones each."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _headers(self, key: str | None) -> dict[str, str]:
        token = _usable(self._token()) if callable(self._token) else self._token
        headers = {
            "Accept": "application/json",
            "Authorization": f"Bearer {token}",
            "User-Agent": f"ebbflow-python/{__version__}",
        }
        if self._tenant is not None:
            headers["X-Ebb-Tenant"] = self._tenant
        if key is not None:
            headers["Idempotency-Key"] = key
        return headers

    def _target(self, path: str, query: Mapping[str, Any] | None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._base + path + ("?" + urlencode(given) if given else "")

    def _unreachable(self, error: Exception) -> ConnectionFailed:
        return ConnectionFailed(f"{self.url} cannot be reached: {error or type(error).__name__}")

    def _new(self) -> http.client.HTTPConnection:
        if self._ssl is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=_CONNECT_SECONDS, context=self._ssl)
        return http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_SECONDS)

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._pid != os.getpid():
                # After a fork, the connections belong to the parent.
                self._idle, self._pid = [], os.getpid()
            if self._idle:
                return self._idle.pop(), True
        return self._new(), False

    def _put(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and not self._is_closed and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()


@dataclass(frozen=True)
class _Request:
    """A request, ready to be sent over any connection."""

    method: str
    target: str
    payload: bytes | None
    headers: dict[str, str]
    timeout: float

    def send(self, connection: http.client.HTTPConnection, interrupt: Interrupt) -> tuple[http.client.HTTPResponse, bytes]:
        """Send the request and read the whole response."""
        if connection.sock is None:
            connection.connect()
        connection.sock.settimeout(self.timeout)
        with interrupt.covers(connection):
            connection.request(self.method, self.target, body=self.payload, headers=self.headers)
            response = connection.getresponse()
            return response, response.read()


def _parts(url: str) -> tuple[str, str, int | None, str]:
    """Return scheme, host, port and path. An error does not show the URL, which may have a password."""
    with suppress(ValueError):
        parts = urlsplit(url)
        has_more = "@" in parts.netloc or parts.query or parts.fragment
        if parts.scheme in {"http", "https"} and parts.hostname and not has_more:
            return parts.scheme, parts.hostname, parts.port, parts.path
    raise ValueError("`url` must be like https://ebbflow.example.com, without a user, a password and a query")


def _usable(token: str) -> str:
    """Return a token as a header has it. An error does not show the token."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError("`token` is empty or has characters that a token cannot have")
    return token


def _json_of(response: http.client.HTTPResponse, content: bytes) -> Any:
    is_success = http.client.OK <= response.status < http.client.MULTIPLE_CHOICES
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text) if text else None
    except ValueError:
        # A proxy answered, or the server is another program.
        body, is_success = text, False
    if not is_success:
        raise api_error(response.status, body, _seconds(response.getheader("Retry-After")))
    return body


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # A date, which our servers never send.
