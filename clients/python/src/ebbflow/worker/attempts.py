"""The attempts of a worker: at most as many as it has slots."""

from __future__ import annotations

import threading
import time
from typing import Callable

from .attempt import Attempt, TaskFunction
from .session import Key

#: How many attempts are remembered. The server asks only about the latest.
_MAX_RECEIVED = 10_000


class Attempts:
    """Attempts by key, each with a thread. An attempt keeps its slot until its function has returned."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._running: dict[Key, Attempt] = {}
        self._received: dict[Key, None] = {}
        self._changed = threading.Condition()

    def notify(self) -> None:
        """Wake the threads that wait for a change."""
        with self._changed:
            self._changed.notify_all()

    def wait_for_slots(self, is_stopping: Callable[[], bool]) -> int:
        """Wait until a slot is free, and return how many are; none once the worker stops."""
        with self._changed:
            self._changed.wait_for(lambda: is_stopping() or len(self._running) < self._slots)
            return 0 if is_stopping() else self._slots - len(self._running)

    def wait_until_settled(self, until: Callable[[], float | None]) -> bool:
        """Wait until nothing is left to report, or the moment of `until`, which may move; return whether nothing is left."""
        with self._changed:
            while self._unsettled():
                end = until()
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def start(self, attempt: Attempt, function: TaskFunction) -> None:
        """Execute an attempt in a thread. The thread is a daemon: a function that never returns does not keep the process."""
        with self._changed:
            self._running[attempt.key] = attempt
            self._received[attempt.key] = None
            if len(self._received) > _MAX_RECEIVED:
                del self._received[next(iter(self._received))]
        name = f"ebbflow {attempt.key.task} {attempt.key.attempt}"
        threading.Thread(target=self._execute, args=(attempt, function), name=name, daemon=True).start()

    def unsettled(self) -> list[Attempt]:
        """Return the attempts whose end has not been reported."""
        with self._changed:
            return self._unsettled()

    def has_received(self, key: Key) -> bool:
        """Return whether an attempt arrived here, even if it has ended since."""
        with self._changed:
            return key in self._received

    def __contains__(self, key: Key) -> bool:
        with self._changed:
            return key in self._running

    def _unsettled(self) -> list[Attempt]:
        return [attempt for attempt in self._running.values() if not attempt.is_settled]

    def _execute(self, attempt: Attempt, function: TaskFunction) -> None:
        try:
            attempt.execute(function)
        finally:
            with self._changed:
                del self._running[attempt.key]
                self._changed.notify_all()
