"""The worker as programs use it."""

from __future__ import annotations

import inspect
import logging
import os
import re
import secrets
import socket
import ssl
import threading
from collections.abc import Mapping
from functools import partial
from typing import Callable, TypeVar, Union

from .._transport import Token, Transport
from .._version import __version__
from .attempt import TaskFunction
from .runner import Runner
from .session import Session
from .signals import run_with_signals

__all__ = ["TaskFunction", "Worker"]

Label = Union[str, int, float, bool]
Function = TypeVar("Function", bound=TaskFunction)

_log = logging.getLogger("ebbflow.worker")
_MAX_NAME = 100
_TYPE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Worker:
    """Executes tasks of one queue with functions of yours.

    ```python
    worker = Worker(queue="geo", slots=4)

    @worker.task("raster.validate")
    def validate(task: Task) -> dict[str, int]:
        return {"bands": count_bands(task.config["path"])}

    worker.run()
    ```

    `url`, `token` and `tenant` default to the variables `EBB_URL`, `EBB_TOKEN` and `EBB_TENANT`. The token needs the role
    `worker`. At most `slots` functions run at the same time, each in a thread. Tasks that require `labels` run only on workers
    that have them. On SIGTERM, running functions have `grace` seconds to finish.
    """

    def __init__(
        self,
        url: str | None = None,
        token: Token | None = None,
        *,
        queue: str,
        slots: int = 1,
        labels: Mapping[str, Label] | None = None,
        tenant: str | None = None,
        name: str | None = None,
        version: str | None = None,
        grace: float = 300.0,
        timeout: float = 30.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if slots < 1:
            raise ValueError(f"`slots` is {slots}; a worker needs at least one")
        self._connect = partial(Transport, url, token, tenant, timeout, ssl_context)
        self._url = self._connect().url
        self._host = socket.gethostname()[:_MAX_NAME]
        self._queue = queue
        self._slots = slots
        self._labels = dict(labels or {})
        self._version = (version or f"ebbflow-python {__version__}")[:_MAX_NAME]
        self._grace = grace
        self._functions: dict[str, TaskFunction] = {}
        self._lock = threading.Lock()
        self._runner: Runner | None = None
        #: The worker's name, unique per process.
        self.name = name or f"{self._host[:60]}-{os.getpid()}-{secrets.token_hex(3)}"
        if len(self.name) > _MAX_NAME:
            raise ValueError(f"`name` has {len(self.name)} characters; at most {_MAX_NAME} are allowed")

    def __repr__(self) -> str:
        return f"Worker({self.name!r}, queue={self._queue!r})"

    def task(self, type: str) -> Callable[[Function], Function]:
        """Let a function execute the tasks of a type. It gets a `Task`, and returns the task's output: any JSON value."""
        if not _TYPE.fullmatch(type):
            raise ValueError(f"{type!r} is not the name of a task type")

        def register(function: Function) -> Function:
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"`{function.__name__}` is async; a worker calls functions in threads")
            if type in self._functions:
                raise ValueError(f"there are two functions for tasks of type `{type}`")
            self._functions[type] = function
            return function

        return register

    def run(self) -> None:
        """Work until the process is asked to stop: by SIGTERM or SIGINT, `stop`, or a person who drains the worker.

        Called in the main thread, it handles the signals: the first lets running functions finish within `grace`, the
        second hands their attempts back at once.
        """
        with self._lock:
            if self._runner is not None:
                raise RuntimeError("the worker is running already")
            if not self._functions:
                raise RuntimeError("the worker has no functions; declare one with @worker.task(TYPE)")
            transport = self._connect()
            runner = self._runner = Runner(self._session(transport), dict(self._functions))
        _log.info("The worker %s serves queue `%s` of %s", self.name, self._queue, self._url)
        try:
            run_with_signals(runner.run, _Escalation(runner, self._grace))
        finally:
            self._runner = None
            transport.close()

    def stop(self, grace: float | None = None) -> None:
        """Let `run` return, from another thread: running functions have `grace` seconds, by default the worker's."""
        runner = self._runner
        if runner is not None:
            runner.stop(self._grace if grace is None else grace)

    def _session(self, transport: Transport) -> Session:
        return Session(
            transport=transport,
            worker=self.name,
            queue=self._queue,
            slots=self._slots,
            labels=self._labels,
            types=sorted(self._functions),
            host=self._host,
            version=self._version,
        )


class _Escalation:
    """The first signal asks, the second insists."""

    def __init__(self, runner: Runner, grace: float) -> None:
        self._runner = runner
        self._grace = grace
        self._is_asked = False

    def __call__(self) -> None:
        if self._is_asked:
            self._runner.kill()
        else:
            self._runner.stop(self._grace)
        self._is_asked = True
