"""Ebbflow from Python: a client, a worker, and the other side of `bash` and `python` tasks.

- `Client` starts runs, waits for them, and reads what they did.
- `Worker` executes tasks of a remote queue with functions of yours.
- `task` is the attempt of a program that Ebbflow runs: `from ebbflow import task`.
"""

from ._version import __version__
from .client import Client
from .context import Checkpoint, TaskContext
from .errors import (
    ApiError,
    AttemptLost,
    BadRequest,
    Cancelled,
    Conflict,
    ConnectionFailed,
    EbbflowError,
    Forbidden,
    NotFound,
    PermanentError,
    RunFailed,
    TaskError,
    TooManyRequests,
    TransientError,
    Unauthorized,
    Unavailable,
    Unprocessable,
    WaitTimeout,
)
from .models import Attempt, Event, Failure, LogLine, Run, TaskInfo
from .program import ProgramTask, describe_failures
from .worker import Task, Worker

#: The attempt of the program that imports this.
task = ProgramTask()
describe_failures()

__all__ = [
    "ApiError",
    "Attempt",
    "AttemptLost",
    "BadRequest",
    "Cancelled",
    "Checkpoint",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "EbbflowError",
    "Event",
    "Failure",
    "Forbidden",
    "LogLine",
    "NotFound",
    "PermanentError",
    "ProgramTask",
    "Run",
    "RunFailed",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskInfo",
    "TooManyRequests",
    "TransientError",
    "Unauthorized",
    "Unavailable",
    "Unprocessable",
    "WaitTimeout",
    "Worker",
    "__version__",
    "task",
]
