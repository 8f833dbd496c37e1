"""A server that speaks the lease protocol, and is strict about it: what a worker may not do is a violation."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from .eventually import eventually

TOKEN = "ebb_test_token"
PREFIX = "/api/v1/execution/"
MAX_BODY = 1024 * 1024

Key = tuple[str, str, int]
Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_usage(value: Any) -> bool:
    return isinstance(value, dict) and set(value) <= {"cpu", "memory", "disk"} and all(map(_is_share, value.values()))


def _is_progress(value: Any) -> bool:
    known = isinstance(value, dict) and set(value) <= {"fraction", "message"} and _is_share(value.get("fraction"))
    return known and _is_text(value.get("message", ""))


def _is_line(value: Any) -> bool:
    known = isinstance(value, dict) and set(value) == {"at", "stream", "level", "line"}
    levels, time_of = ("debug", "info", "warning", "error"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
    return (
        known
        and value["stream"] in ("stdout", "stderr")
        and value["level"] in levels
        and bool(time_of.fullmatch(value["at"]))
        and "\n" not in value["line"]
    )


def _is_name(value: Any) -> bool:
    return _is_text(value) and 1 <= len(value) <= 100


#: The fields of each request: those that must be there, and those that may.
REQUIRED: dict[str, dict[str, Check]] = {
    "lease": {"worker": _is_name, "queue": _is_name},
    "heartbeat": {"worker": _is_name},
    "goodbye": {"worker": _is_name},
    "complete": {"worker": _is_name, "output": lambda _: True},
    "fail": {"worker": _is_name, "message": _is_text},
    "release": {"worker": _is_name},
    "checkpoint": {"worker": _is_name, "checkpoint": lambda _: True},
    "progress": {"worker": _is_name},
    "log": {
        "worker": _is_name,
        "first": lambda value: isinstance(value, int) and value >= 0,
        "lines": lambda value: isinstance(value, list) and len(value) <= 1000 and all(map(_is_line, value)),
    },
}
OPTIONAL: dict[str, dict[str, Check]] = {
    "lease": {
        "limit": lambda value: isinstance(value, int) and 1 <= value <= 32,
        "slots": lambda value: isinstance(value, int) and value >= 1,
        "labels": lambda value: isinstance(value, dict) and len(value) <= 32,
        "types": lambda value: isinstance(value, list) and all(map(_is_text, value)),
        "wait_seconds": lambda value: isinstance(value, int) and 0 <= value <= 55,
        "host": _is_text,
        "version": _is_text,
        "usage": _is_usage,
    },
    "heartbeat": {"usage": _is_usage},
    "fail": {
        # Without a class, the work failed and nothing says why: `program_failed`.
        "class": lambda value: value in ("program_failed", "transient", "permanent", "killed", "timeout"),
        "exit_code": lambda value: isinstance(value, int),
        "signal": lambda value: isinstance(value, int),
        "detail": lambda _: True,
    },
    "release": {
        "reason": lambda value: _is_text(value) and len(value) <= 1000,
        # False if the worker never received the attempt; by default it did.
        "begun": lambda value: isinstance(value, bool),
    },
    "progress": {
        "progress": _is_progress,
        "metrics": lambda value: isinstance(value, dict) and len(value) <= 32 and all(map(_is_number, value.values())),
    },
}
ENDS = ("complete", "fail", "release")


@dataclass
class Offer:
    """A task that waits for a worker."""

    task: str
    type: str = "work"
    attempt: int = 1
    run: str = "0198c2f4-8a51-7c3e-9d10-2b6f5e7a4c31"
    config: dict[str, Any] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)
    timeout_seconds: int = 600
    checkpoint: Any = None
    secrets: list[str] = field(default_factory=list)
    requires: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return (self.run, self.task, self.attempt)

    def view(self) -> dict[str, Any]:
        names = ("run", "task", "attempt", "type", "config", "input", "timeout_seconds", "checkpoint", "secrets")
        return {**{name: getattr(self, name) for name in names}, "tenant": "default", "workflow": "example"}


@dataclass
class Report:
    """A report that the server accepted."""

    key: Key
    step: str
    body: dict[str, Any]


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ContractServer:
    """The server's side of the protocol, with faults that a test asks for."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.offers: list[Offer] = []
        self.held: dict[Key, tuple[str, Offer]] = {}
        self.ended: dict[Key, tuple[str, str, dict[str, Any]]] = {}
        self.lines: dict[Key, list[dict[str, str]]] = {}
        self.reports: list[Report] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.violations: list[str] = []
        self.workers: dict[str, dict[str, Any]] = {}
        self.command: str | None = None
        self.heartbeat_seconds: float = 0.1
        #: What the next lease is answered if it would have to wait: the seconds after which to come back.
        self.retry_after_seconds: float | None = None
        self.lease_times: list[float] = []
        self.waiting_leases = 0
        self._faults: list[tuple[str, str | None, str]] = []
        self._gates: dict[str, threading.Event] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    # What tests do

    def offer(self, *offers: Offer) -> None:
        with self.changed:
            self.offers.extend(offers)
            self.changed.notify_all()

    def take_away(self, key: Key) -> None:
        with self.changed:
            del self.held[key]
            self.changed.notify_all()

    def fail(self, step: str, *faults: str, task: str | None = None) -> None:
        """Let the next requests of a kind fail, or only those about one task.

        A fault is a status, `drop` (before it is processed), `lose` (its response), or what a proxy responds instead, with
        status 200: `page` (of HTML) or `json`.
        """
        with self.changed:
            self._faults.extend((step, task, fault) for fault in faults)

    def faults_left(self) -> int:
        with self.changed:
            return len(self._faults)

    def recover(self) -> None:
        """Forget the faults that are left."""
        with self.changed:
            self._faults.clear()

    def hold_back(self, step: str) -> threading.Event:
        """Process requests of a kind, but respond only once the event is set."""
        self._gates[step] = threading.Event()
        return self._gates[step]

    def eventually(self, what: str, look: Callable[[], Any]) -> Any:
        return eventually(what, look, self.changed)

    def end_of(self, key: Key) -> tuple[str, dict[str, Any]]:
        """Wait until an attempt has ended; return how."""
        _, step, body = self.eventually(f"the end of {key}", lambda: self.ended.get(key))
        return step, body

    def of(self, key: Key, step: str) -> list[dict[str, Any]]:
        with self.changed:
            return [report.body for report in self.reports if report.key == key and report.step == step]

    def log_of(self, key: Key) -> list[str]:
        with self.changed:
            return [line["line"] for line in self.lines.get(key, [])]

    def count(self, step: str) -> int:
        with self.changed:
            return sum(name == step for name, _ in self.calls)

    # What it does

    def handle(self, step: str, key: Key | None, body: dict[str, Any], is_gone: Callable[[], bool]) -> Any:
        self._validate(step, body)
        with self.changed:
            self.calls.append((step, body))
            self.changed.notify_all()
            if step == "lease":
                return self._lease(body, is_gone)
            if step == "heartbeat":
                held = [key for key, (worker, _) in self.held.items() if worker == body["worker"]]
                items = [{"run": run, "task": task, "attempt": attempt} for run, task, attempt in held]
                return {"held": items, "command": self.command}
            if step == "goodbye":
                return self._goodbye(body["worker"])
            assert key is not None
            return self._report(key, step, body)

    def fault(self, step: str, key: Key | None) -> str | None:
        with self.changed:
            for at, (name, task, fault) in enumerate(self._faults):
                if name == step and (task is None or (key is not None and key[1] == task)):
                    del self._faults[at]
                    return fault
        return None

    def gate(self, step: str) -> None:
        gate = self._gates.get(step)
        if gate is not None:
            gate.wait()

    def _validate(self, step: str, body: dict[str, Any]) -> None:
        required, optional = REQUIRED[step], OPTIONAL.get(step, {})
        missing, unknown = required.keys() - body.keys(), body.keys() - required.keys() - optional.keys()
        checks = {**required, **optional}
        wrong = [name for name in body if name in checks and not checks[name](body[name])]
        if missing or unknown or wrong:
            text = f"{step}: missing {missing}, unknown {unknown}, wrong {wrong}: {body}"
            self.violations.append(text)
            raise Refused(422, "bad_request", text)

    def _lease(self, body: dict[str, Any], is_gone: Callable[[], bool]) -> Any:
        worker, end = body["worker"], time.monotonic() + body.get("wait_seconds", 0)
        self.workers[worker] = body
        self.lease_times.append(time.monotonic())
        full, self.retry_after_seconds = self.retry_after_seconds, None
        if full is not None:
            answer: dict[str, Any] = {"items": [], "command": None, "heartbeat_seconds": self.heartbeat_seconds}
            return {**answer, "retry_after_seconds": full}
        self.waiting_leases += 1
        self.changed.notify_all()
        try:
            while True:
                taken = [] if self.command else self._matching(body)
                if taken or self.command or time.monotonic() >= end:
                    break
                self.changed.wait(0.02)
                if is_gone():
                    raise ConnectionAbortedError
        finally:
            self.waiting_leases -= 1
        holding = sum(holder == worker for holder, _ in self.held.values())
        if taken and holding + len(taken) > body.get("slots", body.get("limit", 1)):
            self.violations.append(f"{worker} leases beyond its slots")
        for offer in taken:
            self.offers.remove(offer)
            self.held[offer.key] = (worker, offer)
        self.changed.notify_all()
        views = [offer.view() for offer in taken]
        return {"items": views, "command": self.command, "heartbeat_seconds": self.heartbeat_seconds}

    def _matching(self, body: Mapping[str, Any]) -> list[Offer]:
        types, labels = body.get("types"), body.get("labels", {})
        able = (offer for offer in self.offers if types is None or offer.type in types)
        fit = [offer for offer in able if offer.requires.items() <= labels.items()]
        return fit[: body.get("limit", 1)]

    def _goodbye(self, worker: str) -> Any:
        if any(holder == worker for holder, _ in self.held.values()):
            raise Refused(409, "still_holds", "this worker still holds attempts")
        self.workers.pop(worker, None)
        self.changed.notify_all()
        return {"applied": True}

    def _report(self, key: Key, step: str, body: dict[str, Any]) -> Any:
        if key in self.ended and self.ended[key] == (body["worker"], step, body):
            return {"applied": True}  # The same report again.
        if self.held.get(key, ("",))[0] != body["worker"]:
            raise Refused(409, "attempt_lost", f"this worker no longer holds {key}; stop it")
        offer = self.held[key][1]
        if step == "log":
            self._append(key, body["first"], body["lines"])
        if step == "checkpoint":
            offer.checkpoint = body["checkpoint"]
        if step in ENDS:
            del self.held[key]
            self.ended[key] = (body["worker"], step, body)
        if step == "release":
            again = Offer(**{**offer.__dict__, "attempt": offer.attempt + 1})
            self.offers.append(again)
        self.reports.append(Report(key, step, body))
        self.changed.notify_all()
        return {"applied": True}

    def _append(self, key: Key, first: int, lines: list[dict[str, str]]) -> None:
        known = self.lines.setdefault(key, [])
        if first > len(known):
            self.violations.append(f"the log of {key} has a gap: {len(known)} lines, then line {first}")
        known.extend(lines[max(len(known) - first, 0) :])


def _handler(server: ContractServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            step, key = _address(self.path)
            # As the server does: it does not read what it will not accept.
            fault = "drop" if length > MAX_BODY else server.fault(step, key)
            if fault == "drop":
                return self._cut()
            content = self.rfile.read(length)
            if fault is not None and fault != "lose":
                return self._respond(*_instead(fault))
            try:
                self._authorize()
                response = server.handle(step, key, json.loads(content), self._is_gone)
            except Refused as error:
                return self._respond(error.status, _problem(error.code, str(error)))
            except ConnectionAbortedError:
                return self._cut()
            server.gate(step)
            if fault == "lose":
                return self._cut()
            self._respond(200, response)

        def _authorize(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Refused(401, "unauthorized", "the token is not accepted")
            if self.headers.get("Content-Type") != "application/json":
                raise Refused(415, "unsupported_media_type", "send JSON")

        def _is_gone(self) -> bool:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def _respond(self, status: int, body: Any) -> None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            with suppress(ConnectionError):  # The client may have gone.
                self.end_headers()
                self.wfile.write(content)

    return Handler


def _address(path: str) -> tuple[str, Key | None]:
    assert path.startswith(PREFIX), path
    parts = path[len(PREFIX) :].split("/")
    if len(parts) == 1:
        return parts[0], None
    run, task, attempt, step = parts
    return step, (run, task, int(attempt))


def _instead(fault: str) -> tuple[int, Any]:
    """Return what is responded to a request that nobody processes."""
    pages: dict[str, Any] = {"page": b"<html>please wait</html>", "json": {"status": "please wait"}}
    return (200, pages[fault]) if fault in pages else (int(fault), _problem("unavailable", "try again later"))


def _problem(code: str, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message, "details": None, "request_id": "r-1", "timestamp": "2026-01-01T00:00:00Z"}
