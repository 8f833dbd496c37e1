"""When to try again."""

from __future__ import annotations

import random
import time
from typing import Any, Callable, TypeVar

from .errors import ApiError, ConnectionFailed

Result = TypeVar("Result")


def is_temporary(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, ConnectionFailed) or (isinstance(error, ApiError) and error.is_temporary)


class Backoff:
    """Delays that double up to a maximum, each shortened at random so that clients do not return together."""

    def __init__(self, first: float = 0.2, maximum: float = 10.0) -> None:
        self._first = self._next = first
        self._maximum = maximum

    def delay(self, error: Exception | None = None) -> float:
        """Return the next delay in seconds; at least the `Retry-After` of the error, if it has one."""
        delay = self._next * random.uniform(0.5, 1.0)  # noqa: S311 - not for secrets
        self._next = min(self._next * 2, self._maximum)
        return max(delay, getattr(error, "retry_after", None) or 0.0)

    def reset(self) -> None:
        """Begin with the first delay again, after a success."""
        self._next = self._first


def with_retries(call: Callable[[], Result], retries: int, pause: Callable[[float], Any] = time.sleep) -> Result:
    """Call until it succeeds, fails for good, or has been tried `retries` more times."""
    backoff = Backoff()
    for _ in range(retries):
        try:
            return call()
        except Exception as error:
            if not is_temporary(error):
                raise
            pause(backoff.delay(error))
    return call()
