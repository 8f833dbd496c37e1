"""The worker: executes tasks of a remote queue with functions of yours."""

from .task import Task
from .worker import TaskFunction, Worker

__all__ = ["Task", "TaskFunction", "Worker"]
