from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Callable

import pytest

from ebbflow import Worker

from ..contract import TOKEN, ContractServer
from ..eventually import LIMIT_SECONDS


@pytest.fixture
def server() -> Iterator[ContractServer]:
    server = ContractServer()
    yield server
    server.close()
    assert server.violations == []


class Running:
    """A worker in a thread."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(LIMIT_SECONDS)
        assert not self._thread.is_alive(), "the worker has not stopped"

    def stop(self, grace: float | None = None) -> None:
        self.worker.stop(grace)
        self.join()


Start = Callable[..., Running]


@pytest.fixture
def start(server: ContractServer) -> Iterator[Start]:
    """Start a worker with a function for tasks of type `work`."""
    running: list[Running] = []

    def begin(function: Callable[..., Any], **options: Any) -> Running:
        worker = Worker(server.url, TOKEN, queue="tests", **options)
        worker.task("work")(function)
        running.append(Running(worker))
        return running[-1]

    yield begin
    for one in running:
        one.stop(0)
