"""A worker at work: leases attempts, keeps them alive, and stops in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Callable

from .._backoff import Backoff
from .._transport import Interrupt
from ..errors import ApiError, Conflict, EbbflowError
from .attempt import Attempt, Ending, ReportTimeout, TaskFunction
from .attempts import Attempts
from .capture import CaptureHandler
from .session import Key, Leased, Session

_log = logging.getLogger("ebbflow.worker")

#: How often log lines, progress and metrics are sent.
_SEND_SECONDS = 0.5
#: How long a function has to save a checkpoint once it must stop.
_CHECKPOINT_SECONDS = 30.0
#: How long a stopping worker repeats its last reports while the server is away.
_LAST_REPORTS_SECONDS = 60.0
#: A lease that is refused in one of these ways will be refused again. Anything else may pass.
_REFUSED = frozenset({400, 401, 403, 404, 422})


class Runner:
    """One run of a worker, from its first lease to its goodbye."""

    def __init__(self, session: Session, functions: Mapping[str, TaskFunction]) -> None:
        self._session = session
        self._functions = functions
        self._attempts = Attempts(session.slots)
        self._report_timeout = ReportTimeout()
        self._interrupt = Interrupt()
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._is_over = threading.Event()
        self._cancel_at: float | None = None
        self._may_save = True
        self._failure: EbbflowError | None = None
        self._heartbeat_seconds: float | None = None
        self._leases_begun = self._leases_ended = 0
        self._unknown: dict[Key, int] = {}

    def run(self) -> None:
        """Work until the worker is stopped. Raise what made it stop, if the server rejects its leases."""
        with ExitStack() as stack:
            stack.enter_context(_captured_logs())
            stack.callback(self._is_over.set)
            self._start_thread("timeouts", lambda: _SEND_SECONDS, self._enforce_timeouts)
            self._start_thread("reports", lambda: _SEND_SECONDS, self._send_pending)
            self._lease_until_stopped()
            self._drain()
            self._say_goodbye()
        if self._failure is not None:
            raise self._failure

    def stop(self, grace: float | None) -> None:
        """Take no more attempts; ask those that run to stop after `grace` seconds, or never."""
        with self._lock:
            end = None if grace is None else time.monotonic() + grace
            is_sooner = end is not None and (self._cancel_at is None or end < self._cancel_at)
            if not self._is_stopping.is_set() or is_sooner:
                self._cancel_at = end
            self._is_stopping.set()
        self._interrupt.set()
        self._attempts.notify()

    def kill(self) -> None:
        """Take no more attempts, and hand back those that run at once."""
        self._may_save = False
        self.stop(grace=0)

    # Leasing

    def _lease_until_stopped(self) -> None:
        backoff = Backoff(first=0.5, maximum=20.0)
        is_unsure = False
        while True:
            free = self._attempts.wait_for_slots(self._is_stopping.is_set)
            if free == 0:
                return
            try:
                if is_unsure:
                    # A response was lost, and perhaps attempts with it. This releases them.
                    self._beat()
                    is_unsure = False
                self._lease(free)
                backoff.reset()
            except EbbflowError as error:
                if self._is_stopping.is_set():
                    return
                is_unsure = True
                if isinstance(error, ApiError) and error.status in _REFUSED:
                    self._failure = error
                    # What is refused to a lease may be refused to reports, too, and forever.
                    self._report_timeout.limit(_LAST_REPORTS_SECONDS)
                    self.stop(grace=None)
                    return
                delay = backoff.delay(error)
                _log.warning("Cannot lease from queue `%s`; next try in %.1f s: %s", self._session.queue, delay, error)
                self._is_stopping.wait(delay)

    def _lease(self, limit: int) -> None:
        self._leases_begun += 1
        try:
            lease = self._session.lease(limit, self._interrupt)
            self._beat_every(lease.heartbeat_seconds)
            for leased in lease.items:
                self._start(leased)
        finally:
            # Only now: what was leased is known, so a heartbeat may call the rest unknown.
            self._leases_ended = self._leases_begun
        self._obey(lease.command)
        self._is_stopping.wait(lease.retry_after_seconds)

    def _start(self, leased: Leased) -> None:
        attempt = Attempt(leased, self._session, self._report_timeout, self._attempts.notify)
        self._attempts.start(attempt, self._functions.get(leased.type, _no_function))

    def _obey(self, command: str | None) -> None:
        if command == "drain":
            self.stop(grace=None)
        elif command == "kill":
            self.kill()

    # Signs of life

    def _beat_every(self, seconds: float) -> None:
        """Follow the server's interval, which the first lease brings."""
        is_first, self._heartbeat_seconds = self._heartbeat_seconds is None, seconds
        if is_first:
            self._start_thread("heartbeats", lambda: self._heartbeat_seconds or seconds, self._beat_if_holding)

    def _beat_if_holding(self) -> None:
        if self._attempts.unsettled():
            self._beat()

    def _beat(self) -> None:
        # An attempt that is leased while the heartbeat is on its way is not in the response yet.
        known = self._attempts.unsettled()
        held, command = self._session.heartbeat()
        for attempt in known:
            if attempt.key not in held:
                attempt.cancel(Ending.LOST)
        self._release_unknown(held - {attempt.key for attempt in known})
        self._obey(command)

    def _release_unknown(self, held: frozenset[Key]) -> None:
        """Release attempts that this worker does not execute, and not those whose lease is still on its way."""
        ended, begun = self._leases_ended, self._leases_begun
        unknown = [key for key in held if key not in self._attempts]
        self._unknown = {key: self._unknown.get(key, begun) for key in unknown}
        for key, seen_at in self._unknown.items():
            if ended >= seen_at or self._attempts.has_received(key):
                self._report_once(key)

    def _report_once(self, key: Key) -> None:
        if self._attempts.has_received(key):
            body: dict[str, Any] = {"reason": "its end could not be reported"}
        else:
            body = {"reason": "the response to its lease was lost", "begun": False}
        try:
            self._session.report(key, "release", body)
            _log.warning("Released %s: %s", key, body["reason"])
        except EbbflowError as error:
            _log.warning("Cannot release %s: %s", key, error)

    def _enforce_timeouts(self) -> None:
        """Stop what takes too long. In a thread that sends nothing: timeouts count while the server is away, too."""
        for attempt in self._attempts.unsettled():
            over = attempt.seconds_over_time()
            if over >= _CHECKPOINT_SECONDS and not attempt.is_claimed:
                # In a thread: reporting takes as long as the server is away.
                threading.Thread(target=attempt.abandon, args=(Ending.TIMEOUT,), daemon=True).start()
            elif over >= 0:
                attempt.cancel(Ending.TIMEOUT)

    def _send_pending(self) -> None:
        """Send what there is of all attempts, even if that fails for some."""
        failure: EbbflowError | None = None
        for attempt in self._attempts.unsettled():
            try:
                attempt.send_pending()
            except EbbflowError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _start_thread(self, name: str, seconds: Callable[[], float], step: Callable[[], None]) -> None:
        def repeat() -> None:
            backoff = Backoff(first=1.0)
            delay = seconds()
            while not self._is_over.wait(delay):
                try:
                    step()
                    backoff.reset()
                    delay = seconds()
                except EbbflowError as error:
                    delay = backoff.delay(error)
                    _log.warning("The worker's %s fail; next try in %.1f s: %s", name, delay, error)
                except Exception:
                    delay = backoff.delay()
                    _log.exception("The worker's %s fail; next try in %.1f s", name, delay)

        threading.Thread(target=repeat, name=f"ebbflow {name}", daemon=True).start()

    # Stopping

    def _drain(self) -> None:
        running = len(self._attempts.unsettled())
        _log.info("The worker stops; %s attempts are running", running)
        if not self._attempts.wait_until_settled(lambda: self._cancel_at):
            self._stop_attempts()
        end = time.monotonic() + _LAST_REPORTS_SECONDS
        if not self._attempts.wait_until_settled(lambda: end):
            self._report_timeout.end()

    def _stop_attempts(self) -> None:
        for attempt in self._attempts.unsettled():
            attempt.cancel(Ending.STOPPING)
        end = time.monotonic() + _CHECKPOINT_SECONDS
        # A kill that comes meanwhile ends the wait, too.
        self._attempts.wait_until_settled(lambda: end if self._may_save else 0.0)
        for attempt in self._attempts.unsettled():
            threading.Thread(target=attempt.abandon, args=(Ending.STOPPING,), daemon=True).start()

    def _say_goodbye(self) -> None:
        backoff = Backoff()
        for _ in range(5):
            try:
                return self._session.goodbye()
            except Conflict:
                self._release_rest()
            except ApiError as error:
                if not error.is_temporary:
                    _log.warning("The server does not accept the goodbye: %s", error)
                    return
            except EbbflowError as error:
                _log.warning("Cannot say goodbye: %s", error)
            time.sleep(backoff.delay())

    def _release_rest(self) -> None:
        """Release what the server believes this worker to hold: a lease that was interrupted too late."""
        try:
            self._beat()
        except EbbflowError as error:
            _log.warning("Cannot ask for the attempts that are left: %s", error)


def _no_function(task: object) -> None:
    raise LookupError(f"this worker has no function for {task!r}")


@contextmanager
def _captured_logs() -> Iterator[None]:
    handler = CaptureHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
