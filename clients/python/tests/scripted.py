"""A server whose responses a test writes down beforehand."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Union

from .eventually import LIMIT_SECONDS

RUN_ID = "0198c2f4-8a51-7c3e-9d10-2b6f5e7a4c31"


def run_view(state: str = "running", **more: Any) -> dict[str, Any]:
    """A run, with the fields that the API always sends."""
    run = {
        "id": RUN_ID,
        "workflow": "hello",
        "version": 1,
        "tenant": 1,
        "state": state,
        "trigger": {"kind": "api", "by": "test"},
        "inputs": {"who": "Ada"},
        "labels": {},
        "logical_date": None,
        "created_at": "2026-01-31T12:00:01.5Z",
        "started_at": "2026-01-31T12:00:02Z",
        "finished_at": None,
        "counts": {"running": 1},
        "parent": None,
        "error": None,
    }
    return {**run, **more}


def event_view(state: str, seq: int) -> dict[str, Any]:
    """An event of that run."""
    event = {"seq": seq, "at": "2026-01-31T12:00:01.5Z", "type": "task.succeeded", "task": "greet", "attempt": 1}
    return {"run": RUN_ID, "workflow": "hello", "state": state, **event, "actor": None, "data": None}


def problem(code: str, message: str = "", details: Any = None) -> dict[str, Any]:
    """An error as the API sends it."""
    return {"error_code": code, "message": message, "details": details, "request_id": "r-7", "timestamp": "2026-01-01T00:00:00Z"}


@dataclass
class Request:
    """A request that the server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Response:
    """What to respond. `is_cut` closes the connection instead."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


Answer = Union[Response, Callable[[BaseHTTPRequestHandler], None]]


class ScriptedServer:
    """Responds to each path with its responses in order; the last one is repeated."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._script: dict[str, list[Answer]] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def on(self, method: str, path: str, *answers: Answer) -> None:
        self._script[f"{method} /api/v1{path}"] = list(answers)

    def next_answer(self, request: Request) -> Answer:
        self.requests.append(request)
        answers = self._script.get(f"{request.method} {request.path}")
        if answers is None:
            return Response(400, problem("bad_request", f"nothing is scripted for {request.method} {request.path}"))
        return answers.pop(0) if len(answers) > 1 else answers[0]


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(content) if content else None
            port = self.client_address[1]
            answer = server.next_answer(Request(self.command, self.path, dict(self.headers), body, port))
            if not isinstance(answer, Response):
                self.close_connection = True
                answer(self)
            elif answer.is_cut:
                self.close_connection = True
            else:
                self._respond(answer)

        do_POST = do_GET

        def _respond(self, response: Response) -> None:
            content = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
            self.send_response(response.status)
            for name, value in {"Content-Length": str(len(content)), **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return Handler


def stream(*parts: str | threading.Event) -> Callable[[BaseHTTPRequestHandler], None]:
    """Stream text as the API does; an event among the parts is waited for."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in parts:
            if isinstance(part, threading.Event):
                part.wait(LIMIT_SECONDS)
                continue
            data = part.encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")

    return send


def sse(data: Any, event: str = "", id: str = "") -> str:
    """One server-sent event."""
    lines = [f"event: {event}" if event else "", f"id: {id}" if id else "", f"data: {json.dumps(data)}"]
    return "\n".join(line for line in lines if line) + "\n\n"
