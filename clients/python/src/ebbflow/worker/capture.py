"""Log records become lines of the attempt that they belong to."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Callable

from .._levels import level_name

Write = Callable[[str, str, datetime], None]

#: Where the records of this thread go. A thread that a function starts has no value, unless it copies the context.
current: ContextVar[Write | None] = ContextVar("ebbflow_current", default=None)

_CAPTURED = "_ebbflow_captured"
_formatter = logging.Formatter()


class AttemptLogger(logging.Logger):
    """`task.log`: writes to the attempt's log at every level, and to the worker's own log as that is configured."""

    def __init__(self, task: str, write: Write) -> None:
        super().__init__(f"ebbflow.task.{task}", logging.DEBUG)
        self._write = write
        self._own = logging.getLogger("ebbflow.task")

    def handle(self, record: logging.LogRecord) -> None:
        """Write a record to both logs."""
        _write(record, self._write)
        setattr(record, _CAPTURED, True)
        if self._own.isEnabledFor(record.levelno):
            self._own.handle(record)


class CaptureHandler(logging.Handler):
    """Writes what any library logs while a function runs to the log of the function's attempt."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless it is of no attempt, already written, or about the worker itself."""
        write = current.get()
        is_own = record.name.startswith("ebbflow.worker")
        try:
            if write is not None and not is_own and not getattr(record, _CAPTURED, False):
                _write(record, write)
        except Exception:
            self.handleError(record)
        self._print(record)

    def _print(self, record: logging.LogRecord) -> None:
        """Print a record if nobody configured `logging`: it prints warnings by itself only while there is no handler."""
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and logging.getLogger().handlers == [self]:
            last.handle(record)


def _write(record: logging.LogRecord, write: Write) -> None:
    at = datetime.fromtimestamp(record.created, timezone.utc)
    write(level_name(record.levelno), _formatter.format(record), at)
