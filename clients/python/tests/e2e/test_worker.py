"""A worker and a real server agree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable

import pytest

import ebbflow
from ebbflow import Client, PermanentError, Task, TransientError, Worker

from ..eventually import LIMIT_SECONDS, eventually
from .conftest import EXAMPLES, SOURCE, Dev
from .forwarder import Forwarder


class Running:
    """A worker in a thread, whose function a test sets."""

    def __init__(self, url: str, token: str, function: Callable[[Task], Any], **options: Any) -> None:
        self.worker = Worker(url, token, queue="py", **options)
        self.worker.task("echo")(function)
        self._thread = threading.Thread(target=self.worker.run, daemon=True)
        self._thread.start()

    def stop(self, grace: float | None = None) -> None:
        self.worker.stop(grace)
        self._thread.join(LIMIT_SECONDS)
        assert not self._thread.is_alive()


Start = Callable[..., Running]


@pytest.fixture
def start(dev: Dev, worker_token: str) -> Iterator[Start]:
    running: list[Running] = []

    def begin(function: Callable[[Task], Any], url: str = dev.url, **options: Any) -> Running:
        running.append(Running(url, worker_token, function, **options))
        return running[-1]

    yield begin
    for one in running:
        one.stop(0)


def test_a_function_executes_a_task_and_its_output_goes_downstream(client: Client, start: Start) -> None:
    def work(task: Task) -> Any:
        task.log.info("working on %s", task.config["value"])
        task.progress(0.5, "half")
        task.metric("rows", 3)
        return {"what": task.inputs["what"], "attempt": task.attempt}

    start(work, slots=2, labels={"gpu": True}, version="7")
    run = client.wait(client.trigger("remote", {"what": "tiles"}), timeout=LIMIT_SECONDS)
    assert run.raise_for_state().succeeded
    assert client.output(run, "work") == {"what": "tiles", "attempt": 1}
    assert client.output(run, "after") == {"value": {"what": "tiles", "attempt": 1}}
    assert [line.line for line in client.logs(run, "work")] == ["working on tiles"]


def test_a_transient_failure_is_retried_and_a_permanent_one_is_not(client: Client, start: Start) -> None:
    def work(task: Task) -> str:
        if task.inputs["what"] == "permanent":
            raise PermanentError("no bands", {"bands": 0})
        if task.attempt == 1:
            raise TransientError("busy")
        return "done"

    start(work, slots=2)
    retried = client.wait(client.trigger("remote", {"what": "transient"}), timeout=LIMIT_SECONDS)
    assert client.output(retried, "work") == "done"
    assert [attempt.state for attempt in client.attempts(retried, "work")][-1] == "succeeded"
    failed = client.wait(client.trigger("remote", {"what": "permanent"}), timeout=LIMIT_SECONDS)
    (attempt,) = client.attempts(failed, "work")
    assert attempt.error is not None
    assert (attempt.error.failure_class, attempt.error.message) == ("permanent", "no bands")


def test_a_stopping_worker_hands_back_and_the_next_continues(client: Client, start: Start) -> None:
    begun = threading.Event()

    def first(task: Task) -> None:
        task.checkpoint("half", {"row": 5})
        begun.set()
        task.sleep(600)

    running = start(first)
    run = client.trigger("remote", {"what": "long"})
    assert begun.wait(LIMIT_SECONDS)
    running.stop(grace=0)
    start(lambda task: [task.attempt, task.checkpoint.phase, task.checkpoint.state])
    assert client.wait(run, timeout=LIMIT_SECONDS).succeeded
    assert client.output(run, "work") == [2, "half", {"row": 5}]


def test_a_cancelled_run_stops_its_function(client: Client, start: Start) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def work(task: Task) -> None:
        begun.set()
        try:
            task.sleep(600)
        except ebbflow.Cancelled:
            stopped.set()
            raise

    start(work)
    run = client.trigger("remote", {"what": "long"})
    assert begun.wait(LIMIT_SECONDS)
    client.cancel(run)
    assert stopped.wait(LIMIT_SECONDS), "the next heartbeat no longer lists it"


def test_a_person_drains_a_worker(dev: Dev, client: Client, start: Start) -> None:
    begun, go = threading.Event(), threading.Event()

    def work(task: Task) -> str:
        begun.set()
        go.wait(LIMIT_SECONDS)
        return "finished"

    running = start(work)
    run = client.trigger("remote", {"what": "long"})
    assert begun.wait(LIMIT_SECONDS)
    workers = client._transport.call("GET", "/workers")["items"]
    (own,) = [worker["id"] for worker in workers if any(held["run"] == run.id for held in worker["attempts"])]
    dev.ebb("worker", "drain", own)
    go.set()
    running._thread.join(LIMIT_SECONDS)
    assert not running._thread.is_alive(), "it has stopped by itself"
    assert client.wait(run, timeout=LIMIT_SECONDS).succeeded


def test_a_result_survives_an_outage(dev: Dev, client: Client, start: Start) -> None:
    begun, go = threading.Event(), threading.Event()

    def work(task: Task) -> str:
        begun.set()
        go.wait(LIMIT_SECONDS)
        task.log.info("the server was away")
        return "kept"

    with Forwarder(dev.port) as network:
        running = start(work, url=network.url)
        run = client.trigger("remote", {"what": "outage"})
        assert begun.wait(LIMIT_SECONDS)
        network.cut()
        go.set()
        eventually("the worker tries to report", lambda: network.rejected >= 2)
        network.mend()
        assert client.wait(run, timeout=LIMIT_SECONDS).succeeded
        running.stop(0)
    assert client.output(run, "work") == "kept"
    assert [line.line for line in client.logs(run, "work")] == ["the server was away"]
    assert [attempt.number for attempt in client.attempts(run, "work")] == [1]


def test_a_worker_goes_on_when_its_server_is_killed_and_restarted(dev: Dev, client: Client, start: Start) -> None:
    begun = threading.Event()

    def work(task: Task) -> str:
        begun.set()
        task.log.info("working")
        return "done"

    start(work)
    before = client.trigger("remote", {"what": "before"})
    assert begun.wait(LIMIT_SECONDS)
    dev.kill()
    dev.start()
    after = client.trigger("remote", {"what": "after"})
    assert client.wait(before, timeout=LIMIT_SECONDS).succeeded
    assert client.wait(after, timeout=LIMIT_SECONDS).succeeded


def test_the_worker_of_the_documentation_works(dev: Dev, client: Client, worker_token: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "EBB_URL": dev.url, "EBB_TOKEN": worker_token}
    process = subprocess.Popen([sys.executable, str(EXAMPLES / "worker.py")], env=environment)
    try:
        run = client.wait(client.trigger("rasters", {"bands": 3}), timeout=LIMIT_SECONDS)
        assert run.raise_for_state().succeeded
        assert client.output(run, "validate") == {"width": 512, "height": 512, "crs": "EPSG:4326"}
        lines = [f"band {band} of /srv/rasters/dem.tif is valid" for band in range(3)]
        assert [line.line for line in client.logs(run, "validate")] == lines
        assert _is_served("geo", client)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_SECONDS) == 0
    assert not _is_served("geo", client), "it has said goodbye"


def _is_served(queue: str, client: Client) -> bool:
    workers = client._transport.call("GET", "/workers")["items"]
    return any(worker["queue"] == queue and worker["state"] in ("idle", "busy") for worker in workers)
