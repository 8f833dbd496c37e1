"""The lease protocol, one method for each request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from .._transport import Interrupt, Transport, path_of
from ..errors import ApiError, AttemptLost, Conflict, NotFound, api_error
from .usage import usage

#: The server lets a lease wait for at most 55 seconds.
_WAIT_SECONDS = 50
#: A lease takes as long as it waits, and some time for the network.
_LEASE_TIMEOUT = _WAIT_SECONDS + 20.0
#: A heartbeat must not hang until the worker counts as dead.
_HEARTBEAT_TIMEOUT = 15.0
MAX_LEASED = 32
#: The server takes 1 MiB of JSON.
MAX_BYTES = 1024 * 1024
#: Repeating such a report is in vain. Anything else may pass: an error of the server, a token that is replaced, a proxy's page.
_REJECTED = frozenset({400, 413, 422})


def is_rejected(error: Exception) -> bool:
    """Whether the server will never accept this report."""
    return isinstance(error, ApiError) and error.status in _REJECTED


class Key(NamedTuple):
    """What identifies an attempt."""

    run: str
    task: str
    attempt: int

    def __str__(self) -> str:
        return f"attempt {self.attempt} of `{self.task}` in run {self.run}"


@dataclass(frozen=True)
class Leased:
    """An attempt that the server gave to this worker."""

    key: Key
    tenant: str
    workflow: str
    type: str
    config: dict[str, Any]
    input: dict[str, Any]
    timeout_seconds: float | None
    checkpoint: Any
    secrets: Sequence[str]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Leased:
        """Read an item of a lease."""
        return cls(
            key=Key(data["run"], data["task"], data["attempt"]),
            tenant=data["tenant"],
            workflow=data["workflow"],
            type=data["type"],
            config=data.get("config") or {},
            input=data.get("input") or {},
            timeout_seconds=data.get("timeout_seconds"),
            checkpoint=data.get("checkpoint"),
            secrets=data.get("secrets") or (),
        )


class Lease(NamedTuple):
    """The response to a lease."""

    items: list[Leased]
    command: str | None
    heartbeat_seconds: float
    retry_after_seconds: float
    """How long to wait before the next lease: too many wait already."""


class Heartbeat(NamedTuple):
    """The response to a heartbeat."""

    held: frozenset[Key]
    command: str | None


@dataclass(frozen=True)
class Session:
    """A worker's side of the protocol. Each method sends one request, and repeats nothing."""

    transport: Transport
    worker: str
    queue: str
    slots: int
    labels: Mapping[str, Any]
    types: Sequence[str]
    host: str
    version: str

    def lease(self, limit: int, interrupt: Interrupt) -> Lease:
        """Wait for attempts. An interrupt ends the wait, and the server then leases nothing."""
        body = {
            "worker": self.worker,
            "queue": self.queue,
            "limit": min(limit, MAX_LEASED),
            "slots": self.slots,
            "labels": dict(self.labels),
            "types": list(self.types),
            "wait_seconds": _WAIT_SECONDS,
            "host": self.host,
            "version": self.version,
            **_usage(),
        }
        path = path_of("execution", "lease")
        data = self.transport.call("POST", path, body=body, timeout=_LEASE_TIMEOUT, interrupt=interrupt)
        with _readable(data):
            items = [Leased.from_json(item) for item in data["items"]]
            retry_after = float(data.get("retry_after_seconds") or 0)
            return Lease(items, data.get("command"), float(data["heartbeat_seconds"]), retry_after)

    def heartbeat(self) -> Heartbeat:
        """Send a sign of life, and return the attempts that this worker still holds."""
        path, body = path_of("execution", "heartbeat"), {"worker": self.worker, **_usage()}
        data = self.transport.call("POST", path, body=body, timeout=_HEARTBEAT_TIMEOUT, is_repeatable=True)
        with _readable(data):
            # An attempt whose task has no name can be neither known nor reported.
            held = (Key(item["run"], item["task"], item["attempt"]) for item in data["held"] if item.get("task"))
            return Heartbeat(frozenset(held), data.get("command"))

    def report(self, key: Key, step: str, body: Mapping[str, Any]) -> None:
        """Report about an attempt; raise `AttemptLost` if it is no longer this worker's, or its run is gone.

        The server accepts the same report any number of times.
        """
        path, body = path_of("execution", *key, step), {"worker": self.worker, **body}
        try:
            data = self.transport.call("POST", path, body=body, is_repeatable=True, max_bytes=MAX_BYTES)
        except (Conflict, NotFound) as error:
            if error.is_temporary or isinstance(error, AttemptLost):
                raise
            raise AttemptLost(error.status, error.code, error.message, request_id=error.request_id) from error
        with _readable(data):
            if data["applied"] is not True:
                raise ValueError

    def goodbye(self) -> None:
        """Deregister this worker."""
        body = {"worker": self.worker}
        self.transport.call("POST", path_of("execution", "goodbye"), body=body, is_repeatable=True)


@contextmanager
def _readable(data: Any) -> Iterator[None]:
    """Raise `ApiError` for JSON of another program: a proxy that responds instead of the server."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise api_error(HTTPStatus.OK, data) from error


def _usage() -> dict[str, Any]:
    known = usage()
    return {"usage": known} if known else {}
