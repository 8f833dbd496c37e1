"""A worker stops in order: it finishes or hands back what it holds, and deregisters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ebbflow import Task
from ebbflow.worker import runner

from ..contract import TOKEN, ContractServer, Offer
from .conftest import Start

SOURCE = Path(__file__).parents[2] / "src"


def test_an_idle_worker_stops_at_once_and_leases_nothing_more(server: ContractServer, start: Start) -> None:
    running = start(lambda task: None)
    server.eventually("it waits", lambda: server.waiting_leases)
    running.stop()
    server.eventually("the lease has ended", lambda: server.waiting_leases == 0)
    offer = Offer("late")
    server.offer(offer)
    assert server.offers == [offer]
    assert server.workers == {}, "it has said goodbye"


def test_running_functions_finish_within_the_grace(server: ContractServer, start: Start) -> None:
    begun, go = threading.Event(), threading.Event()
    offer, other = Offer("running"), Offer("waiting")

    def work(task: Task) -> bool:
        begun.set()
        return go.wait(60)

    server.offer(offer)
    running = start(work)
    assert begun.wait(60)
    running.worker.stop()
    server.offer(other)
    go.set()
    running.join()
    assert server.ended[offer.key][1] == "complete"
    assert server.offers == [other]


def test_after_the_grace_functions_save_and_their_attempts_are_handed_back(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> str:
        begun.set()
        try:
            task.sleep(600)
        finally:
            task.checkpoint("half", {"row": 5})
        return "never"

    begun, offer = threading.Event(), Offer("long")
    server.offer(offer)
    running = start(work)
    assert begun.wait(60)
    running.stop(grace=0)
    assert server.ended[offer.key][1:] == ("release", {"worker": running.worker.name, "reason": "the worker stops"})
    assert server.offers[0].checkpoint == {"phase": "half", "state": {"row": 5}}
    assert server.workers == {}


def test_a_result_of_a_function_that_did_not_notice_counts(server: ContractServer, start: Start) -> None:
    begun, offer = threading.Event(), Offer("long")

    def work(task: Task) -> str:
        begun.set()
        # Not `task.cancelled`: that would be noticing.
        assert task._cancelled.wait(60)
        return "done"

    server.offer(offer)
    running = start(work)
    assert begun.wait(60)
    running.stop(grace=0)
    assert server.ended[offer.key][2]["output"] == "done"


def test_an_attempt_whose_function_never_returns_is_handed_back(
    server: ContractServer, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_CHECKPOINT_SECONDS", 0.1)
    begun, go, offer = threading.Event(), threading.Event(), Offer("stuck")

    def work(task: Task) -> None:
        begun.set()
        go.wait(60)

    server.offer(offer)
    running = start(work)
    assert begun.wait(60)
    running.stop(grace=0)
    go.set()
    assert server.ended[offer.key][1] == "release"


def test_a_person_drains_the_worker(server: ContractServer, start: Start) -> None:
    go, offer = threading.Event(), Offer("long")
    server.offer(offer)
    running = start(lambda task: go.wait(60), slots=2)
    server.eventually("it runs, and waits for more", lambda: offer.key in server.held and server.waiting_leases)
    server.command = "drain"
    server.eventually("it waits for no more", lambda: server.waiting_leases == 0)
    go.set()
    running.join()
    assert server.ended[offer.key][1] == "complete"
    assert server.workers == {}


def test_a_person_kills_the_worker(server: ContractServer, start: Start) -> None:
    go, offer = threading.Event(), Offer("stuck")
    server.offer(offer)
    running = start(lambda task: go.wait(60))
    server.eventually("it runs", lambda: offer.key in server.held)
    server.command = "kill"
    running.join()
    go.set()
    assert server.ended[offer.key][1] == "release"
    assert server.workers == {}


def test_a_lease_that_was_interrupted_too_late_is_released(server: ContractServer, start: Start) -> None:
    running = start(lambda task: None)
    server.eventually("it waits", lambda: server.waiting_leases)
    gate = server.hold_back("lease")
    offer = Offer("late")
    server.offer(offer)
    server.eventually("it is leased", lambda: offer.key in server.held)
    running.stop()
    gate.set()
    assert server.ended[offer.key][1] == "release"
    assert server.workers == {}


PROGRAM = """
import sys, ebbflow
worker = ebbflow.Worker(sys.argv[1], sys.argv[2], queue="tests", grace=float(sys.argv[3]))

@worker.task("work")
def work(task):
    task.checkpoint("begun")
    with open(task.config["pipe"]) as pipe:
        return pipe.read()

worker.run()
print("stopped")
"""


class Program:
    """A worker in a process of its own, whose function reads a pipe."""

    def __init__(self, server: ContractServer, folder: Path, grace: float) -> None:
        self.pipe = folder / "pipe"
        os.mkfifo(self.pipe)
        self.offer = Offer("reads", config={"pipe": str(self.pipe)})
        server.offer(self.offer)
        arguments = [sys.executable, "-c", PROGRAM, server.url, TOKEN, str(grace)]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        self.process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)
        server.eventually("its function runs", lambda: self.offer.checkpoint)

    def end(self) -> str:
        output, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return output


def test_sigterm_lets_functions_finish(server: ContractServer, tmp_path: Path) -> None:
    program = Program(server, tmp_path, grace=300)
    program.process.send_signal(signal.SIGTERM)
    program.pipe.write_text("content")
    assert program.end() == "stopped\n"
    assert server.ended[program.offer.key][2]["output"] == "content"
    assert server.workers == {}


def test_a_second_signal_hands_everything_back_at_once(server: ContractServer, tmp_path: Path) -> None:
    program = Program(server, tmp_path, grace=300)
    program.process.send_signal(signal.SIGTERM)
    server.eventually("it leases no more", lambda: server.waiting_leases == 0)
    program.process.send_signal(signal.SIGINT)
    assert program.end() == "stopped\n"
    assert server.ended[program.offer.key][1] == "release"
    assert server.workers == {}
