"""What a function of a worker is given: the attempt that it executes."""

from __future__ import annotations

import logging
import threading
from typing import Any, Callable

from .._secrets import Masker, find_secret
from ..context import Checkpoint, TaskContext
from ..errors import Cancelled, PermanentError
from .capture import AttemptLogger
from .outbox import Outbox
from .session import Leased


class Task(TaskContext):
    """An attempt that a function of this worker executes.

    Threads cannot be stopped from outside. A function that takes long therefore looks at `cancelled` now and then, or calls
    `check` or `sleep`, and ends.
    """

    def __init__(self, leased: Leased, masker: Masker, outbox: Outbox, save: Callable[[dict[str, Any]], None]) -> None:
        self._leased = leased
        self._masker = masker
        self._outbox = outbox
        self._cancelled = threading.Event()
        self._reason = ""
        self._has_noticed = False
        self.checkpoint = Checkpoint(leased.checkpoint, save)
        self.log: logging.Logger = AttemptLogger(leased.key.task, outbox.write)

    def __repr__(self) -> str:
        return f"<Task {self._leased.key}>"

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._leased.key.run

    @property
    def name(self) -> str:
        """The name of the task."""
        return self._leased.key.task

    @property
    def attempt(self) -> int:
        """The number of the attempt. It only ever grows, so it can serve as a fencing token."""
        return self._leased.key.attempt

    @property
    def workflow(self) -> str:
        """The name of the run's workflow."""
        return self._leased.workflow

    @property
    def tenant(self) -> str:
        """The tenant that the run belongs to."""
        return self._leased.tenant

    @property
    def type(self) -> str:
        """The type of the task."""
        return self._leased.type

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the task, rendered."""
        return self._leased.config

    @property
    def input(self) -> dict[str, Any]:
        """Everything that templates could name: `inputs`, `outputs`, `run`, `task` …"""
        return self._leased.input

    @property
    def cancelled(self) -> bool:
        """Whether the attempt must stop: it was taken from this worker, ran out of time, or the worker stops.

        A function that sees this may save a checkpoint, and returns or raises whatever it likes: the attempt is handed back,
        or its result is dropped.
        """
        is_set = self._cancelled.is_set()
        self._has_noticed = self._has_noticed or is_set
        return is_set

    def check(self) -> None:
        """Raise `Cancelled` if the attempt must stop."""
        if self.cancelled:
            raise Cancelled(self._reason)

    def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until the attempt must stop; then raise `Cancelled`."""
        self._cancelled.wait(seconds)
        self.check()

    def secret(self, name: str) -> str:
        """Return a secret of this worker's machine, which is masked in the attempt's reports from now on."""
        value = find_secret(name)
        if value is None:
            hint = f"set the variable EBB_SECRET_{name}, or put a file `{name}` into the folder EBB_SECRETS_DIR"
            raise PermanentError(f"this worker has no secret `{name}`; {hint}")
        self._masker.add(value)
        return value

    def _cancel(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._cancelled.set()

    def _report_progress(self, fraction: float, message: str | None) -> None:
        self._outbox.set_progress(fraction, message)

    def _report_metric(self, name: str, value: float) -> None:
        self._outbox.set_metric(name, value)
