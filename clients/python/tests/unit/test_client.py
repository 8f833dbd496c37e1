"""The client: requests as the API expects them, errors as exceptions, retries that are safe."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import ebbflow
from ebbflow import Client
from ebbflow import client as client_module

from ..scripted import RUN_ID, Answer, Response, ScriptedServer, event_view, problem, run_view, sse, stream

RUNS = "/workflows/hello/runs"
RUN = f"/runs/{RUN_ID}"
EVENTS = f"/events?run={RUN_ID}"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(server.url, "t0k3n") as client:
        yield client


def test_a_run_is_started_with_everything_that_was_given(server: ScriptedServer) -> None:
    server.on("POST", RUNS, Response(201, run_view("queued")))
    date = datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=1)))
    with Client(server.url + "/", lambda: "fresh", "acme") as client:
        run = client.trigger(
            "hello",
            {"who": "Ada"},
            idempotency_key="order-4711",
            logical_date=date,
            labels={"team": "a"},
            priority=5,
            replace_existing=True,
        )
    assert (run.id, run.state, run.inputs) == (RUN_ID, "queued", {"who": "Ada"})
    assert run.created_at == datetime(2026, 1, 31, 12, 0, 1, 500_000, tzinfo=timezone.utc)
    (request,) = server.requests
    assert request.body == {
        "inputs": {"who": "Ada"},
        "labels": {"team": "a"},
        "logical_date": "2026-01-31T00:00:00Z",
        "priority": 5,
        "replace_existing": True,
    }
    assert request.headers["Authorization"] == "Bearer fresh"
    assert request.headers["X-Ebb-Tenant"] == "acme"
    assert request.headers["Idempotency-Key"] == "order-4711"


def test_a_date_without_a_zone_is_a_mistake(client: Client) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        client.trigger("hello", logical_date=datetime(2026, 1, 31))


def test_url_and_token_may_come_from_the_environment(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBB_URL", server.url)
    monkeypatch.setenv("EBB_TOKEN", "from the environment")
    server.on("GET", RUN, Response(200, run_view()))
    with Client() as client:
        assert client.run(RUN_ID).state == "running"
    assert server.requests[0].headers["Authorization"] == "Bearer from the environment"
    assert "X-Ebb-Tenant" not in server.requests[0].headers


@pytest.mark.parametrize(
    "url",
    [
        "ebbflow.example.com",
        "ftp://hunter2",
        "https://user:hunter2@x",
        "https://:hunter2@x",
        "https://x?y=hunter2",
        "https://x/#hunter2",
        "https://x:hunter2",
        "https://user:hunter2\u2100@x",
        "https://[hunter2",
        "http://",
    ],
)
def test_an_url_that_makes_no_sense_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="`url` must be like") as caught:
        Client(url, "t")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("token", ["t0k3n\n", "  t0k3n\r\n", lambda: "t0k3n\n"])
def test_the_space_around_a_token_is_ignored(server: ScriptedServer, token: Any) -> None:
    server.on("GET", RUN, Response(200, run_view()))
    with Client(server.url, token) as client:
        client.run(RUN_ID)
    assert server.requests[0].headers["Authorization"] == "Bearer t0k3n"


@pytest.mark.parametrize("token", ["hunter2\nX: y", "hunter2\0", "hunter2\N{EN DASH}", "hunter2\xa0!", " \n"])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(server: ScriptedServer, token: str) -> None:
    with pytest.raises(ValueError, match="`token`") as caught:
        Client(server.url, token)
    assert "hunter2" not in str(caught.value)
    with Client(server.url, lambda: token) as client, pytest.raises(ValueError, match="`token`") as caught:
        client.run(RUN_ID)
    assert "hunter2" not in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        Response(500, problem("internal")),
        Response(503, problem("unavailable")),
        Response(is_cut=True),
        Response(409, problem("request_in_progress")),
    ],
)
def test_a_change_is_repeated_with_the_same_key(server: ScriptedServer, client: Client, answer: Response) -> None:
    server.on("POST", RUNS, answer, answer, Response(201, run_view()))
    client.trigger("hello")
    client.trigger("hello")
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert len(keys) == 4 and len(set(keys[:3])) == 1, "every try carries the same key"
    assert keys[3] != keys[0], "every change has another key"


def test_retry_after_is_respected(server: ScriptedServer, client: Client) -> None:
    server.on("GET", RUN, Response(429, problem("too_many_requests"), {"Retry-After": "0.3"}), Response(200, run_view()))
    before = datetime.now(timezone.utc)
    client.run(RUN_ID)
    assert datetime.now(timezone.utc) - before >= timedelta(seconds=0.3)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "bad_request", ebbflow.BadRequest),
        (401, "unauthorized", ebbflow.Unauthorized),
        (403, "forbidden", ebbflow.Forbidden),
        (404, "not_found", ebbflow.NotFound),
        (409, "already_ended", ebbflow.Conflict),
        (409, "attempt_lost", ebbflow.AttemptLost),
        (422, "invalid_inputs", ebbflow.Unprocessable),
        (413, "too_large", ebbflow.ApiError),
    ],
)
def test_errors_have_the_code_and_message_of_the_api(
    server: ScriptedServer, client: Client, status: int, code: str, kind: type[ebbflow.ApiError]
) -> None:
    server.on("GET", RUN, Response(status, problem(code, "what is wrong", [1])))
    with pytest.raises(kind, match=rf"what is wrong \({status} {code}\)") as caught:
        client.run(RUN_ID)
    error = caught.value
    assert (error.status, error.code, error.message, error.details) == (status, code, "what is wrong", [1])
    assert error.request_id == "r-7"
    assert len(server.requests) == 1, "it is not repeated"


@pytest.mark.parametrize(("status", "kind"), [(502, ebbflow.Unavailable), (200, ebbflow.ApiError), (302, ebbflow.ApiError)])
def test_a_response_of_another_program_is_an_error(server: ScriptedServer, status: int, kind: type[ebbflow.ApiError]) -> None:
    server.on("GET", RUN, Response(status, b"<html>gateway</html>"))
    with Client(server.url, "t", retries=0) as client, pytest.raises(kind, match="gateway") as caught:
        client.run(RUN_ID)
    assert caught.value.code == "unexpected_response"


def test_a_server_that_is_away_is_a_failed_connection() -> None:
    with socket.socket() as unused:
        # Bound, and nobody listens.
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ebbflow.ConnectionFailed, match="cannot be reached"):
            Client(url, "t", retries=0).run(RUN_ID)


def test_connections_are_reused_and_replaced_once_the_server_closed_them(server: ScriptedServer) -> None:
    server.on("GET", RUN, Response(200, run_view()), Response(200, run_view()), Response(is_cut=True), Response(200, run_view()))
    with Client(server.url, "t", retries=0) as client:
        for _ in range(3):
            client.run(RUN_ID)
    first, second, cut, again = [request.connection for request in server.requests]
    assert first == second == cut != again


def test_names_are_escaped(server: ScriptedServer, client: Client) -> None:
    server.on("GET", f"{RUN}/tasks/a%2F..%2Fb%3F", Response(404, problem("not_found")))
    with pytest.raises(ebbflow.NotFound):
        client.task(RUN_ID, "a/../b?")


def test_lists_fetch_pages_as_they_are_needed(server: ScriptedServer, client: Client) -> None:
    first = {"items": [run_view(id="a"), run_view(id="b")], "next_cursor": "c1"}
    server.on("GET", "/runs?workflow=hello&state=failed&limit=2", Response(200, first))
    last = {"items": [run_view(id="c")], "next_cursor": None}
    server.on("GET", "/runs?workflow=hello&state=failed&limit=2&cursor=c1", Response(200, last))
    runs = client.runs(workflow="hello", state="failed", page_size=2)
    assert next(runs).id == "a"
    assert len(server.requests) == 1
    assert [run.id for run in runs] == ["b", "c"]


def test_waiting_follows_the_events_of_a_run(server: ScriptedServer, client: Client) -> None:
    end = threading.Event()
    progress = sse({"run": RUN_ID, "progress": {}}, event="progress")
    events = [progress, sse(event_view("running", 1)), sse(event_view("succeeded", 2))]
    server.on("GET", EVENTS, stream(": listening\n\n", end, *events))

    def running(handler: Any) -> None:
        # The run ends only after the client has looked at it.
        end.set()
        respond(handler, run_view())

    server.on("GET", RUN, running, Response(200, run_view("succeeded", finished_at="2026-01-31T12:00:03Z")))
    run = client.wait(RUN_ID)
    assert run.succeeded and run.finished_at is not None
    assert [request.path.split("?")[0].rsplit("/", 1)[1] for request in server.requests] == ["events", RUN_ID, RUN_ID]


def respond(handler: Any, body: Any) -> None:
    handler._respond(Response(200, body))


def test_waiting_polls_where_events_may_not_be_read(server: ScriptedServer, client: Client) -> None:
    server.on("GET", EVENTS, Response(403, problem("forbidden")))
    server.on("GET", RUN, *[Response(200, run_view())] * 2, Response(200, run_view("failed", error="it broke")))
    run = client.wait(RUN_ID)
    with pytest.raises(ebbflow.RunFailed, match="it broke") as caught:
        run.raise_for_state()
    assert caught.value.run is run
    assert sum("/events" in request.path for request in server.requests) == 1


def test_waiting_follows_again_when_a_stream_ends_or_has_a_gap(server: ScriptedServer, client: Client) -> None:
    streams = [stream(), stream(sse({}, event="gap")), stream(sse(event_view("cancelled", 3)))]
    server.on("GET", EVENTS, *streams)
    server.on("GET", RUN, *[Response(200, run_view())] * 5, Response(200, run_view("cancelled")))
    assert client.wait(RUN_ID).state == "cancelled"


def test_waiting_ends_at_its_timeout(server: ScriptedServer, client: Client) -> None:
    never = threading.Event()
    server.on("GET", EVENTS, stream(": listening\n\n", never))
    server.on("GET", RUN, Response(200, run_view()))
    with pytest.raises(ebbflow.WaitTimeout, match=r"is still running after 0\.3 s") as caught:
        client.wait(RUN_ID, timeout=0.3)
    assert caught.value.run.id == RUN_ID
    assert isinstance(caught.value, TimeoutError)
    never.set()


def test_waiting_for_a_run_that_does_not_exist_fails(server: ScriptedServer, client: Client) -> None:
    server.on("GET", EVENTS, Response(404, problem("not_found", "there is no run")))
    server.on("GET", RUN, Response(404, problem("not_found", "there is no run")))
    with pytest.raises(ebbflow.NotFound):
        client.wait(RUN_ID)


def test_events_continue_after_the_last_one_and_come_once(server: ScriptedServer, client: Client) -> None:
    first = stream(": listening\n\n", sse(event_view("running", 1)), sse(event_view("running", 2), id="cursor-2"))
    second = stream(sse({}, event="gap", id="x"), sse(event_view("running", 2)), sse(event_view("succeeded", 3)))
    server.on("GET", EVENTS, first, second)
    events = client.events(run=RUN_ID)
    assert [next(events).seq for _ in range(3)] == [1, 2, 3]
    events.close()  # type: ignore[attr-defined]
    assert server.requests[1].headers["Last-Event-ID"] == "cursor-2"


@pytest.mark.parametrize(
    "answer",
    [Response(503, problem("unavailable")), Response(429, problem("too_many_requests")), Response(is_cut=True), stream()],
)
def test_following_goes_on_once_the_server_is_back(
    server: ScriptedServer, client: Client, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    first, last = stream(sse(event_view("running", 1), id="1")), stream(sse(event_view("running", 2)))
    server.on("GET", EVENTS, first, *[answer] * 6, last)
    events = client.events(run=RUN_ID)
    assert [next(events).seq for _ in range(2)] == [1, 2]
    events.close()  # type: ignore[attr-defined]
    assert len(server.requests) == 8, "a server that was there may be away for longer than one that never was"
    assert len(pauses) == 7 and min(pauses) > 0, "also after a stream that ended in order"
    assert pauses[5] > pauses[0]


def test_following_what_cannot_be_followed_is_an_error(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    server.on("GET", EVENTS, Response(503, problem("unavailable")))
    with Client(server.url, "t", retries=2) as client, pytest.raises(ebbflow.Unavailable):
        next(client.events(run=RUN_ID))
    assert len(server.requests) == 3
    server.on("GET", EVENTS, stream(sse(event_view("running", 1))), Response(403, problem("forbidden")))
    with Client(server.url, "t") as client, pytest.raises(ebbflow.Forbidden):
        list(client.events(run=RUN_ID))


def test_only_the_latest_runs_are_remembered(server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_MAX_SEEN", 2)
    sent = [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 2), ("b", 1), ("end", 1)]
    server.on("GET", "/events", stream(*[sse({**event_view("running", seq), "run": run}) for run, seq in sent]))
    seen = []
    for event in client.events():
        if event.run == "end":
            break
        seen.append((event.run, event.seq))
    assert seen == [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 1)], "b was silent for longest, and is forgotten"


def test_a_log_is_followed_to_its_end(server: ScriptedServer, client: Client) -> None:
    line = {"attempt": 1, "at": "2026-01-31T12:00:01.123456789Z", "stream": "stdout", "level": "info", "line": "hello"}
    server.on("GET", f"{RUN}/tasks/greet/logs/follow", stream(sse(line), sse({}, event="end"), sse(line)))
    (read,) = client.follow_logs(RUN_ID, "greet")
    assert (read.line, read.at.microsecond) == ("hello", 123_456)


def test_signals_and_answers_are_sent(server: ScriptedServer, client: Client) -> None:
    for path in ("/signals/paid", "/tasks/ask/approve", "/tasks/ask/reject", "/cancel", "/retry", "/pause", "/resume"):
        server.on("POST", RUN + path, Response(200, run_view()))
    client.signal(RUN_ID, "paid", {"amount": 3})
    client.signal(RUN_ID, "paid")
    client.approve(RUN_ID, "ask", {"amount": 3})
    client.reject(RUN_ID, "ask", "too much")
    client.cancel(RUN_ID, "wrong day")
    client.retry(RUN_ID)
    client.pause(RUN_ID)
    client.resume(RUN_ID)
    assert [request.body for request in server.requests] == [
        {"amount": 3},
        None,
        {"fields": {"amount": 3}},
        {"reason": "too much"},
        {"reason": "wrong day"},
        {"reason": None},
        {"reason": None},
        {"reason": None},
    ]


def test_large_outputs_are_fetched_one_by_one(server: ScriptedServer, client: Client) -> None:
    task = {"type": "bash", "attempt": 1, "max_attempts": 3, "queue": "light", "started_at": None, "finished_at": None}
    small = {**task, "name": "small", "state": "succeeded", "output": 1}
    large = {**task, "name": "large", "state": "succeeded", "output": None, "output_preview": {"bytes": 9000}}
    failed = {**task, "name": "failed", "state": "failed", "error": {"class": "permanent", "message": "no"}}
    waits = {**task, "name": "ask", "state": "sleeping", "waiting": {"reason": "approval", "since": "2026-01-31T12:00:01Z"}}
    page = {"items": [small, large, failed, waits], "next_cursor": None}
    server.on("GET", f"{RUN}/tasks?limit=100", Response(200, page))
    server.on("GET", f"{RUN}/tasks/large/output", Response(200, {"attempt": 1, "output": "x" * 9000}))
    assert client.outputs(RUN_ID) == {"small": 1, "large": "x" * 9000}
    assert [task.name for task in client.approvals(RUN_ID)] == ["ask"]
    errors = [task.error.failure_class for task in client.tasks(RUN_ID) if task.error]
    assert errors == ["permanent"]
