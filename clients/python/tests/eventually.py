"""Wait for what must happen, not for a time in which it should."""

from __future__ import annotations

import threading
import time
from typing import Callable, TypeVar

#: Only a test that fails waits this long.
LIMIT_SECONDS = 300.0

Found = TypeVar("Found")


def eventually(what: str, look: Callable[[], Found | None], changed: threading.Condition | None = None) -> Found:
    """Return what `look` finds, as soon as it finds something that is not false."""
    end = time.monotonic() + LIMIT_SECONDS
    condition = changed or threading.Condition()
    with condition:
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() >= end:
                raise AssertionError(f"not within {LIMIT_SECONDS:g} s: {what}")
            condition.wait(0.05)
