"""What a task's code is given, wherever it runs: in a worker of yours, or as the program of a `bash` or `python` task."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Callable

__all__ = ["Checkpoint", "TaskContext"]

_MAX_METRIC_NAME = 64


class Checkpoint:
    """How far earlier attempts came. Call it to save how far this one has come.

    ```python
    rows = task.checkpoint.state.get("rows", 0)       # 0 in the first attempt
    task.checkpoint("loaded", {"rows": 12})           # the next attempt begins with it
    ```
    """

    def __init__(self, value: Any, save: Callable[[dict[str, Any]], None]) -> None:
        self._save = save
        self.phase: str | None = None
        self.state: dict[str, Any] = {}
        #: The checkpoint as it was saved, also where a program in another language chose another form.
        self.value: Any = value
        if isinstance(value, dict):
            phase, state = value.get("phase"), value.get("state")
            self.phase = phase if isinstance(phase, str) else None
            self.state = dict(state) if isinstance(state, dict) else {}

    def __call__(self, phase: str, state: Mapping[str, Any] | None = None) -> None:
        """Save a checkpoint in place of earlier ones.

        In a worker it is saved once this returns; a program's checkpoint is saved by its worker right after.
        """
        copied = dict(state or {})
        saved = {"phase": phase, "state": copied}
        self._save(saved)
        self.phase, self.state, self.value = phase, copied, saved

    def __bool__(self) -> bool:
        return self.value is not None

    def __repr__(self) -> str:
        return f"Checkpoint(phase={self.phase!r}, state={self.state!r})"


class TaskContext(ABC):
    """One attempt at a task, as its code sees it."""

    #: How far earlier attempts came; call it to save how far this one has come.
    checkpoint: Checkpoint
    #: A logger whose lines appear in the task's log.
    log: logging.Logger

    @property
    @abstractmethod
    def input(self) -> dict[str, Any]:
        """Everything that templates could name: `inputs`, `outputs`, `run`, `task` …"""

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the run."""
        return dict(self.input.get("inputs") or {})

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of the tasks upstream, by their names."""
        return dict(self.input.get("outputs") or {})

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Report how much is done, from 0 to 1. Call it as often as you like: only the latest report is sent."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"`fraction` is {fraction}; it must be from 0 to 1")
        self._report_progress(float(fraction), message)

    def metric(self, name: str, value: float) -> None:
        """Report the current value of a number about this attempt, such as rows or bytes; at most 32 of them."""
        if isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"the metric `{name}` is {value}; it must be a finite number")
        if not (1 <= len(name) <= _MAX_METRIC_NAME and name.isprintable()):
            raise ValueError(f"{name!r} cannot name a metric: use 1 to {_MAX_METRIC_NAME} printable characters")
        self._report_metric(name, value)

    @abstractmethod
    def secret(self, name: str) -> str:
        """Return a secret; raise `PermanentError` if there is none of that name."""

    @abstractmethod
    def _report_progress(self, fraction: float, message: str | None) -> None: ...

    @abstractmethod
    def _report_metric(self, name: str, value: float) -> None: ...
