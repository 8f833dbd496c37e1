"""What an attempt has to report besides its result: lines of its log, progress and metrics."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Callable

from .._secrets import Masker
from ..errors import ApiError, EbbflowError
from ..models import format_time
from .session import is_rejected

Send = Callable[[str, Mapping[str, Any]], None]

_log = logging.getLogger("ebbflow.worker")

#: The server takes 1,000 lines and 1 MiB per request, and JSON takes up to 12 bytes for a character.
_MAX_LINES = 500
_MAX_CHARACTERS = 80_000
_MAX_LINE = 10_000
#: While the server is away, a program that writes a lot must not fill the memory.
_MAX_PENDING = 20_000
#: The server keeps 200 characters of what an attempt is doing, and no more metrics of an attempt.
_MAX_PROGRESS = 200
_MAX_METRICS = 32


class Outbox:
    """Collects reports of one attempt until they are sent, in order and without a gap."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._lines: deque[dict[str, str]] = deque()
        self._first = 0
        self._dropped = 0
        self._progress: dict[str, Any] | None = None
        self._metrics: dict[str, float] = {}
        self._names: set[str] = set()
        self._has_warned = False

    def write(self, level: str, text: str, at: datetime | None = None) -> None:
        """Add a text to the log, line by line."""
        moment = format_time(at or datetime.now(timezone.utc))
        stream = "stderr" if level in {"warning", "error"} else "stdout"
        for line in self._masker.text(text).splitlines() or [""]:
            # JSON has no lone surrogates, and a database no NUL.
            clean = line[:_MAX_LINE].replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
            with self._lock:
                if len(self._lines) >= _MAX_PENDING:
                    self._dropped += 1
                    continue
                self._note_dropped(moment)
                self._lines.append({"at": moment, "stream": stream, "level": level, "line": clean})

    def set_progress(self, fraction: float, message: str | None) -> None:
        """Replace the progress."""
        progress: dict[str, Any] = {"fraction": fraction}
        if message is not None:
            progress["message"] = self._masker.text(message)[:_MAX_PROGRESS]
        with self._lock:
            self._progress = progress

    def set_metric(self, name: str, value: float) -> None:
        """Set a metric, or replace it. Those with too many names are dropped."""
        with self._lock:
            if name in self._names or len(self._names) < _MAX_METRICS:
                self._names.add(name)
                self._metrics[name] = value
                return
            is_first, self._has_warned = not self._has_warned, True
        if is_first:
            self.write("warning", f"the metric `{name}` and further ones are dropped: an attempt has at most {_MAX_METRICS}")

    def flush(self, send: Send) -> None:
        """Send everything there is. What could not be sent stays for the next time."""
        with self._sending:
            self._send_all(send)

    def flush_if_idle(self, send: Send) -> None:
        """Do the same, unless another thread does it now, which may take as long as the server is away."""
        if self._sending.acquire(blocking=False):
            try:
                self._send_all(send)
            finally:
                self._sending.release()

    def _send_all(self, send: Send) -> None:
        while self._send_lines(send):
            pass
        self._send_progress(send)

    def _send_lines(self, send: Send) -> bool:
        with self._lock:
            lines = _batch(self._lines)
            first = self._first
        if not lines:
            return False
        _accepted(send, "log", {"first": first, "lines": lines})
        with self._lock:
            self._first += len(lines)
            for _ in lines:
                self._lines.popleft()
        return True

    def _send_progress(self, send: Send) -> None:
        """Send what has changed: each report of a metric is a point of its series."""
        with self._lock:
            progress, self._progress = self._progress, None
            metrics, self._metrics = self._metrics, {}
        body: dict[str, Any] = {}
        if progress is not None:
            body["progress"] = progress
        if metrics:
            body["metrics"] = metrics
        if not body:
            return
        try:
            _accepted(send, "progress", body)
        except EbbflowError:
            with self._lock:
                self._progress = self._progress or progress
                self._metrics = {**metrics, **self._metrics}
            raise

    def _note_dropped(self, moment: str) -> None:
        if self._dropped:
            line = f"{self._dropped} lines were dropped: the server could not be reached"
            self._lines.append({"at": moment, "stream": "stderr", "level": "warning", "line": line})
            self._dropped = 0


def _batch(lines: deque[dict[str, str]]) -> list[dict[str, str]]:
    """Take as many lines as fit into a request, at least one if there is one."""
    batch: list[dict[str, str]] = []
    characters = 0
    for line in lines:
        characters += len(line["line"])
        if batch and (len(batch) == _MAX_LINES or characters > _MAX_CHARACTERS):
            break
        batch.append(line)
    return batch


def _accepted(send: Send, step: str, body: Mapping[str, Any]) -> None:
    """Send a report. One that the server will never accept is dropped: it must not keep the result from being reported."""
    try:
        send(step, body)
    except ApiError as error:
        if not is_rejected(error):
            raise
        _log.warning("The server rejected a report (%s), which is dropped: %s", step, error)
