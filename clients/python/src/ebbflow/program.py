"""`ebbflow.task`: the attempt of the program that imports it, in a `bash` or `python` task.

The worker and the program talk through files, which the variables `EBB_INPUT`, `EBB_OUTPUT`, `EBB_MESSAGES` and `EBB_FAILURE`
name. Outside of a task there are none: the input is empty, and what would be reported is printed, so a program can be run by
hand and tested.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional

from ._levels import level_name
from ._secrets import find_secret
from .context import Checkpoint, TaskContext
from .errors import PermanentError, TaskError

try:
    import fcntl
except ImportError:  # Windows has no locks of this kind, and no workers that run programs.
    fcntl = None  # type: ignore[assignment]

__all__ = ["ProgramTask"]

ExceptHook = Callable[[type[BaseException], BaseException, Optional[TracebackType]], Any]


class ProgramTask(TaskContext):
    """The attempt that this process is the program of."""

    @cached_property
    def input(self) -> dict[str, Any]:
        """Everything that templates could name: `inputs`, `outputs`, `run`, `task` …"""
        path = os.environ.get("EBB_INPUT")
        document = json.loads(Path(path).read_text("utf-8")) if path else {}
        if not isinstance(document, dict):
            raise PermanentError(f"the file EBB_INPUT has {type(document).__name__} instead of an object")
        return document

    @property
    def type(self) -> str | None:
        """The type of the task, in the program of a custom task type (`ebb worker --exec`)."""
        found = self.input.get("type")
        return found if isinstance(found, str) else None

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the task, in the program of a custom task type (`ebb worker --exec`)."""
        return dict(self.input.get("config") or {})

    @cached_property
    def checkpoint(self) -> Checkpoint:  # type: ignore[override] # made when it is first used
        """How far earlier attempts came; call it to save how far this one has come."""
        return Checkpoint(self.input.get("checkpoint"), lambda value: self._send({"checkpoint": value}))

    @cached_property
    def log(self) -> logging.Logger:  # type: ignore[override] # made when it is first used
        """A logger whose lines appear in the task's log with their level."""
        logger = logging.Logger("ebbflow.task", logging.DEBUG)
        logger.addHandler(_MessageHandler(self._send))
        return logger

    def output(self, value: Any) -> None:
        """Set the task's output, any JSON value. The last one counts."""
        text = json.dumps(value, allow_nan=False)
        path = os.environ.get("EBB_OUTPUT")
        if path is None:
            print(text)
            return
        Path(path).write_text(text, "utf-8")

    def secret(self, name: str) -> str:
        """Return a secret that the task's `env` passes on: `env: {API_KEY: "{{ secrets.API_KEY }}"}`."""
        value = os.environ.get(name)
        value = find_secret(name) if value is None else value
        if value is None:
            hint = f'pass it on in the task\'s config: `env: {{{name}: "{{{{ secrets.{name} }}}}"}}`'
            raise PermanentError(f"there is no secret `{name}`; {hint}")
        return value

    def _report_progress(self, fraction: float, message: str | None) -> None:
        self._send({"progress": fraction} if message is None else {"progress": fraction, "message": message})

    def _report_metric(self, name: str, value: float) -> None:
        self._send({"metric": {name: value}})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, allow_nan=False) + "\n"
        path = os.environ.get("EBB_MESSAGES")
        if path is None:
            sys.stderr.write(line)
            return
        _append(path, line.encode())


def _append(path: str, line: bytes) -> None:
    """Append a line to a file or a pipe. Processes take turns, since a pipe keeps only short writes in one piece."""
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(opened, "wb", buffering=0) as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        rest = memoryview(line)
        while rest:
            rest = rest[file.write(rest) :]


class _MessageHandler(logging.Handler):
    """Sends each record as a message."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send({"log": {"level": level_name(record.levelno), "message": self.format(record)}})
        except Exception:
            self.handleError(record)


def describe_failures() -> None:
    """Let an uncaught `PermanentError` or `TransientError` of this process set the class of the attempt's failure."""
    path = os.environ.get("EBB_FAILURE")
    if path is not None:
        sys.excepthook = _describing(Path(path), sys.excepthook)


def _describing(path: Path, before: ExceptHook) -> ExceptHook:
    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, TaskError):
            failure = {"class": error.failure_class, "message": error.message, "detail": error.detail}
            path.write_text(json.dumps(failure, default=repr), "utf-8")
        before(kind, error, traceback)

    return hook
