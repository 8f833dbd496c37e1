"""One attempt, from the call of its function to its report."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, Callable

from .._backoff import Backoff
from .._secrets import Masker
from .._transport import TooLarge
from ..errors import ApiError, AttemptLost, Cancelled, EbbflowError, TaskError
from .capture import current
from .outbox import Outbox
from .session import Leased, Session, is_rejected
from .task import Task

TaskFunction = Callable[[Task], Any]

_log = logging.getLogger("ebbflow.worker")

#: No other attempt can succeed where code or a file is missing: the same rule as for the server's `python` tasks.
_PERMANENT = (SyntaxError, ImportError, FileNotFoundError, PermissionError)
_MAX_MESSAGE = 2_000


class Ending(Enum):
    """Why an attempt must stop before its function returns."""

    LOST = "it no longer belongs to this worker"
    TIMEOUT = "it has reached its `timeout_seconds`"
    STOPPING = "the worker stops"


@dataclass(frozen=True)
class _Success:
    output: Any


@dataclass(frozen=True)
class _Failure:
    body: Mapping[str, Any]
    #: Whether the function ended because it was asked to.
    is_cancelled: bool = False


class ReportTimeout:
    """How long reports are repeated while the server is away: until the worker gives up."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._limit: tuple[float, float] | None = None

    def end(self) -> None:
        """Give up: what cannot be reported now never will be, and the server considers the worker dead."""
        self._is_over.set()

    def limit(self, seconds: float) -> None:
        """Repeat no report for longer than this from now on: the server may never accept any."""
        self._limit = time.monotonic(), seconds

    def pause(self, seconds: float, begun: float) -> bool:
        """Sleep; return whether to try again what was first tried at `begun`."""
        if self._limit is not None:
            limited_at, limit = self._limit
            if time.monotonic() - max(begun, limited_at) >= limit:
                return False
        return not self._is_over.wait(seconds)


class Attempt:
    """An attempt that this worker holds."""

    def __init__(self, leased: Leased, session: Session, timeout: ReportTimeout, on_settled: Callable[[], None]) -> None:
        self.key = leased.key
        self.is_settled = False
        self._masker = Masker(leased.secrets)
        self.outbox = Outbox(self._masker)
        self.task = Task(leased, self._masker, self.outbox, self._save)
        self._session = session
        self._report_timeout = timeout
        self._on_settled = on_settled
        self._lock = threading.Lock()
        self._ending: Ending | None = None
        self._is_claimed = False
        self._is_lost = False
        seconds = leased.timeout_seconds
        self._times_out_at = None if seconds is None else time.monotonic() + seconds

    def execute(self, function: TaskFunction) -> None:
        """Call the function and report what comes of it, unless that was done meanwhile."""
        token = current.set(self.outbox.write)
        try:
            outcome = self._call(function)
        finally:
            current.reset(token)
        if self._claim():
            self._settle(outcome)

    def cancel(self, ending: Ending) -> None:
        """Ask the function to end. The first reason counts."""
        with self._lock:
            self._is_lost = self._is_lost or ending is Ending.LOST
            if self._is_claimed or self._ending is not None:
                return
            self._ending = ending
        _log.warning("Stopping %s: %s", self.key, ending.value)
        self.task._cancel(ending.value)

    def abandon(self, ending: Ending) -> None:
        """Report the end without waiting for the function, which goes on in vain."""
        self.cancel(ending)
        if self._claim():
            _log.warning("The function of %s has not ended, and its result will be dropped", self.key)
            self._settle(_Failure({}, is_cancelled=True))

    @property
    def is_claimed(self) -> bool:
        """Whether its end is being reported, or was."""
        return self._is_claimed

    def seconds_over_time(self) -> float:
        """Return for how long the attempt has exceeded its timeout; a negative number until then."""
        return -1.0 if self._times_out_at is None else time.monotonic() - self._times_out_at

    def send_pending(self) -> None:
        """Send log lines, progress and metrics, once; nothing while they are being sent already."""
        try:
            self.outbox.flush_if_idle(lambda step, body: self._session.report(self.key, step, body))
        except AttemptLost:
            self.cancel(Ending.LOST)

    def _call(self, function: TaskFunction) -> _Success | _Failure:
        try:
            output = self._masker.value(function(self.task))
            try:
                json.dumps(output, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                return _Failure({"class": "permanent", "message": f"the function's result is not JSON: {error}"})
            return _Success(output)
        except Cancelled as error:
            return _Failure({"message": str(error)}, is_cancelled=True)
        except BaseException as error:
            # SystemExit, too: it would end only this thread, and nobody would know.
            return self._failure(error)

    def _failure(self, error: BaseException) -> _Failure:
        if isinstance(error, TaskError):
            body = {"class": error.failure_class, "message": error.message}
            if error.detail is not None:
                body["detail"] = self._masker.value(_as_json(error.detail))
        else:
            self.outbox.write("error", "".join(traceback.format_exception(type(error), error, error.__traceback__)))
            body = {"message": f"{type(error).__name__}: {error}".rstrip(": ")}
            if isinstance(error, _PERMANENT):
                body["class"] = "permanent"
        message = self._masker.text(body["message"])[:_MAX_MESSAGE]
        # JSON has no lone surrogates.
        body["message"] = message.encode("utf-8", "replace").decode()
        return _Failure(body)

    def _claim(self) -> bool:
        """Return whether the caller is the one that reports the end: the function's thread, or the one that gave up on it."""
        with self._lock:
            is_first, self._is_claimed = not self._is_claimed, True
            return is_first

    def _settle(self, outcome: _Success | _Failure) -> None:
        try:
            if self._ending is Ending.LOST:
                return
            self.outbox.flush(self._deliver)
            self._report(outcome)
        except AttemptLost:
            _log.warning("The result of %s is dropped: %s", self.key, Ending.LOST.value)
        except EbbflowError as error:
            _log.error("The end of %s could not be reported: %s", self.key, error)
        finally:
            self.is_settled = True
            self._on_settled()

    def _report(self, outcome: _Success | _Failure) -> None:
        # What a function returns after it noticed that it must stop is not its result.
        was_cut_short = isinstance(outcome, _Failure) and outcome.is_cancelled
        if self._ending is not None and (was_cut_short or self.task._has_noticed):
            if self._ending is Ending.TIMEOUT:
                seconds = self.task._leased.timeout_seconds
                self._deliver("fail", {"class": "timeout", "message": f"exceeded its timeout of {seconds:g} s"})
            else:
                self._deliver("release", {"reason": self._ending.value})
        elif isinstance(outcome, _Failure):
            self._fail(outcome.body)
        else:
            self._complete(outcome.output)

    def _complete(self, output: Any) -> None:
        try:
            self._deliver("complete", {"output": output})
        except ApiError as error:
            if not is_rejected(error):
                raise
            # Another attempt would return the same.
            why = "the output is too large" if isinstance(error, TooLarge) else "the server rejected the output"
            self._deliver("fail", {"class": "permanent", "message": f"{why}: {error.message}"[:_MAX_MESSAGE]})

    def _fail(self, body: Mapping[str, Any]) -> None:
        """Report a failure; without a class, it is `program_failed`. A detail that the server rejects must not hide it."""
        try:
            self._deliver("fail", body)
        except ApiError as error:
            if not is_rejected(error) or "detail" not in body:
                raise
            _log.warning("The server rejected the failure of %s, which is reported without its detail: %s", self.key, error)
            self._deliver("fail", {name: value for name, value in body.items() if name != "detail"})

    def _deliver(self, step: str, body: Mapping[str, Any]) -> None:
        """Report until the server accepts or rejects it, or takes the attempt away.

        Reports are idempotent, so a lost response does no harm.
        """
        backoff, begun = Backoff(), time.monotonic()
        while True:
            # The attempt may be gone because a report arrived whose response was lost: the last try tells.
            is_last = self._is_lost
            try:
                return self._session.report(self.key, step, body)
            except EbbflowError as error:
                if isinstance(error, AttemptLost) or is_rejected(error) or is_last:
                    raise
                delay = backoff.delay(error)
                _log.warning("Cannot report about %s (%s); next try in %.1f s: %s", self.key, step, delay, error)
                if not self._report_timeout.pause(delay, begun):
                    raise

    def _save(self, value: dict[str, Any]) -> None:
        try:
            self._deliver("checkpoint", {"checkpoint": self._masker.value(value)})
        except AttemptLost as error:
            self.cancel(Ending.LOST)
            raise Cancelled(Ending.LOST.value) from error
        except ApiError as error:
            if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise
            raise ValueError(f"the checkpoint is too large: {error.message}") from error


def _as_json(value: Any) -> Any:
    """Return a value as JSON: a detail that cannot be sent must not hide the failure."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=repr))
    except (TypeError, ValueError, RecursionError):
        return repr(value)
