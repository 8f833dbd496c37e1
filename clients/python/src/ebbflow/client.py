"""The client: start runs, wait for them, read what they did, and steer them."""

from __future__ import annotations

import json
import os
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Callable, Union

from ._backoff import Backoff, is_temporary, with_retries
from ._sse import Message, messages
from ._transport import NO_BODY, Token, Transport, path_of
from .errors import EbbflowError, WaitTimeout
from .models import FINAL_STATES, Attempt, Event, LogLine, Model, Run, TaskInfo, format_time

__all__ = ["Client"]

RunLike = Union[Run, str]

#: The server sends a comment every ten seconds: a stream that is silent for longer is dead.
_SILENCE_SECONDS = 30.0

#: Waiting for a run, and following something, outlasts a deployment of the server, but not a server that is gone.
_OUTAGE_SECONDS = 300.0

#: Of how many runs the latest event is remembered.
_MAX_SEEN = 10_000


def _id(run: RunLike) -> str:
    return run.id if isinstance(run, Run) else run


def _time(at: datetime | str | None) -> str | None:
    return format_time(at) if isinstance(at, datetime) else at


def _may_be_last(message: Message) -> bool:
    if message.event == "gap":
        return True
    is_event = message.event == "message" and message.data != ""
    return is_event and Event.from_json(json.loads(message.data)).state in FINAL_STATES


class _Deadline:
    """The end of some time, or never."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at

    def cap(self, seconds: float) -> float:
        """Return `seconds`, or what is left if that is less; never nothing, which would mean no limit to a socket."""
        return seconds if self._at is None else max(min(seconds, self._at - time.monotonic()), 0.001)


class Client:
    """The API of an Ebbflow server. Threads may share a client.

    `url`, `token` and `tenant` default to the variables `EBB_URL`, `EBB_TOKEN` and `EBB_TENANT`. A token that expires can be
    given as a function, which is called for every request.

    Requests that the server could not process for now are repeated up to `retries` times. That is safe for changes, too:
    each carries an idempotency key, by which the server executes it once.
    """

    def __init__(
        self,
        url: str | None = None,
        token: Token | None = None,
        tenant: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        tenant = tenant or os.environ.get("EBB_TENANT") or None
        self._transport = Transport(url, token, tenant, timeout, ssl_context)
        self._retries = retries

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A closed client still works, with a connection for each request."""
        self._transport.close()

    # Runs

    def trigger(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        logical_date: datetime | str | None = None,
        labels: Mapping[str, Any] | None = None,
        priority: int = 0,
        replace_existing: bool = False,
    ) -> Run:
        """Start a run of a workflow's active version.

        The same `idempotency_key` starts nothing again and returns the run that it started, however much later.
        """
        body: dict[str, Any] = {"inputs": dict(inputs or {}), "labels": dict(labels or {})}
        if logical_date is not None:
            body["logical_date"] = _time(logical_date)
        if priority:
            body["priority"] = priority
        if replace_existing:
            body["replace_existing"] = True
        return self._change(Run.from_json, path_of("workflows", workflow, "runs"), body, idempotency_key)

    def run(self, run: RunLike) -> Run:
        """Return a run as it is now."""
        return Run.from_json(self._get(path_of("runs", _id(run))))

    def runs(
        self,
        *,
        workflow: str | None = None,
        state: str | None = None,
        label: str | None = None,
        parent: RunLike | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        text: str | None = None,
        sort: str | None = None,
        page_size: int = 100,
    ) -> Iterator[Run]:
        """Iterate over runs, newest first. Pages are fetched as they are needed."""
        query = {
            "workflow": workflow,
            "state": state,
            "label": label,
            "parent": None if parent is None else _id(parent),
            "created_after": _time(created_after),
            "created_before": _time(created_before),
            "text": text,
            "sort": sort,
            "limit": page_size,
        }
        return self._pages(Run.from_json, path_of("runs"), query)

    def wait(self, run: RunLike, timeout: float | None = None) -> Run:
        """Wait until a run has ended, and return it; raise `WaitTimeout` after `timeout` seconds.

        It follows the run's events, and polls where it cannot: some roles may see runs but not their events.
        """
        deadline = _Deadline(timeout)
        backoff = Backoff(first=0.2, maximum=5.0)
        can_follow, outage = True, _Deadline(_OUTAGE_SECONDS)
        while True:
            can_follow = can_follow and self._follow(_id(run), deadline, backoff)
            try:
                current = self.run(run)
            except Exception as error:
                if outage.is_over or deadline.is_over or not is_temporary(error):
                    raise
            else:
                outage = _Deadline(_OUTAGE_SECONDS)
                if current.has_ended:
                    return current
                if deadline.is_over:
                    raise WaitTimeout(current, timeout or 0.0)
            time.sleep(deadline.cap(backoff.delay()))

    def cancel(self, run: RunLike, reason: str | None = None) -> Run:
        """Cancel a run and those of its tasks that have not ended."""
        return self._operate(run, "cancel", reason)

    def pause(self, run: RunLike, reason: str | None = None) -> Run:
        """Start no further tasks of a run until it is resumed."""
        return self._operate(run, "pause", reason)

    def resume(self, run: RunLike, reason: str | None = None) -> Run:
        """Start the tasks that a pause held back."""
        return self._operate(run, "resume", reason)

    def retry(self, run: RunLike, reason: str | None = None) -> Run:
        """Run every failed or cancelled task of a run again, with everything downstream."""
        return self._operate(run, "retry", reason)

    def signal(self, run: RunLike, name: str, payload: Any = None, *, idempotency_key: str | None = None) -> Run:
        """Send a signal. If no task waits for it yet, it is kept for the first that will."""
        path = path_of("runs", _id(run), "signals", name)
        return self._change(Run.from_json, path, payload, idempotency_key)

    def explain(self, run: RunLike) -> Any:
        """Return why a run is in its state and what it waits for, in plain English."""
        return self._get(path_of("runs", _id(run), "explain"))

    # Tasks

    def tasks(self, run: RunLike, *, parent: str | None = None) -> Iterator[TaskInfo]:
        """Iterate over the tasks of a run or, with `parent`, over the children of a fan-out."""
        return self._pages(TaskInfo.from_json, path_of("runs", _id(run), "tasks"), {"parent": parent, "limit": 100})

    def task(self, run: RunLike, name: str) -> TaskInfo:
        """Return a task of a run as it is now."""
        return TaskInfo.from_json(self._get(path_of("runs", _id(run), "tasks", name)))

    def attempts(self, run: RunLike, task: str) -> Iterator[Attempt]:
        """Iterate over all attempts at a task, oldest first."""
        return self._pages(Attempt.from_json, path_of("runs", _id(run), "tasks", task, "attempts"), {})

    def output(self, run: RunLike, task: str) -> Any:
        """Return the output of a task; raise `NotFound` while it has not succeeded."""
        return self._get(path_of("runs", _id(run), "tasks", task, "output"))["output"]

    def outputs(self, run: RunLike) -> dict[str, Any]:
        """Return the outputs of all tasks of a run that have succeeded, by the tasks' names."""
        done = [task for task in self.tasks(run) if task.state == "succeeded"]
        return {task.name: task.output if task.has_whole_output else self.output(run, task.name) for task in done}

    def approvals(self, run: RunLike) -> list[TaskInfo]:
        """Return the tasks of a run that wait for approval."""
        return [task for task in self.tasks(run) if task.waiting_for == "approval"]

    def approve(
        self,
        run: RunLike,
        task: str,
        fields: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Run:
        """Approve a task that waits for approval; `fields` are the answers to its form."""
        path = path_of("runs", _id(run), "tasks", task, "approve")
        return self._change(Run.from_json, path, {"fields": dict(fields or {})}, idempotency_key)

    def reject(self, run: RunLike, task: str, reason: str | None = None, *, idempotency_key: str | None = None) -> Run:
        """Reject a task that waits for approval; the task fails."""
        path = path_of("runs", _id(run), "tasks", task, "reject")
        return self._change(Run.from_json, path, {"reason": reason}, idempotency_key)

    # Logs and events

    def logs(self, run: RunLike, task: str, *, attempt: int | None = None) -> Iterator[LogLine]:
        """Iterate over the log of an attempt, the latest by default, as far as it was written."""
        path = path_of("runs", _id(run), "tasks", task, "logs")
        return self._pages(LogLine.from_json, path, {"attempt": attempt, "limit": 100})

    def follow_logs(self, run: RunLike, task: str) -> Iterator[LogLine]:
        """Iterate over a task's log while it is written, later attempts included, until the task has ended."""
        path = path_of("runs", _id(run), "tasks", task, "logs", "follow")
        for kind, data in self._stream(path, {}):
            if kind == "end":
                return
            yield LogLine.from_json(json.loads(data))

    def events(self, *, run: RunLike | None = None, workflow: str | None = None) -> Iterator[Event]:
        """Iterate over events from now on, of one run or workflow or of all, without an end.

        It reconnects by itself. If the server had to drop events because this client was away for too long, there is a gap:
        read the state with `run` where that matters.
        """
        seen: dict[str, int] = {}
        query = {"run": None if run is None else _id(run), "workflow": workflow}
        for kind, data in self._stream(path_of("events"), query):
            if kind != "message":
                continue
            event = Event.from_json(json.loads(data))
            if event.seq > seen.get(event.run, -1):
                # After a reconnect a few events arrive twice.
                seen.pop(event.run, None)
                seen[event.run] = event.seq
                if len(seen) > _MAX_SEEN:
                    # The run that was silent for longest.
                    del seen[next(iter(seen))]
                yield event

    # How it is done

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return with_retries(lambda: self._transport.call("GET", path, query=query), self._retries)

    def _change(self, read: Callable[[Mapping[str, Any]], Run], path: str, body: Any, key: str | None = None) -> Run:
        # Every try must carry the same key, and every change another.
        key = key or str(uuid.uuid4())
        body = NO_BODY if body is None else body
        return read(with_retries(lambda: self._transport.call("POST", path, body=body, key=key), self._retries))

    def _operate(self, run: RunLike, operation: str, reason: str | None) -> Run:
        return self._change(Run.from_json, path_of("runs", _id(run), operation), {"reason": reason})

    def _pages(self, read: Callable[[Mapping[str, Any]], Model], path: str, query: Mapping[str, Any]) -> Iterator[Model]:
        cursor = None
        while True:
            page = self._get(path, {**query, "cursor": cursor})
            yield from (read(item) for item in page["items"])
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def _follow(self, run: str, deadline: _Deadline, backoff: Backoff) -> bool:
        """Follow a run's events until it may have ended, or the stream does. Return whether to follow them again."""
        silence = deadline.cap(_SILENCE_SECONDS)
        try:
            with self._transport.stream(path_of("events"), {"run": run}, timeout=silence) as response:
                # What happened before the stream began is not in it.
                if self.run(run).has_ended:
                    return True
                for message in messages(response):
                    backoff.reset()
                    if deadline.is_over or _may_be_last(message):
                        return True
        except EbbflowError as error:
            return is_temporary(error)
        return True

    def _stream(self, path: str, query: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the messages of a stream as event and data, across reconnects.

        A stream that never began is tried as often as any request, one that did until the server is gone.
        """
        last: str | None = None
        backoff = Backoff()
        failures, outage = 0, _Deadline(0.0)
        while True:
            failure: EbbflowError | None = None
            try:
                with self._transport.stream(path, query, last, _SILENCE_SECONDS) as response:
                    for message in messages(response):
                        failures, outage = 0, _Deadline(_OUTAGE_SECONDS)
                        backoff.reset()
                        last = message.id or last
                        if message.data:
                            yield message.event, message.data
            except EbbflowError as error:
                failures += 1
                if not is_temporary(error) or (failures > self._retries and outage.is_over):
                    raise
                failure = error
            # A server that ends streams as soon as they begin must not be asked without a pause either.
            time.sleep(backoff.delay(failure))
